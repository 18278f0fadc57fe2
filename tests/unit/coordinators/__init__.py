"""The runtime and the coordinators on it."""
