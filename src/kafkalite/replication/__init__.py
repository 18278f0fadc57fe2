"""Partitions in their roles: who leads, what is committed, who waits for it."""
