"""What one broker asks of another, and the two ways to ask: in this process, and over a link."""
