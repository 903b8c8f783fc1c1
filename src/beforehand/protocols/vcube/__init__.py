"""Causal aggregation broadcast over VCube (VCU)."""
