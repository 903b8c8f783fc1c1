"""Read public transport timetables (GTFS)."""
