"""Transactions, by their answers and over restarts."""
