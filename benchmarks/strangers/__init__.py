"""Attackers against a live node."""
