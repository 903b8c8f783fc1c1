"""TCP-Flooding, the baseline of MOB-TR section V.A."""
