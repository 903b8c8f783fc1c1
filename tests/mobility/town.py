"""A timetable small enough to check by hand."""

from __future__ import annotations

from pathlib import Path

# Four stops on the equator, 0.01 degrees (1112 m) apart, so that metres are easy to check.
FEED = {
    "stops.txt": "stop_id,stop_name,stop_lat,stop_lon\n"
    "A,Alfa,0,0.00\nB,Bravo,0,0.01\nC,Charlie,0,0.02\nD,Delta,0,0.03\n",
    "routes.txt": "route_id,route_short_name,route_type\nr1,7,3\n",
    "calendar.txt": "service_id,monday,tuesday,wednesday,thursday,friday,saturday,sunday,"
    "start_date,end_date\nweek,1,1,1,1,1,0,0,20240101,20240114\nsat,0,0,0,0,0,1,0,"
    "20240101,20240114\n",
    "calendar_dates.txt": "service_id,date,exception_type\nweek,20240102,2\nsat,20240104,1\n",
    "trips.txt": "route_id,service_id,trip_id,shape_id,block_id\nr1,week,out,,\nr1,week,back,,\n"
    "r1,sat,night,,\n",
    "stop_times.txt": "trip_id,arrival_time,departure_time,stop_id,stop_sequence\n"
    "out,8:00:00,8:00:00,A,1\nout,8:10:00,8:11:00,B,2\nout,,,C,3\nout,8:31:00,8:31:00,D,4\n"
    "back,08:40:00,08:40:00,D,10\nback,09:10:00,09:10:00,A,20\n"
    "night,23:50:00,23:50:00,A,1\nnight,24:20:00,24:20:00,D,2\n",
}


def write_feed(folder: Path, **changed: str | bytes) -> Path:
    """The feed in a folder; changed: other content of a table, by its name without `.txt`."""
    folder.mkdir(parents=True)
    for name, text in {**FEED, **{f"{name}.txt": text for name, text in changed.items()}}.items():
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder
