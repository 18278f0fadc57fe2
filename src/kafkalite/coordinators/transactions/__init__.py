"""Exactly once: the coordinator of transactional ids (KIP-98, KIP-360, KIP-890)."""
