"""Message events: The ONE's lines and tables give one traffic, and nothing else is guessed."""

from __future__ import annotations

import pytest

from beforehand.errors import InputError, InputErrors
from beforehand.mobility.formats.message_events import read_message_events

THE_ONE = """# from The ONE
100.5 C M2 p7 p2 500k
10 CONN p7 p2 up
20 C M1 3 4 1024
20 C M3 p7 4 1MiB 10
"""
TABLE = "size;source;time\n500000;p7;100.5\n1024;3;20\n1048576;p7;20\n"


def written(tmp_path, text):
    path = tmp_path / "messages.txt"
    path.write_text(text)
    return path


def test_events_of_the_one_and_a_table_give_the_same_broadcasts_in_order_of_time(tmp_path):
    found = read_message_events(written(tmp_path, THE_ONE))
    assert [row[:3] for row in found.rows] == [
        (20_000_000, "3", 1024),
        (20_000_000, "p7", 2**20),
        (100_500_000, "p7", 500_000),
    ]
    assert [row.line for row in found.rows] == [4, 5, 2]
    assert found.changes == {"skipped_line": 1}
    table = read_message_events(str(written(tmp_path, TABLE)))
    assert [row[:3] for row in table.rows] == [row[:3] for row in found.rows]
    assert table.detected_format.columns == {"time": "time", "source": "source", "size": "size"}


def test_all_wrong_lines_are_reported_together_with_their_numbers(tmp_path):
    path = written(tmp_path, "1 C M1 a b 10\n2 C M2 a b ten\nx C M3 a b 5\n3 Z M4 a b 5\n")
    with pytest.raises(InputErrors) as caught:
        read_message_events(path)
    assert [error.where for error in caught.value.errors] == [f"{path}:{n}" for n in (2, 3, 4)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("# only this\n", "nothing in the file"),
        ("1 2 3\n4 5 6\n", "no message event and no header"),
        ("0 CONN a b up\n5 CONN a b down\n", "no message event and no header"),
        ("time,source\n1,a\n", "no message event and no header"),
        ("time,source,target\n1,a,b\n", "no column for `size`"),
        ("time,source,node,size\n1,a,b,5\n", "two columns for `source`"),
        ("time,source,size\n", "no broadcast in the file"),
        ("time,source,size\n1,a,-5\n", "not a size in bytes: `-5`"),
        ("time,source,size\n1,,5\n", "a broadcast without a source"),
        ("time,source,size\n1,a\n", "2 fields under a header of 3"),
    ],
)
def test_a_file_of_no_known_traffic_format_is_refused_with_the_known_formats(
    tmp_path, text, problem
):
    with pytest.raises(InputError, match=problem):
        read_message_events(written(tmp_path, text))
