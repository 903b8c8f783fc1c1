"""Reader of public transport timetables (GTFS)."""
