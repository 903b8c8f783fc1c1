"""CK, the baseline of MOB section 5."""
