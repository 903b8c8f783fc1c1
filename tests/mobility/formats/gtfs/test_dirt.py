"""Feeds as cities publish them: everything that a trip planner accepts is read, and repairs are
reported."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest
from tests.mobility.town import FEED, write_feed

from beforehand.errors import InputError, InputErrors
from beforehand.mobility.formats.gtfs.read import read_gtfs
from beforehand.mobility.repairs import LEGAL

US = 1_000_000
DAY = "20240101"
TIMES = FEED["stop_times.txt"]
HEAD = "trip_id,arrival_time,departure_time,stop_id,stop_sequence\n"


@pytest.fixture
def town(tmp_path):
    """Return a feed with some tables changed; each call makes a new one."""
    made = iter(range(100))
    return lambda **changed: write_feed(tmp_path / f"feed{next(made)}", **changed)


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one.segments, other.segments, strict=True))


def dirt(positions):
    return {kind: count for kind, count in positions.changes.items() if kind not in LEGAL}


def test_times_that_wrap_at_midnight_are_those_of_the_next_day(town):
    wrapped = TIMES.replace("24:20:00,24:20:00", "00:20:00,00:20:00")
    found = read_gtfs(town(stop_times=wrapped), day="20240106")
    assert same(found, read_gtfs(town(), day="20240106"))
    assert dirt(found) == {"past_midnight": 1}


def test_midnight_may_pass_while_a_vehicle_waits(town):
    times = HEAD + "night,23:50:00,23:50:00,A,1\nnight,23:58:00,00:02:00,B,2\n"
    times += "night,00:10:00,00:10:00,C,3\nnight,00:20:00,00:20:00,D,4\n"
    found = read_gtfs(town(stop_times=times), day="20240106")
    assert found.presence[0, 1:].tolist() == [(23 * 60 + 50) * 60 * US, (24 * 60 + 20) * 60 * US]
    assert dirt(found) == {"past_midnight": 1}


def test_a_single_time_of_zero_in_the_afternoon_does_not_wrap_the_day(town):
    times = HEAD + "night,13:00:00,13:00:00,A,1\nnight,00:00:00,00:00:00,B,2\n"
    times += "night,13:20:00,13:20:00,C,3\n"
    found = read_gtfs(town(stop_times=times), day="20240106")
    assert found.presence[0, 1:].tolist() == [13 * 3600 * US, (13 * 60 + 20) * 60 * US]
    assert dirt(found) == {"time_falls": 1}


def test_a_time_that_runs_backwards_for_a_stop_is_filled_in_by_distance(town):
    times = TIMES.replace("8:10:00,8:11:00", "7:10:00,7:11:00")
    found = read_gtfs(town(stop_times=times), day=DAY)
    assert same(found, read_gtfs(town(stop_times=TIMES.replace("8:10:00,8:11:00", ",")), day=DAY))
    assert dirt(found) == {"time_falls": 1}


def test_decreasing_stop_times_are_mended_by_dropping_as_few_as_possible(town):
    times = HEAD + "out,8:00:00,8:00:00,A,1\nout,9:00:00,9:00:00,B,2\n"
    times += "out,8:20:00,8:20:00,C,3\nout,8:30:00,8:30:00,D,4\n"
    found = read_gtfs(town(stop_times=times), day=DAY)
    assert found.presence[0, 1:].tolist() == [8 * 3600 * US, (8 * 60 + 30) * 60 * US]
    assert dirt(found) == {"time_falls": 1, "trip_without_stops": 1}


def test_a_trip_without_times_at_its_ends_is_driven_between_its_timed_stops(town):
    times = TIMES.replace("8:31:00,8:31:00", ",")
    found = read_gtfs(town(stop_times=times), day=DAY, blocks="trip")
    assert found.presence[0, 1:].tolist() == [8 * 3600 * US, (8 * 60 + 10) * 60 * US]
    assert dirt(found) == {"end_without_time": 2}


def test_a_shape_that_is_missing_means_straight_lines(town):
    trips = FEED["trips.txt"].replace("out,,", "out,s9,")
    found = read_gtfs(town(trips=trips), day=DAY)
    assert same(found, read_gtfs(town(), day=DAY))
    assert found.changes["missing_shape"] == 1
    assert found.changes["without_shape"] == 1


TRIPS = FEED["trips.txt"].replace("out,,", "out,road,")
ROAD = "shape_id,shape_pt_lat,shape_pt_lon,shape_pt_sequence,shape_dist_traveled\n"
ALONG = ROAD + "road,0,0,1,0\nroad,0.001,0.01,2,1\nroad,0,0.03,3,3\n"


def measured(metres):
    """The calls of the feed, each with its distance: 1, 2, 3 times so many."""
    head, *calls = TIMES.splitlines()
    along = {stop: n * metres for n, stop in enumerate("ABCD")}
    rows = [f"{call},{along[call.split(',')[3]]}" for call in calls]
    return "\n".join([f"{head},shape_dist_traveled", *rows, ""])


def test_distances_in_another_unit_than_those_of_the_road_move_no_stop(town):
    sound = read_gtfs(town(trips=TRIPS, shapes=ALONG, stop_times=measured(1)), day=DAY)
    assert dirt(sound) == {}
    for metres in (1000, 0.001):
        found = read_gtfs(town(trips=TRIPS, shapes=ALONG, stop_times=measured(metres)), day=DAY)
        assert dirt(found) == {"wrong_measure": 1}
        assert same(found, read_gtfs(town(trips=TRIPS, shapes=ALONG), day=DAY))


@pytest.mark.parametrize(
    "road",
    [
        "road,0.5,0,1,\nroad,0.5,0.03,2,\n",  # north of the town
        "road,0,0,1,\nroad,0,0.01,2,\n",  # its first third
        "road,0,0.03,1,\nroad,0,0,2,\n",  # the other way
    ],
)
def test_a_shape_that_does_not_pass_its_stops_is_not_used(town, road):
    found = read_gtfs(town(trips=TRIPS, shapes=ROAD + road), day=DAY)
    assert same(found, read_gtfs(town(), day=DAY))
    assert dirt(found) == {"shape_elsewhere": 1}


def test_calendar_dates_alone_are_a_calendar(town):
    folder = town(calendar_dates="service_id,date,exception_type\nweek,20240101,1\n")
    (folder / "calendar.txt").unlink()
    assert same(read_gtfs(folder), read_gtfs(town(), day=DAY))


def test_a_calendar_without_an_end_has_days_to_its_end(town):
    calendar = FEED["calendar.txt"].replace("20240101,20240114", "20080101,20991231")
    found = read_gtfs(town(calendar=calendar), day="20770104")  # a Monday
    assert same(found, read_gtfs(town(), day=DAY))
    with pytest.raises(InputError, match="no trip on 2101") as caught:
        read_gtfs(town(calendar=calendar), day="21010101")
    assert caught.value.hint == "the feed covers 2008-01-01 to 2099-12-31"


@pytest.mark.parametrize("day", ["19-1-2019", "2024-1-1", "20240230", "monday"])
def test_a_missing_service_day_is_not_guessed(town, day):
    with pytest.raises(InputError, match="not a date") as caught:
        read_gtfs(town(), day=day)
    assert caught.value.hint == "pass a day like `2014-06-02`"


def test_byte_order_marks_line_ends_quotes_and_capitals_make_no_difference(town):
    changed = {}
    for name, text in FEED.items():
        head, *body = text.splitlines()
        rows = [head.upper(), *(",".join(f'"{cell}"' for cell in row.split(",")) for row in body)]
        changed[name.removesuffix(".txt")] = "\ufeff" + "\r\n".join(rows) + "\r\n\r\n"
    found = read_gtfs(town(**changed), day=DAY)
    assert same(found, read_gtfs(town(), day=DAY))
    assert dirt(found) == {}


def test_a_comma_in_quotes_is_part_of_a_name_and_without_them_it_is_refused(town):
    stops = FEED["stops.txt"].replace("Bravo", '"Bravo, the ""big"" one"')
    assert same(read_gtfs(town(stops=stops), day=DAY), read_gtfs(town(), day=DAY))
    folder = town(stops=FEED["stops.txt"].replace("Bravo", "Bravo, the big one"))
    with pytest.raises(InputError, match="5 fields under a header of 4") as caught:
        read_gtfs(folder, day=DAY)
    assert caught.value.where == f"{folder}/stops.txt:3"


def test_names_in_the_old_encoding_are_read_and_counted(town):
    stops = FEED["stops.txt"].replace("Bravo", "Brávo").encode("cp1252")
    found = read_gtfs(town(stops=stops), day=DAY)
    assert dirt(found) == {"not_utf8": 1}


def zipped(folder, prefix=""):
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for file in folder.iterdir():
            archive.write(file, f"{prefix}{file.name}")
        archive.writestr(f"__MACOSX/{prefix}stop_times.txt", "no table")
    return held.getvalue()


def test_a_feed_may_lie_folders_or_a_zip_deep(town, tmp_path):
    expected = read_gtfs(town(), day=DAY)
    path = tmp_path / "deep.zip"
    path.write_bytes(zipped(town(), "data/gtfs/"))
    assert same(read_gtfs(path, day=DAY), expected)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("google_transit.zip", zipped(town()))
    assert same(read_gtfs(path, day=DAY), expected)
    write_feed(tmp_path / "outer" / "inner")
    assert same(read_gtfs(tmp_path / "outer", day=DAY), expected)


def test_two_feeds_in_one_place_are_refused(tmp_path):
    for name in ("north", "south"):
        write_feed(tmp_path / "both" / name)
    with pytest.raises(InputError, match="several feeds in one place"):
        read_gtfs(tmp_path / "both")
    with zipfile.ZipFile(tmp_path / "both.zip", "w") as archive:
        for name in ("north", "south"):
            archive.writestr(f"{name}.zip", zipped(tmp_path / "both" / name))
    with pytest.raises(InputError, match="several feeds in one zip"):
        read_gtfs(tmp_path / "both.zip")


def test_a_stop_without_coordinates_takes_those_of_its_station_or_is_skipped(town):
    stops = (
        "stop_id,stop_lat,stop_lon,parent_station\nA,0,0.00,\nB,,,S\nC,,,\nD,0,0.03,\nS,0,0.01,\n"
    )
    found = read_gtfs(town(stops=stops), day=DAY)
    assert dirt(found) == {"place_of_station": 1, "stop_without_place": 1}


def test_a_stop_at_zero_zero_far_from_all_others_counts_as_without_coordinates(town):
    stops = "stop_id,stop_lat,stop_lon\nA,-17,145.70\nB,0,0\nC,-17,145.72\nD,-17,145.73\n"
    found = read_gtfs(town(stops=stops), day=DAY)
    assert dirt(found) == {"stop_without_place": 1}
    assert np.abs(found.x0).max() < 5_000


def test_a_stop_beyond_the_poles_names_its_line(town):
    folder = town(stops=FEED["stops.txt"].replace("C,Charlie,0,0.02", "C,Charlie,95,190"))
    with pytest.raises(InputError, match="longitude beyond ±180") as caught:
        read_gtfs(folder)
    assert caught.value.where == f"{folder}/stops.txt:4"


def test_a_town_on_the_date_line_is_one_town(town):
    stops = "stop_id,stop_lat,stop_lon\nA,0,179.985\nB,0,179.995\nC,0,-179.995\nD,0,-179.985\n"
    found = read_gtfs(town(stops=stops), day=DAY)
    expected = read_gtfs(town(), day=DAY)
    assert np.allclose(found.x0, expected.x0, atol=1e-3)


def test_a_trip_that_is_repeated_from_a_time_to_the_same_is_counted(town):
    frequencies = "trip_id,start_time,end_time,headway_secs\nback,10:00:00,10:00:00,600\n"
    found = read_gtfs(town(frequencies=frequencies), day=DAY, blocks="trip")
    assert found.changes["never_repeated"] == 1


def test_repeated_trips_may_go_on_after_midnight(town):
    frequencies = "trip_id,start_time,end_time,headway_secs\nback,23:00:00,01:00:00,3600\n"
    found = read_gtfs(town(frequencies=frequencies), day=DAY, blocks="trip")
    starts_h = [up_us / 3600 / US for _, up_us, _ in found.presence.tolist()]
    assert starts_h == [8, 23, 24]
    assert dirt(found) == {"past_midnight": 1}


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("back,10:00:00,11:00:00,0", "not a headway"),
        ("back,,11:00:00,60", "repeated without a start"),
        ("back,10:00:00,9999:00:00,60", "more than ten days"),
    ],
)
def test_an_invalid_frequency_is_refused_with_its_line(town, row, problem):
    folder = town(frequencies=f"trip_id,start_time,end_time,headway_secs\n{row}\n")
    with pytest.raises(InputError, match=problem) as caught:
        read_gtfs(folder, day=DAY)
    assert caught.value.where == f"{folder}/frequencies.txt:2"


@pytest.mark.parametrize("sequence", ["one", "1.5", ""])
def test_a_stop_sequence_that_is_not_a_number_names_its_line(town, sequence):
    folder = town(stop_times=HEAD + f"out,8:00:00,8:00:00,A,{sequence}\n")
    with pytest.raises(InputError, match="`stop_sequence` is no whole number") as caught:
        read_gtfs(folder, day=DAY)
    assert caught.value.where == f"{folder}/stop_times.txt:2"


def test_whole_numbers_with_a_point_and_starts_without_seconds_are_read(town):
    head, *calls = TIMES.splitlines()
    pointed = "\n".join([head, *(f"{call}.0" for call in calls), ""])
    assert same(read_gtfs(town(stop_times=pointed), day=DAY), read_gtfs(town(), day=DAY))
    often = "trip_id,start_time,end_time,headway_secs\nout,8:00,9:00,600\n"
    found = read_gtfs(town(frequencies=often), day=DAY)
    whole = read_gtfs(town(frequencies=often.replace(":00,", ":00:00,")), day=DAY)
    assert same(found, whole)
    assert dirt(found) == {"no_seconds": 2}


def test_a_column_that_is_there_twice_is_refused(town):
    folder = town(stops=FEED["stops.txt"].replace("stop_name", "stop_lat"))
    with pytest.raises(InputError, match="two columns `stop_lat`") as caught:
        read_gtfs(folder, day=DAY)
    assert caught.value.where == f"{folder}/stops.txt:1"


def test_a_headway_of_a_second_all_day_is_refused_before_it_is_driven(town):
    rows = "".join(f"{trip},0:00:00,48:00:00,1\n" for trip in ("out", "back"))
    folder = town(frequencies="trip_id,start_time,end_time,headway_secs\n" + rows)
    with pytest.raises(InputError, match="1 s makes more than 200,000 runs a day") as caught:
        read_gtfs(folder, day=DAY)
    assert caught.value.where == f"{folder}/frequencies.txt:3"


def test_rows_too_short_or_with_commas_at_their_end_are_read(town):
    trips = "route_id,service_id,trip_id,shape_id,block_id\nr1,week,out\nr1,week,back,,,,\n"
    assert same(read_gtfs(town(trips=trips), day=DAY), read_gtfs(town(), day=DAY))


def test_a_quote_that_is_never_closed_does_not_swallow_the_rest(town):
    stops = FEED["stops.txt"].replace("Bravo", '"Bravo') + "".join(
        f"E{i},Echo,0,0.03\n" for i in range(40)
    )
    with pytest.raises(InputError, match="a quote is opened and not closed"):
        read_gtfs(town(stops=stops), day=DAY)


def test_duplicate_and_orphan_rows_are_counted(town):
    changed = {
        "trips": FEED["trips.txt"] + "r1,sat,out,,\n",
        "stops": FEED["stops.txt"] + "A,Again,5,5\n",
        "stop_times": TIMES + "ghost,8:00:00,8:00:00,A,1\n",
    }
    found = read_gtfs(town(**changed), day=DAY)
    assert same(found, read_gtfs(town(), day=DAY))
    assert dirt(found) == {"duplicate_trip": 1, "duplicate_stop": 1, "unknown_trip": 1}


def test_a_time_without_seconds_is_one_of_whole_minutes(town):
    found = read_gtfs(town(stop_times=TIMES.replace("8:31:00,8:31:00", "8:31,8:31")), day=DAY)
    assert same(found, read_gtfs(town(), day=DAY))
    assert dirt(found) == {"no_seconds": 2}


def test_strict_mode_refuses_all_repairs_in_one_error(town):
    folder = town(
        trips=FEED["trips.txt"].replace("out,,", "out,s9,"),
        stop_times=TIMES.replace("8:10:00,8:11:00", "7:10:00,7:11:00"),
    )
    with pytest.raises(InputErrors) as caught:
        read_gtfs(folder, day=DAY, strict=True)
    assert [error.where for error in caught.value.errors] == [
        f"{folder}/stop_times.txt:3",
        f"{folder}/trips.txt:2",
    ]
    assert "`missing_shape`" in caught.value.errors[1].hint


def test_strict_mode_reads_a_clean_feed_unchanged(town):
    assert same(read_gtfs(town(), day=DAY, strict=True), read_gtfs(town(), day=DAY))


def test_the_service_day_and_its_trips_are_reported(town):
    detected_format = read_gtfs(town()).detected_format
    assert detected_format.facts == {
        "day": "2024-01-04",
        "trips": 3,
        "stops": 4,
        "runs": 3,
        "vehicles": 2,
    }
    assert "--day" in detected_format.assumed[0]
    assert read_gtfs(town(), day=DAY).detected_format.assumed == ()


@pytest.mark.parametrize(
    ("feed", "facts", "mended"),
    [
        ("gtfs_cairns/cairns_gtfs.zip", (636, 416, 636, 43), {}),
        ("gtfs_more/poa.zip", (194, 212, 194, 32), {"past_midnight": 4}),
        ("gtfs_more/saopaulo.zip", (92, 3039, 6057, 559), {}),
    ],
)
def test_every_real_feed_is_read(shared_data, feed, facts, mended):
    found = read_gtfs(shared_data / feed)
    counts = ("trips", "stops", "runs", "vehicles")
    assert tuple(found.detected_format.facts[name] for name in counts) == facts
    assert dirt(found) == mended
