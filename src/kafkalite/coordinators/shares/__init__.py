"""The share coordinator: what share groups have done with each partition's records (KIP-932)."""
