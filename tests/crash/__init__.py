"""Crashes on purpose: of simulated machines at every disk operation, and of real processes."""
