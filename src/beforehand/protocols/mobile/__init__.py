"""Causal broadcast among mobile hosts and their stations (MOB, MOB-TR)."""
