"""Generators of synthetic mobility."""
