"""Files that can be made from the records of a log, and what becomes of it when they are wrong."""
