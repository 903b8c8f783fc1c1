"""GTFS: days, shapes, late and empty times, vehicles; in a town small enough to check by hand."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest
from tests.mobility.town import FEED, write_feed

from beforehand.errors import InputError, InputErrors
from beforehand.mobility.formats.gtfs.paths import place_stops
from beforehand.mobility.formats.gtfs.read import read_gtfs

US = 1_000_000
DEGREE_M = 6_371_008.8 * np.pi / 180


@pytest.fixture
def feed(tmp_path):
    """Write the feed into a folder; a test changes the tables that it is about."""

    def write(**changed: str):
        return write_feed(tmp_path / "feed", **changed)

    return write


def place_at(positions, time_s, name=None):
    node = 0 if name is None else positions.names.index(name)
    t_us = time_s * US
    held = (positions.node == node) & (positions.t0_us <= t_us) & (t_us < positions.t1_us)
    (row,) = np.flatnonzero(held)
    share = (t_us - positions.t0_us[row]) / (positions.t1_us[row] - positions.t0_us[row])
    return positions.x0[row] + share * (positions.x1[row] - positions.x0[row])


def clock(hours, minutes=0):
    return hours * 3600 + minutes * 60


def test_a_vehicle_drives_waits_and_returns(feed):
    positions = read_gtfs(feed(), day="2024-01-01")
    assert positions.names == ("7-1",)
    assert positions.presence.tolist() == [[0, clock(8) * US, clock(9, 10) * US]]
    left = -0.015 * DEGREE_M  # the middle of the stops is the origin
    assert place_at(positions, clock(8, 5)) == pytest.approx(left + 0.005 * DEGREE_M)
    assert place_at(positions, clock(8, 10) + 30) == pytest.approx(left + 0.01 * DEGREE_M)
    assert place_at(positions, clock(8, 21)) == pytest.approx(left + 0.02 * DEGREE_M)
    assert place_at(positions, clock(8, 35)) == pytest.approx(left + 0.03 * DEGREE_M)
    assert place_at(positions, clock(8, 55)) == pytest.approx(left + 0.015 * DEGREE_M)
    assert positions.changes == {
        "interpolated_time": 1,
        "without_shape": 2,
        "inferred_vehicle": 1,
    }


def test_times_past_midnight_belong_to_the_day_before(feed):
    positions = read_gtfs(feed(), day="20240106")
    assert positions.presence[0, 1:].tolist() == [clock(23, 50) * US, clock(24, 20) * US]


@pytest.mark.parametrize(
    ("day", "starts"),
    [
        ("20240104", [clock(8), clock(23, 50)]),  # Saturday's service on a Thursday
        (None, [clock(8), clock(23, 50)]),  # the day with the most trips
        ("20240103", [clock(8)]),
    ],
)
def test_the_day_chooses_the_services(feed, day, starts):
    positions = read_gtfs(feed(), day=day)
    assert positions.presence[:, 1].tolist() == [start * US for start in starts]


@pytest.mark.parametrize("day", ["20240102", "20240107", "20300101"])
def test_a_day_without_service_is_refused_with_the_days_of_the_feed(feed, day):
    with pytest.raises(InputError, match="no trip on") as caught:
        read_gtfs(feed(), day=day)
    assert caught.value.hint == "the feed covers 2024-01-01 to 2024-01-13"


def test_a_zip_is_as_good_as_a_folder_even_with_the_folder_inside(feed, tmp_path):
    folder = feed()
    path = tmp_path / "feed.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in folder.iterdir():
            archive.write(file, f"town/{file.name}")
    one, other = read_gtfs(path), read_gtfs(folder)
    assert one.segments.x1.tolist() == other.segments.x1.tolist()
    assert one.presence.tolist() == other.presence.tolist()


def test_vehicles_from_blocks_from_inference_or_one_per_trip(feed):
    trips = FEED["trips.txt"].replace("out,,", "out,,k1").replace("back,,", "back,,k2")
    folder = feed(trips=trips)
    assert read_gtfs(folder, day="20240101").names == ("k1", "k2")
    assert read_gtfs(folder, day="20240101", blocks="infer").names == ("7-1",)
    assert read_gtfs(folder, day="20240101", blocks="trip").names == ("7-1", "7-2")
    with pytest.raises(InputError, match="no such way to form blocks"):
        read_gtfs(folder, blocks="guess")


def test_one_block_with_two_trips_at_once_is_two_vehicles(feed):
    trips = FEED["trips.txt"].replace("out,,", "out,,k").replace("back,,", "back,,k")
    times = FEED["stop_times.txt"].replace("back,08:40:00,08:40:00", "back,08:20:00,08:20:00")
    folder = feed(trips=trips, stop_times=times)
    positions = read_gtfs(folder, day="20240101")
    assert positions.names == ("k", "k/2")
    assert positions.changes["block_overlap"] == 1
    with pytest.raises(InputError, match="two trips of one block"):
        read_gtfs(folder, day="20240101", strict=True)


def test_a_vehicle_is_away_between_trips_that_are_far_apart(feed):
    trips = FEED["trips.txt"].replace("out,,", "out,,k").replace("back,,", "back,,k")
    positions = read_gtfs(feed(trips=trips), day="20240101", layover_s_max=300)
    assert positions.presence.tolist() == [
        [0, clock(8) * US, clock(8, 31) * US],
        [0, clock(8, 40) * US, clock(9, 10) * US],
    ]


def test_stops_of_the_same_minute_are_spread_by_distance(feed):
    times = (
        "trip_id,arrival_time,departure_time,stop_id,stop_sequence\n"
        "out,8:00:00,8:00:00,A,1\nout,8:00:00,8:00:00,B,2\nout,8:02:00,8:02:00,C,3\n"
        "out,8:02:00,8:02:00,D,4\n"
    )
    positions = read_gtfs(feed(stop_times=times), day="20240101")
    assert place_at(positions, clock(8) + 40) == pytest.approx(-0.005 * DEGREE_M)
    assert positions.changes == {
        "same_time": 2,
        "without_shape": 1,
        "inferred_vehicle": 1,
        "trip_without_stops": 1,
    }


def test_the_road_of_the_shape_is_driven_and_not_the_straight_line(feed):
    trips = FEED["trips.txt"].replace("back,,", "back,s1,")
    shapes = (
        "shape_id,shape_pt_lat,shape_pt_lon,shape_pt_sequence\n"
        "s1,0,0.03,1\ns1,0.015,0.03,2\ns1,0.015,0,3\ns1,0,0,4\n"
    )
    positions = read_gtfs(feed(trips=trips, shapes=shapes), day="20240101")
    assert positions.y1.max() == pytest.approx(0.015 * DEGREE_M)
    assert place_at(positions, clock(8, 55)) == pytest.approx(0.0, abs=1e-6)


def test_repeated_trips_run_at_their_headway(feed):
    frequencies = "trip_id,start_time,end_time,headway_secs\nback,10:00:00,11:00:00,1200\n"
    positions = read_gtfs(feed(frequencies=frequencies), day="20240101", blocks="trip")
    starts = [row[1] // US for row in positions.presence.tolist()]
    assert starts == [clock(8), clock(10), clock(10, 20), clock(10, 40)]


def test_a_stop_on_a_road_that_comes_by_twice_is_placed_in_order():
    # Out and back on the same street: the nearest place alone would put the last stop first.
    road = np.array([[0.0, 0.0], [100.0, 0.0], [100.0, 1.0], [0.0, 1.0]])
    stops = np.array([[20.0, 0.4], [95.0, 0.0], [80.0, 0.4], [20.0, 0.4]])
    assert place_stops(road, stops).tolist() == pytest.approx([20, 95, 121, 181])


def test_problems_are_listed_with_file_and_line(feed):
    times = FEED["stop_times.txt"].replace("8:10:00,8:11:00", "8:10:00,8:61:00")
    folder = feed(stop_times=times.replace("night,23:50:00", "night,soon"))
    with pytest.raises(InputErrors) as caught:
        read_gtfs(folder)
    assert [(e.where, e.problem) for e in caught.value.errors] == [
        (f"{folder}/stop_times.txt:3", "not a time `H:MM:SS`: `8:61:00`"),
        (f"{folder}/stop_times.txt:8", "not a time `H:MM:SS`: `soon`"),
    ]


@pytest.mark.parametrize(
    ("before", "after", "kind", "line", "problem"),
    [
        ("8:31:00,8:31:00", "8:09:00,8:09:00", "time_falls", 5, "a time before that of the stop"),
        ("8:31:00,8:31:00", ",", "end_without_time", 4, "no time at its first or last stop"),
        ("8:10:00,8:11:00", "8:10:00,8:09:00", "departure_before_arrival", 3, "leaves when it"),
        ("8:10:00,8:11:00,B", "8:10:00,8:11:00,Z", "stop_without_place", 3, "stop `Z` has no"),
    ],
)
def test_faults_of_a_trip_are_repaired_and_counted_or_refused_in_strict_mode(
    feed, before, after, kind, line, problem
):
    folder = feed(stop_times=FEED["stop_times.txt"].replace(before, after))
    assert read_gtfs(folder, day="20240101").changes[kind] >= 1
    with pytest.raises(InputError) as caught:
        read_gtfs(folder, day="20240101", strict=True)
    first = getattr(caught.value, "errors", (caught.value,))[0]
    assert first.where == f"{folder}/stop_times.txt:{line}"
    assert problem in first.problem


def test_a_folder_that_is_no_feed_is_refused_with_the_missing_tables(tmp_path):
    (tmp_path / "stops.txt").write_text("stop_id,stop_lat,stop_lon\n")
    with pytest.raises(InputError, match=r"no `trips\.txt` and no `stop_times\.txt`"):
        read_gtfs(tmp_path)


def test_a_missing_column_is_named(feed):
    folder = feed(stops="stop_id,stop_lat\nA,0\n")
    with pytest.raises(InputError, match="no column `stop_lon`") as caught:
        read_gtfs(folder)
    assert caught.value.where == f"{folder}/stops.txt:1"
