"""Partition logs in Apache Kafka's own files: append, read, recover, retain, compact."""
