"""Readers of mobility traces, one file per format."""
