"""Deliberate bugs, in tables: `tests/test_mutants.py` shows that each is killed by its test."""
