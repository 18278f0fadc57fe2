"""Rounds of faults over broker processes, and what clients were told held against what is there."""
