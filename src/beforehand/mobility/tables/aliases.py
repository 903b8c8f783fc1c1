"""Known column names of traces. A reader compares names without case, `_`, `-` and spaces."""

from __future__ import annotations

from itertools import product

SPEAKERS = (
    *("node", "vehicle", "device", "user", "person", "host", "agent", "bus", "taxi", "car"),
    *("pedestrian", "walker", "participant", "student", "visitor", "animal", "phone", "sensor"),
    *("station", "member", "individual", "entity", "object", "mote", "imote", "robot", "drone"),
)
NODE = tuple(f"{name}{end}" for name in SPEAKERS for end in ("", "id", "name", "no", "number"))
NODE_WEAK = ("id", "uid", "mac", "macaddress", "tag", "tagid", "badge", "badgeid", "name", "label")
"""Names that count only where no column has a name in `NODE`: `id` is often the row number."""

TIME = (
    *("time", "t", "timestamp", "ts", "times", "timesec", "timeseconds", "simtime", "unixtime"),
    *("unixtimestamp", "posixtime", "epochtime", "gpstime", "timeofday"),
)
TIME_WEAK = ("epoch", "unix", "seconds", "secs", "sec", "datetime", "clock", "slot", "second")

ENDS = ("{}", "{}pos", "pos{}", "position{}", "{}position", "{}coord", "{}coordinate", "coord{}")
X = (*(shape.format("x") for shape in ENDS), "locx", "xloc", "easting", "utmx", "utmeasting")
Y = (*(shape.format("y") for shape in ENDS), "locy", "yloc", "northing", "utmy", "utmnorthing")
LON = ("lon", "lng", "long", "longitude", "gpslon", "gpslng", "gpslongitude", "poslon", "lonwgs84")
LAT = ("lat", "latitude", "gpslat", "gpslatitude", "poslat", "latwgs84")

START = (
    *("start", "begin", "up", "starttime", "begintime", "timestart", "timebegin", "tstart"),
    *("tbegin", "starttimestamp", "startts", "since", "firstseen", "contactstart", "startcontact"),
    *("uptime", "timeup", "tup", "starts", "begins"),
)
END = (
    *("end", "stop", "down", "endtime", "stoptime", "timeend", "timestop", "tend", "tstop"),
    *("endtimestamp", "endts", "until", "till", "lastseen", "contactend", "endcontact", "finish"),
    *("downtime", "timedown", "tdown", "ends", "stops", "finishtime"),
)
DURATION = ("duration", "dur", "length", "lasts", "contactduration", "contactlength", "elapsed")
SPANS = (("t0", "t1"), ("t1", "t2"), ("time0", "time1"), ("time1", "time2"))
"""Pairs of names that mean start and end only if the header has both."""

OTHER = (
    *("peer", "peerid", "neighbor", "neighbour", "neighborid", "neighbourid", "other", "otherid"),
    *("partner", "partnerid", "seen", "seenid", "seennode", "seendevice", "sighted", "met"),
    *("peermac", "peername", "neighbormac", "neighbourmac", "othermac", "seenmac"),
    *("sightedid", "contact", "contactid", "contactnode", "encountered", "detected", "observed"),
)
"""Names of the second node of a pair; the first node may have any name in `NODE`."""

_BASES = (*SPEAKERS, "id", "uid", "mac", "tag", "tid", "badge", "n", "p", "u", "v", "name")
_SUFFIXES = (("1", "2"), ("a", "b"), ("i", "j"), ("0", "1"), ("one", "two"))
_DIRECTIONS = (("source", "target"), ("src", "dst"), ("from", "to"), ("first", "second"))
PAIRS: tuple[tuple[str, str], ...] = (
    *(("a", "b"), ("i", "j"), ("u", "v"), ("source", "target"), ("source", "destination")),
    *(("src", "dst"), ("src", "dest"), ("from", "to"), ("ego", "alter"), ("sender", "receiver")),
    *(("observer", "observed"), ("scanner", "scanned"), ("head", "tail"), ("first", "second")),
    *(
        (f"{base}{inner}{one}", f"{base}{inner}{two}")
        for base, inner, (one, two) in product(_BASES, ("", "id"), (*_SUFFIXES, *_DIRECTIONS))
    ),
    *((f"{base}{one}id", f"{base}{two}id") for base, (one, two) in product(_BASES, _SUFFIXES)),
    *((f"{one}{base}", f"{two}{base}") for base, (one, two) in product(_BASES, _DIRECTIONS)),
    *((f"{one}{base}id", f"{two}{base}id") for base, (one, two) in product(_BASES, _DIRECTIONS)),
)

TIME_UNITS = {
    "us": 1,
    "ms": 1_000,
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000_000),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60_000_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000_000),
}
PLACE_UNITS = {**dict.fromkeys(("m", "meter", "meters", "metre", "metres"), 1.0), "km": 1000.0}
ANGLE_UNITS = dict.fromkeys(("deg", "degree", "degrees"), 1.0)

KNOWN = {
    "node": ("node", "id", "vehicle", "device", "user", "..."),
    "time": ("time", "t", "timestamp", "ts", "..."),
    "x": ("x", "pos_x", "easting", "..."),
    "y": ("y", "pos_y", "northing", "..."),
    "lon": ("lon", "lng", "longitude", "..."),
    "lat": ("lat", "latitude", "..."),
    "a": ("a", "i", "source", "src", "node1", "id1", "user_a", "..."),
    "b": ("b", "j", "target", "dst", "node2", "id2", "user_b", "..."),
    "start": ("start", "begin", "up", "start_time", "..."),
    "end": ("end", "stop", "down", "end_time", "..."),
    "duration": ("duration", "length", "..."),
}
"""A few example names for each role, for error hints."""
