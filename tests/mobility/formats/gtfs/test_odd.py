"""Feeds that are odd in one way each: the reader reads them as a person would, and reports the
oddity."""

from __future__ import annotations

import io
import os
import re
import zipfile

import numpy as np
import pytest
from tests.mobility.town import FEED, write_feed

from beforehand.errors import InputError
from beforehand.mobility.formats.gtfs.read import read_gtfs
from beforehand.mobility.repairs import LEGAL

DAY = "20240101"
TIMES, STOPS, TRIPS = (FEED[f"{name}.txt"] for name in ("stop_times", "stops", "trips"))
WEEKS, DATES = FEED["calendar.txt"], FEED["calendar_dates.txt"]
PLACES = "stop_id,stop_name,stop_lat,stop_lon,location_type,parent_station\n"
REPEATED = "trip_id,start_time,end_time,headway_secs\nout,06:00:00,07:00:00,600\n"
TO_THE_POINT = {"A": "0.00", "B": "0.01", "C": "0.02", "D": "0.03"}


def quoted(text):
    lines = (line.split(",") for line in text.splitlines())
    return "\r\n".join(",".join(f'"{field}"' for field in line) for line in lines)


# By what is odd: the tables that are, and what is counted. The vehicles are those of the feed.
SAME = {
    "files without a byte": ({"routes": "", "shapes": b"\xef\xbb\xbf"}, {"empty_file": 2}),
    "only blank lines": ({"frequencies": "\n \r\n"}, {"empty_file": 1}),
    "old Macintosh lines": ({"stop_times": TIMES.replace("\n", "\r")}, {}),
    "spaces around all fields": ({"stop_times": TIMES.replace(",", " , ")}, {}),
    "everything in quotes": ({"stop_times": quoted(TIMES), "stops": quoted(STOPS)}, {}),
    "tables of another width": (
        {"stop_times": TIMES.encode("utf-16"), "stops": b"\xfe\xff" + STOPS.encode("utf-16-be")},
        {"not_utf8": 2},
    ),
    "a comma after each line": ({"stop_times": TIMES.replace("\n", ",\n")}, {}),
    "whole numbers with a point": ({"stop_times": TIMES.replace("B,2", "B,2.0")}, {}),
    "all calls twice": (
        {"stop_times": TIMES + TIMES.partition("\n")[2]},
        {"duplicate_call": 6},
    ),
    "two calls of one number": ({"stop_times": TIMES.replace("B,2", "B,1")}, {"same_sequence": 1}),
    "a zone to be picked up in": (
        {"stop_times": TIMES.replace("sequence\n", "sequence,location_id\n") + "back,,,,30,zone\n"},
        {"stop_without_place": 1},
    ),
    "a trip of zones alone": (
        {
            "trips": TRIPS + "r1,week,flex,,\n",
            "stop_times": TIMES + "flex,,,,1\nflex,,,,2\n",
        },
        {"stop_without_place": 2, "trip_without_stops": 1},
    ),
    "a service that is in no calendar": (
        {"trips": TRIPS + "r1,ghost,g,,\n", "stop_times": TIMES + "g,8:00:00,8:00:00,A,1\n"},
        {"unknown_service": 1},
    ),
    "a trip that is not there is repeated": (
        {"frequencies": REPEATED.replace("out", "ghost") + "night,06:00:00,07:00:00,600\n"},
        {"unknown_trip": 1},
    ),
    "yes and no for the days": (
        {"calendar": WEEKS.replace("week,1,1", "week,Yes,TRUE")},
        {"weekday_flag": 2},
    ),
    "a service twice": (
        {"calendar": WEEKS + "week,0,0,0,0,0,0,1,20240101,20240114\n"},
        {"duplicate_service": 1},
    ),
    "a service that ends before it starts": (
        {"calendar": WEEKS + "sun,0,0,0,0,0,0,1,20240114,20240101\n"},
        {"ends_before_start": 1},
    ),
    "a service removed and added": (
        {"calendar_dates": DATES + "week,20240101,2\nweek,20240101,1\n"},
        {"both_exceptions": 1},
    ),
    "boarding areas of platforms that have the place of their station": (
        {
            "stops": PLACES
            + "A,x,,,4,P\nP,x,,,0,S\nS,x,0,0,1,\n"
            + "".join(f"{name},x,0,{lon},0,\n" for name, lon in list(TO_THE_POINT.items())[1:])
        },
        {"place_of_station": 1},
    ),
    "stations, entrances, nodes and boarding areas": (
        {
            "stops": PLACES
            + "".join(f"{name},x,0,{lon},0,S\n" for name, lon in TO_THE_POINT.items())
            + "S,x,0,0.015,1,\nE,x,0,0,2,S\nN,x,,,3,S\nB1,x,,,4,B\n",
            "agency": "agency_id,agency_timezone\na,Europe/Paris\nb,Europe/Paris\nc,\n",
            "transfers": "from_stop_id,to_stop_id,transfer_type\nS,S,2\n",
        },
        {},
    ),
}


def told(positions):
    return {kind: count for kind, count in positions.changes.items() if kind not in LEGAL}


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one.segments, other.segments, strict=True))


@pytest.mark.parametrize("name", SAME)
def test_an_odd_feed_gives_the_vehicles_that_a_person_would_read(tmp_path, name):
    changed, expected = SAME[name]
    found = read_gtfs(write_feed(tmp_path / "odd", **changed), day=DAY)
    assert told(found) == expected
    assert same(found, read_gtfs(write_feed(tmp_path / "plain"), day=DAY))


@pytest.mark.parametrize("name", [name for name, (_, expected) in SAME.items() if expected])
def test_strict_mode_refuses_feeds_that_need_repairs(tmp_path, name):
    with pytest.raises(InputError):
        read_gtfs(write_feed(tmp_path / "odd", **SAME[name][0]), day=DAY, strict=True)


@pytest.mark.parametrize(
    ("rename", "expected"),
    [
        (lambda name: f"feed\\{name}", {}),  # as Windows packs it
        (lambda name: f"./{name}", {}),
        (lambda name: f"a/b/{name}", {}),
        (str.upper, {"file_name": 6}),
        (lambda name: f"Feed/{name.capitalize()}", {"file_name": 6}),
    ],
)
def test_names_in_a_zip_as_some_programs_write_them(tmp_path, rename, expected):
    path = tmp_path / "feed.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in FEED.items():
            archive.writestr(rename(name), text)
    found = read_gtfs(path, day=DAY)
    assert told(found) == expected
    assert same(found, read_gtfs(write_feed(tmp_path / "plain"), day=DAY))


def test_a_zip_in_a_zip_with_capitals(tmp_path):
    inner, path = io.BytesIO(), tmp_path / "feed.zip"
    with zipfile.ZipFile(inner, "w") as archive:
        for name, text in FEED.items():
            archive.writestr(f"Google\\{name.upper()}", text)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("LIESMICH.TXT", "guten Tag")
        archive.writestr("GTFS.ZIP", inner.getvalue())
    assert told(read_gtfs(path, day=DAY)) == {"file_name": 6}


def test_the_shadow_of_a_zip_in_a_zip_was_taken_for_a_second_feed(tmp_path):
    inner, path = io.BytesIO(), tmp_path / "feed.zip"
    with zipfile.ZipFile(inner, "w") as archive:
        for name, text in FEED.items():
            archive.writestr(name, text)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("feed/gtfs.zip", inner.getvalue())
        archive.writestr("__MACOSX/feed/._gtfs.zip", b"\0\5\x16\7")
    assert same(read_gtfs(path, day=DAY), read_gtfs(write_feed(tmp_path / "plain"), day=DAY))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_the_last_of_two_files_of_one_name_in_a_zip_silently_counted(tmp_path):
    path = tmp_path / "feed.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in FEED.items():
            archive.writestr(name, text)
        archive.writestr("stops.txt", FEED["stops.txt"])
    read_gtfs(path, day=DAY)  # the same twice is as good as once
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("trips.txt", FEED["trips.txt"] + "\n")
    with pytest.raises(InputError, match="two files of this name in the zip, and they differ"):
        read_gtfs(path, day=DAY)


@pytest.mark.parametrize("packing", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_a_damaged_zip_was_an_internal_error(tmp_path, packing):
    path, refused = tmp_path / "feed.zip", list[str]()
    with zipfile.ZipFile(path, "w", packing) as archive:
        for name, text in FEED.items():
            archive.writestr(name, text * (100 if name == "stop_times.txt" else 1))
        begins = archive.getinfo("stop_times.txt").header_offset + 50
    whole = path.read_bytes()
    for at in range(begins, begins + 40):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            read_gtfs(path, day=DAY)  # some bytes do not matter: what is read is compared
        except InputError as error:
            refused.append(error.problem)
    assert len(refused) > 30
    assert all(problem.startswith("cannot unpack it") for problem in refused)


@pytest.mark.parametrize("table", ["frequencies.txt", "shapes.txt", "calendar.txt"])
@pytest.mark.parametrize("how", ["link", "pipe"])
def test_a_table_that_is_a_dangling_link_or_a_pipe_was_taken_as_missing(tmp_path, table, how):
    feed = write_feed(tmp_path / "feed")
    (feed / table).unlink(missing_ok=True)
    if how == "pipe":
        os.mkfifo(feed / table)
    else:
        (feed / table).symlink_to("nowhere")
    with pytest.raises(InputError, match="not a regular file") as refused:
        read_gtfs(feed, day=DAY)
    assert refused.value.where == str(feed / table)


def test_agencies_in_several_time_zones_were_silently_merged(tmp_path):
    agency = "agency_id,agency_timezone\na,Asia/Tokyo\nb,Europe/Paris\n"
    found = read_gtfs(write_feed(tmp_path / "feed", agency=agency), day=DAY)
    told = "all times are of one time zone, though agency.txt has `Asia/Tokyo`, `Europe/Paris`"
    assert told in found.detected_format.assumed


def test_a_repeated_row_of_frequencies_made_every_bus_twice(tmp_path):
    once = read_gtfs(write_feed(tmp_path / "1", frequencies=REPEATED), day=DAY)
    row = REPEATED.partition("\n")[2]
    twice = read_gtfs(write_feed(tmp_path / "2", frequencies=REPEATED + row), day=DAY)
    assert told(twice) == {"same_start": 6}
    assert same(once, twice)


def test_points_of_a_shape_with_one_number_were_sorted_by_their_longitude(tmp_path):
    road = "shape_id,shape_pt_lat,shape_pt_lon,shape_pt_sequence\n"
    points = ("0,0", "0,0.02", "0.001,0.01", "0,0.03")
    trips = TRIPS.replace("out,,", "out,road,")
    numbers = {"right": (1, 2, 3, 4), "equal": (1, 2, 2, 3)}
    found = {}
    for name, sequence in numbers.items():
        shapes = road + "".join(f"road,{p},{n}\n" for p, n in zip(points, sequence, strict=True))
        found[name] = read_gtfs(write_feed(tmp_path / name, trips=trips, shapes=shapes), day=DAY)
    assert told(found["equal"]) == {"same_sequence": 1}
    assert same(*found.values())


@pytest.mark.parametrize(
    ("table", "text", "problem"),
    [
        ("calendar", WEEKS.replace("week,1,1", "week,2,1"), "neither 0 nor 1 .*: `2`"),
        ("calendar", WEEKS.replace("week,1,1", "week,maybe,1"), "neither 0 nor 1 .*: `maybe`"),
        ("stop_times", "", "no column `trip_id`"),
        ("trips", "\n", "no column `route_id`"),
        (
            "stop_times",
            TIMES.replace("departure_time", "arrival_time", 1),
            "two columns `arrival_time`",
        ),
    ],
)
def test_a_file_without_a_sensible_reading_is_refused(tmp_path, table, text, problem):
    with pytest.raises(InputError) as refused:
        read_gtfs(write_feed(tmp_path / "odd", **{table: text}), day=DAY)
    assert re.search(problem, refused.value.render())
