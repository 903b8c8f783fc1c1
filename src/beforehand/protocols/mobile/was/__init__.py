"""WAS, the system of MOB section 4: hosts, stations, handoffs."""
