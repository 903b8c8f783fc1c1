"""Epidemic forwarding in an opportunistic network (OPP section III)."""
