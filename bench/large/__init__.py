"""The most that a well-meaning client may ask for, and the largest passes of housekeeping."""
