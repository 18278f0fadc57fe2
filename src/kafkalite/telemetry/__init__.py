"""What clients push of their own metrics (KIP-714): read, kept for the pages, and passed on."""
