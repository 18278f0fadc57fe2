"""Deterministic shards over logs: the cluster, groups, transactions; and the runtime under them."""
