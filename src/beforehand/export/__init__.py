"""Write event logs in the formats of other programs."""
