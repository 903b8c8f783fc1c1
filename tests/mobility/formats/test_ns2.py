"""ns-2 scripts and KTH's walkers: where a node is after every event."""

from __future__ import annotations

import numpy as np
import pytest

from beforehand.errors import InputError, InputErrors
from beforehand.mobility.formats.ns2 import read_ns2

US = 1_000_000


def read_text(tmp_path, text):
    path = tmp_path / "moves.tcl"
    path.write_text(text)
    return read_ns2(path)


def rows_of(positions):
    columns = positions.segments
    order = np.lexsort((columns.t0_us, columns.node))
    return [
        (
            positions.names[columns.node[i]],
            columns.t0_us[i] / US, columns.x0[i], columns.y0[i],
            columns.t1_us[i] / US, columns.x1[i], columns.y1[i],
        )
        for i in order
    ]  # fmt: skip


def test_a_node_walks_rests_and_is_sent_elsewhere_on_its_way(tmp_path):
    text = (
        "# nodes: 1\n"
        "set opt(x) 100\n"
        "$node_(0) set X_ 10.0\n"
        "$node_(0) set Y_ 0.0\n"
        "$node_(0) set Z_ 0.0\n"
        '$ns_ at 2.0 "$node_(0) setdest 20.0 0.0 2.0"\n'
        '$ns_ at 10.0 "$node_(0) setdest 20.0 8.0 1.0"\n'
        '$ns_ at 14.0 "$node_(0) setdest 20.0 0.0 4.0"\n'
    )
    positions = read_text(tmp_path, text)
    assert rows_of(positions) == [
        ("0", 0, 10, 0, 2, 10, 0),
        ("0", 2, 10, 0, 7, 20, 0),
        ("0", 7, 20, 0, 10, 20, 0),
        ("0", 10, 20, 0, 14, 20, 4),
        ("0", 14, 20, 4, 15, 20, 0),
    ]
    assert positions.changes == {"skipped_line": 1}


def test_walkers_are_present_from_create_to_destroy(tmp_path):
    text = (
        "1.0 create 5 0.0 0.0 0.0\n"
        "1.0 setdest 5 3.0 4.0 0.0 1.0 6.0\n"
        "2.0 create 6 9.0 9.0\n"
        "8.0 destroy 5\n"
        "9.0 setdest 6 9.0 10.0 0.5\n"
        "10.0 create 5 1.0 1.0\n"
        "12.0 destroy 5\n"
    )
    positions = read_text(tmp_path, text)
    assert positions.names == ("5", "6")
    assert positions.presence.tolist() == [
        [0, 1 * US, 8 * US],
        [1, 2 * US, 12 * US],
        [0, 10 * US, 12 * US],
    ]
    assert rows_of(positions)[:2] == [("5", 1, 0, 0, 6, 3, 4), ("5", 6, 3, 4, 8, 3, 4)]
    assert rows_of(positions)[3:5] == [("6", 2, 9, 9, 9, 9, 9), ("6", 9, 9, 9, 11, 9, 10)]


def test_the_order_of_the_lines_is_no_matter_but_for_the_same_instant(tmp_path):
    lines = ["0 create 1 0 0", "0 setdest 1 10 0 1", "4 setdest 1 0 0 2", "9 destroy 1"]
    expected = rows_of(read_text(tmp_path, "\n".join(lines)))
    shuffled = [lines[3], lines[0], lines[2], lines[1]]
    assert rows_of(read_text(tmp_path, "\n".join(shuffled))) == expected
    assert expected[1][3:] == (0, 6, 0, 0)


def test_problems_are_listed_with_their_lines(tmp_path):
    text = '0 create 1 0 x\n$ns_ at 2 "$node_(3) setdest"\n$ns_ at x "$node_(3) setdest 1 2 3"\n'
    with pytest.raises(InputErrors) as caught:
        read_text(tmp_path, text)
    assert [error.where.rpartition(":")[2] for error in caught.value.errors] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0 create 1 0 0\n1 create 1 0 0\n", "created twice"),
        ("0 create 1 0 0\n1 destroy 1\n2 setdest 1 3 3 1\n", "after it was destroyed"),
        ("0 create 1 0 0\n1 setdest 1 3 3 -1\n", "below zero"),
        ("0 create 1 0\n", "needs x y"),
        ("set a b\n", "no movement"),
    ],
)
def test_impossible_movements_are_refused(tmp_path, text, problem):
    with pytest.raises(InputError, match=problem):
        read_text(tmp_path, text)


ONE_EACH = '$ns_ at 5.0 "$node_(0) setdest 10 0 1"\n$ns_ at 6.0 "$node_(1) setdest 20 0 1"\n'


@pytest.mark.parametrize(
    "text",
    [
        ONE_EACH.replace("\n", "; ", 1),
        ONE_EACH.replace("\n", ' ; puts "a; b" ;# and so on\n'),
        ONE_EACH.replace('"$', '"  $'),
        ONE_EACH.replace('1"\n', "1\n"),
    ],
    ids=["two in one line", "others in the line", "spaces in the quote", "no end of the quote"],
)
def test_the_first_of_two_movements_in_one_line_was_lost(tmp_path, text):
    expected = rows_of(read_text(tmp_path, ONE_EACH))
    assert {row[0] for row in expected} == {"0", "1"}
    assert rows_of(read_text(tmp_path, text)) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('$ns_ at [expr 5 + 1] "$node_(0) setdest 9 9 1"\n', "not a movement"),  # it was at time 0
        ('$ns_ at 5.0 "$node_($i) setdest 9 9 1"\n', r"a variable, .*: `\$i`"),
        ('if {$x} {$ns_ at 5.0 "$node_(0) setdest 9 9 1"}\n', "not a movement"),
    ],
)
def test_tcl_with_control_flow_is_refused(tmp_path, text, problem):
    with pytest.raises(InputError, match=problem):
        read_text(tmp_path, text + ONE_EACH)
