"""Partitions as share groups read them: who was handed which records, and what came of it."""
