"""Exhaustive exploration of small nets."""
