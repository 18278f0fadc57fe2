"""Roles of a partition, what they decide, and who waits for it."""
