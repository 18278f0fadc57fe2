"""The deterministic world: what tests and searches for faults run the broker in."""
