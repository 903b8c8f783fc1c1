"""BonnMotion, plain CSV and SocioPatterns, and the positions that points make."""

from __future__ import annotations

import math

import numpy as np
import pytest

from beforehand.errors import InputError
from beforehand.mobility import geo
from beforehand.mobility.formats.bonnmotion import read_bonnmotion
from beforehand.mobility.formats.csv import read_csv
from beforehand.mobility.formats.sociopatterns import read_sociopatterns
from beforehand.mobility.positions import positions_of_points

US = 1_000_000


def written(tmp_path, text):
    path = tmp_path / "trace.txt"
    path.write_text(text)
    return path


def test_points_become_segments_and_presence():
    positions = positions_of_points(["a", "b", "c"], [1, 0, 1, 0, 1, 2], [0, 5, 10, 9, 40, 3],
                                    [0, 1, 2, 3, 4, 5], [0, 0, 0, 0, 0, 0], gap_us=20)  # fmt: skip
    assert positions.names == ("a", "b")
    assert positions.presence.tolist() == [[1, 0, 10], [0, 5, 9]]
    assert positions.x1.tolist() == [2, 3]
    assert positions.changes == {"never_present": 1}


def test_the_later_row_of_two_sightings_at_one_time_counts():
    positions = positions_of_points(["a"], [0, 0, 0], [0, 10, 10], [0, 1, 7], [0, 0, 0])
    assert positions.x1.tolist() == [7]
    assert positions.changes == {"duplicate_position": 1}


def test_contacts_of_positions_stay_within_the_presence():
    positions = positions_of_points(
        ["a", "b"], [0, 0, 1, 1], [0, 100, 30, 60], [0, 0, 1, 1], [0, 0, 0, 0]
    )
    trace = positions.contacts_within(2.0)
    assert trace.contacts.tolist() == [[0, 1, 30, 60]]
    assert trace.changes == {}


def test_bonnmotion_nodes_rest_until_the_end_of_the_file(tmp_path):
    positions = read_bonnmotion(written(tmp_path, "0 1 2 10 11 2\n0 5 5 4 5 6 4 5 6\n0 7 7\n"))
    assert positions.names == ("0", "1", "2")
    assert positions.presence.tolist() == [[0, 0, 10 * US], [1, 0, 10 * US], [2, 0, 10 * US]]
    (rest,) = np.flatnonzero((positions.node == 1) & (positions.t0_us == 4 * US))
    assert (positions.y0[rest], positions.y1[rest], positions.t1_us[rest]) == (6, 6, 10 * US)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0 1 2 3\n", "not a multiple of 3"),
        ("0 1 2 5 1 2 4 1 2\n", "time goes back in the line: from 5 to 4"),
        ("0 1 2\n0 3 4\n", "no time passes"),
        ("", "no time passes"),
    ],
)
def test_bonnmotion_that_makes_no_sense_is_refused(tmp_path, text, problem):
    with pytest.raises(InputError, match=problem):
        read_bonnmotion(written(tmp_path, text))


def test_csv_takes_columns_by_name_and_breaks_at_gaps(tmp_path):
    text = 't,note,"x",node,y\n0,,0,"a, b",0\n10,,5,"a, b",0\n100,,5,"a, b",0\n110,,6,"a, b",1\n'
    positions = read_csv(written(tmp_path, text), gap_s=60)
    assert positions.names == ("a, b",)
    assert positions.presence.tolist() == [[0, 0, 10 * US], [0, 100 * US, 110 * US]]
    assert positions.x1.tolist() == [5, 6]


def test_csv_in_degrees_comes_out_in_metres(tmp_path):
    text = "node,t,lon,lat\na,0,18.08,59.33\na,60,18.08,59.34\nb,0,18.07,59.33\nb,60,18.09,59.33\n"
    positions = read_csv(written(tmp_path, text))
    north = positions.y1[positions.node == 0] - positions.y0[positions.node == 0]
    east = positions.x1[positions.node == 1] - positions.x0[positions.node == 1]
    assert north[0] == pytest.approx(0.01 / 360 * 40_030_000, rel=1e-3)
    middle = math.cos(math.radians(59.335))
    assert east[0] == pytest.approx(0.02 / 360 * 40_030_000 * middle, rel=1e-3)


def test_the_date_line_does_not_tear_a_town_apart():
    x, _ = geo.project_around(np.array([179.9, -179.9]), np.array([0.0, 0.0]), 179.95, 0.0)
    assert x[1] - x[0] == pytest.approx(0.2 / 360 * 40_030_000, rel=1e-3)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("node,t,x\na,0,1\n", "no column `y`"),
        ("node,t,x,y\na,0,1\n", "3 fields under a header of 4"),
        ("node,t,x,y\na,0,one,2\n", "not a number: `one`"),
        ("node,t,x,y\n,0,1,2\n", "without a name"),
        ("node,t,x,y\n", "no rows"),
    ],
)
def test_csv_that_makes_no_sense_is_refused(tmp_path, text, problem):
    with pytest.raises(InputError, match=problem):
        read_csv(written(tmp_path, text))


def test_slots_without_a_gap_are_one_contact(tmp_path):
    trace = read_sociopatterns(written(tmp_path, "40\t1\t2\n60\t2\t1\n100\t1\t2\n100\t1\t3\n"))
    assert trace.contacts.tolist() == [
        [0, 1, 20 * US, 60 * US],
        [0, 1, 80 * US, 100 * US],
        [0, 2, 80 * US, 100 * US],
    ]
    assert trace.changes == {"merged": 1}


def test_sightings_of_a_file_that_starts_at_zero_count_from_their_time_on(tmp_path):
    path = written(tmp_path, "0 1 2\n10 1 2\n")
    trace = read_sociopatterns(path)
    assert trace.contacts.tolist() == [[0, 1, 0, 30 * US]]
    assert any("from its time on" in text for text in trace.detected_format.assumed)
    late = written(tmp_path, "10 1 2\n")
    assert read_sociopatterns(late, slot_s=5).contacts.tolist() == [[0, 1, 5 * US, 10 * US]]
