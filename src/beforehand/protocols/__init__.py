"""Protocol cores: pure state machines without a clock, a socket or randomness."""
