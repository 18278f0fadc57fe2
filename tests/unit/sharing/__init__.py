"""Tests of partitions as share groups read them."""
