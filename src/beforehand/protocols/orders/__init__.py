"""Delivery orders: causal, Δ-causal, vector clocks, none."""
