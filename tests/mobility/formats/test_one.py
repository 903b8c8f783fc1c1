"""The ONE: overlapping connections are counted, movement is relative to its header."""

from __future__ import annotations

import pytest

from beforehand.errors import InputError
from beforehand.mobility.formats.one import read_one_events, read_one_movement

US = 1_000_000


def test_connections_of_a_pair_that_overlap_are_one_until_the_last_is_down(tmp_path):
    path = tmp_path / "events.txt"
    path.write_text(
        "0 CONN 1 2 up\n3 CONN 2 1 up\n5 CONN 1 2 down\n9 CONN 2 1 down btInterface\n"
        "10 CONN 1 2 up\n11 CONN 1 2 down\n"
    )
    trace = read_one_events(path)
    assert trace.contacts.tolist() == [[0, 1, 0, 9 * US], [0, 1, 10 * US, 11 * US]]
    assert trace.changes == {"duplicate_up": 1}


def test_inconsistent_events_are_repaired_and_counted(tmp_path):
    path = tmp_path / "events.txt"
    path.write_text(
        "4 CONN a b down\n5 CONN a b up\n5 C M1 a b 100\n7 CONN c d up\n6 CONN a b down\n"
    )
    trace = read_one_events(path)
    assert trace.contacts.tolist() == [[0, 1, 5 * US, 6 * US]]
    assert trace.changes == {
        "skipped_line": 1,
        "out_of_order": 1,
        "unmatched_down": 1,
        "never_down": 1,
        "zero_length": 1,
    }


def test_a_broken_event_names_its_line(tmp_path):
    path = tmp_path / "events.txt"
    path.write_text("0 CONN 1 2 up\n1 CONN 1 2 sideways\n")
    with pytest.raises(InputError, match="sideways") as caught:
        read_one_events(path)
    assert caught.value.where == f"{path}:2"


def test_movement_is_relative_to_the_header(tmp_path):
    path = tmp_path / "movement.txt"
    path.write_text("100 200 10 500 20 600\n100 7 10 20\n150 7 60 20\n150 8 11 21\n200 8 11 21\n")
    positions = read_one_movement(path)
    assert positions.names == ("7", "8")
    assert positions.presence.tolist() == [[0, 0, 50 * US], [1, 50 * US, 100 * US]]
    assert [positions.x0[0], positions.y0[0], positions.x1[0]] == [0, 0, 50]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1 2 3\n0 a 1 1\n", "3 numbers in the header"),
        ("5 9 0 1 0 1\n4 a 0 0\n6 a 0 0\n", "before the minTime"),
        ("0 9 0 1 0 1\n4 a 0 inf\n", "not a finite number"),
        ("0 9 0 1 0 1\n", "no movement"),
    ],
)
def test_movement_that_makes_no_sense_is_refused(tmp_path, text, problem):
    path = tmp_path / "movement.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=problem):
        read_one_movement(path)


def test_real_haggle_events_are_the_union_of_both_directions(shared_data):
    path = next(shared_data.glob("haggle_cambridge_students/*.tsv"))
    trace = read_one_events(path)
    assert (trace.nodes_count, trace.end_us) == (36, 987_529 * US)
    assert trace.changes["duplicate_up"] == 3048
    assert trace.contacts.tolist() == _unions(path)


def _unions(path):
    """The same from intervals instead of counts: each direction by itself is clean."""
    open_, spans = {}, {}
    for line in path.read_text().splitlines():
        time, _, a, b, state = line.split()
        if state == "up":
            open_[a, b] = int(time) * US
        else:
            pair = tuple(sorted((int(a), int(b))))
            spans.setdefault(pair, []).append((open_.pop((a, b)), int(time) * US))
    rows = []
    for (a, b), pairs in spans.items():
        merged = []
        for up, down in sorted(pairs):
            if merged and up <= merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], down)
            else:
                merged.append([up, down])
        rows += [[a, b, up, down] for up, down in merged if up < down]
    return sorted(rows, key=lambda row: (row[2], row[3], row[0], row[1]))
