"""Where a vehicle is, minute by minute, against places computed by hand."""

from __future__ import annotations

import numpy as np
import pytest
from tests.mobility.town import write_feed

from beforehand.errors import InputError
from beforehand.mobility.formats.gtfs.read import read_gtfs

DAY, EIGHT_S = "20240103", 8 * 3600
TRIPS = "route_id,service_id,trip_id,shape_id,block_id\n"
CALLS = "trip_id,arrival_time,departure_time,stop_id,stop_sequence\n"


@pytest.fixture
def read(tmp_path):
    """The vehicles of trips given as `name block` and calls given as `name arrival departure stop`.

    Times are minutes after eight.
    """

    def call(trips, calls, **options):
        rows = (trip.split() for trip in trips)
        listed = "".join(f"r1,week,{name},,{block}\n" for name, block in rows)
        times = ""
        for number, (name, arrives, leaves, stop) in enumerate(map(str.split, calls)):
            clock = [f"{8 + int(m) // 60}:{int(m) % 60:02}:00" for m in (arrives, leaves)]
            times += f"{name},{','.join(clock)},{stop},{number}\n"
        feed = write_feed(tmp_path / "feed", trips=TRIPS + listed, stop_times=CALLS + times)
        return read_gtfs(feed, day=DAY, **options)

    return call


def stops_passed(positions, name, *minutes):
    """How many stops after A, at each minute; the stops are 0.01 degrees apart."""
    rows = np.flatnonzero(positions.node == positions.names.index(name))
    rows = rows[np.argsort(positions.t0_us[rows])]
    ends = np.column_stack([positions.t0_us[rows], positions.t1_us[rows]]).ravel()
    x = np.column_stack([positions.x0[rows], positions.x1[rows]]).ravel()
    at_us = [(EIGHT_S + 60 * minute) * 1_000_000 for minute in minutes]
    apart_m = np.radians(0.01) * 6_371_008.8
    low = positions.x0.min()
    return ((np.interp(at_us, ends, x) - low) / apart_m).round(3).tolist()


def test_a_trip_was_lost_whose_block_continues_elsewhere_at_once(read):
    calls = ("out 0 0 A", "out 30 30 C", "back 30 30 A", "back 60 60 D")
    found = read(("out b", "back b"), calls)
    assert found.names == ("b",)
    assert found.changes["block_jump"] == 1
    assert stops_passed(found, "b", 0, 15, 29, 31, 45, 60) == [0, 1, 1.933, 0.1, 1.5, 3]
    assert found.presence.tolist() == [[0, EIGHT_S * 10**6, (EIGHT_S + 3600) * 10**6]]


def test_strict_mode_refuses_a_block_that_continues_elsewhere_at_once(read):
    calls = ("out 0 0 A", "out 30 30 C", "back 30 30 A", "back 60 60 D")
    with pytest.raises(InputError, match="starts elsewhere when the one before it ends"):
        read(("out b", "back b"), calls, strict=True)


def test_a_block_that_continues_at_its_last_stop_does_not_jump(read):
    calls = ("out 0 0 A", "out 30 30 D", "back 30 30 D", "back 60 60 A")
    found = read(("out b", "back b"), calls)
    assert "block_jump" not in found.changes
    assert stops_passed(found, "b", 0, 10, 30, 50) == [0, 1, 3, 1]


@pytest.mark.parametrize(
    ("calls", "minutes", "places"),
    [
        # Rounded to the minute it is at B when it leaves A, and stays there for half an hour.
        (("0 0 A", "0 30 B", "40 40 C", "50 50 D"), (1, 15, 30, 35, 40), [1, 1, 1, 1.5, 2]),
        # It leaves B as it arrives at its last stop.
        (("0 0 A", "10 30 B", "30 30 C"), (5, 10, 20, 29, 30), [0.5, 1, 1, 1, 2]),
        # Two stops of one minute, of which the second is one to wait at.
        (("0 0 A", "10 10 B", "10 20 C", "30 30 D"), (5, 10, 11, 20, 25), [0.5, 1, 2, 2, 2.5]),
        # No longer than the minute that it takes: half of it is left.
        (("0 0 A", "0 1 B", "1 1 C"), (0, 0.5, 0.75, 1), [0, 1, 1, 2]),
        # Both ends at once.
        (("0 0 A", "0 30 B", "30 30 C"), (0, 1, 29, 30), [0, 1, 1, 2]),
        # No vehicle waits: the whole is spread by distance.
        (("0 0 A", "0 0 B", "0 0 C", "30 30 D"), (10, 20), [1, 2]),
    ],
)
def test_a_stay_was_lost_at_a_stop_in_the_minute_of_the_stop_before(read, calls, minutes, places):
    found = read(("out b",), [f"out {call}" for call in calls])
    assert stops_passed(found, "b", *minutes) == places
    assert found.changes["same_time"] == (2 if calls[2] == "0 0 C" else 1)


def test_a_trip_too_many_of_one_block_was_given_to_the_block_of_that_name(read):
    calls = ("out 0 0 A", "out 30 30 C", "back 0 0 A", "back 5 5 B", "too 10 10 D", "too 20 20 A")
    found = read(("out b", "back b/2", "too b"), calls)
    assert found.names == ("b", "b/2", "b/3")
    assert found.changes["block_overlap"] == 1
