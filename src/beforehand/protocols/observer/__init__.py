"""Causal order for an observer of processes with drifting clocks (OBS)."""
