"""Contact lists: reading, repairs, refusals, and lossless writing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from beforehand.errors import InputError, InputErrors
from beforehand.mobility.formats.contacts_list import read_contacts, write_contacts
from beforehand.mobility.trace import make_trace

NAMES = st.text(
    st.characters(exclude_characters="\r\n", exclude_categories=("Cs",)), min_size=1, max_size=8
)


def read_text(tmp_path, text, **options):
    path = tmp_path / "contacts.txt"
    path.write_text(text, encoding="utf-8")
    return read_contacts(path, **options)


@pytest.mark.parametrize(
    "text",
    [
        "a b 1 2.5\nb c 3 4\n",
        "a,b,1,2.5\nb,c,3,4\n",
        "a, b, 1, 2.5\n\n# a comment\nb ,c ,3, 4\n",
        "node1 node2 start end\na b 1 2.5\nb c 3 4\n",
        "a\tb\t1\t2.5\t1\t0\nb\tc\t3\t4\t1\t77\n",
        '"a","b",1,2.5\r\n"b","c",3,4\r\n',
        "\ufeffb a 1 2.5\nc b 3 4",
    ],
)
def test_every_spelling_gives_the_same_trace(tmp_path, text):
    trace = read_text(tmp_path, text)
    assert trace.names == ("a", "b", "c")
    assert trace.contacts.tolist() == [[0, 1, 1_000_000, 2_500_000], [1, 2, 3_000_000, 4_000_000]]
    assert trace.changes == {}


def test_times_are_exact_to_the_microsecond(tmp_path):
    trace = read_text(tmp_path, "a b 1247652139.123457 9007199254.740993\na b 0.1 8.2\n")
    assert trace.contacts[:, 2:].tolist() == [
        [100_000, 8_200_000],
        [1_247_652_139_123_457, 9_007_199_254_740_993],  # one more than a float can hold
    ]


def test_a_contact_that_ends_before_it_starts_names_file_and_line(tmp_path):
    with pytest.raises(InputError) as caught:
        read_text(tmp_path, "# from the lab\na b 0 1\n\na b 9 3.5\n")
    assert caught.value.problem == "contact ends before it starts: from 9 to 3.5"
    assert caught.value.where == f"{tmp_path / 'contacts.txt'}:4"


def test_all_problems_of_a_file_are_listed_together(tmp_path):
    with pytest.raises(InputErrors) as caught:
        read_text(tmp_path, "a b 0 1\na b\na b 1 x\n,b,1,2\na b nan 2\na b -1 2\na b 1 1e300\n")
    found = [(error.where.rpartition(":")[2], error.problem) for error in caught.value.errors]
    assert found == [
        ("2", "2 fields where at least 4 are needed"),
        ("3", "not a time in seconds: `x`"),
        ("4", "a node without a name"),
        ("5", "not a time in seconds: `nan`"),
        ("6", "a time before zero: `-1`"),
        ("7", "a time beyond the year 9999 in seconds: `1e300`"),
    ]


def test_a_file_that_is_wrong_throughout_does_not_flood_the_screen(tmp_path):
    with pytest.raises(InputErrors) as caught:
        read_text(tmp_path, "a b 2 1\n" * 500)
    assert len(caught.value.errors) == 21
    assert caught.value.errors[-1].problem == "stopped after 20 problems; there may be more"


def test_one_bad_number_in_the_first_line_is_not_taken_for_a_header(tmp_path):
    with pytest.raises(InputError, match="not a time in seconds: `1O`"):
        read_text(tmp_path, "a b 1O 20\na b 30 40\n")


def test_a_file_without_contacts_is_refused(tmp_path):
    with pytest.raises(InputError, match="no contacts"):
        read_text(tmp_path, "# nothing\n")


def test_faulty_lines_are_repaired_and_counted(tmp_path):
    text = "a b 0 10\nb a 5 12\na b 12 13\na a 1 2\na c 7 7\n"
    trace = read_text(tmp_path, text)
    assert trace.contacts.tolist() == [[0, 1, 0, 13_000_000]]
    assert trace.changes == {"merged": 2, "self_contact": 1, "zero_length": 1}


def test_presence_is_the_whole_time_or_the_observed_time(tmp_path):
    text = "a b 0 10\nb c 20 30\n"
    assert read_text(tmp_path, text).presence.tolist() == [
        [0, 0, 30_000_000],
        [1, 0, 30_000_000],
        [2, 0, 30_000_000],
    ]
    assert read_text(tmp_path, text, presence="seen").presence.tolist() == [
        [0, 0, 10_000_000],
        [1, 0, 30_000_000],
        [2, 20_000_000, 30_000_000],
    ]
    with pytest.raises(InputError, match="no such presence"):
        read_text(tmp_path, text, presence="sometimes")


def test_names_with_numbers_come_in_the_order_of_the_numbers(tmp_path):
    trace = read_text(tmp_path, "b10 b9 0 1\n10 9 0 1\nb9 010 0 1\n")
    assert trace.names == ("9", "010", "10", "b9", "b10")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    names=st.lists(NAMES, min_size=2, max_size=5, unique=True),
    rows=st.lists(
        st.tuples(
            st.integers(0, 4), st.integers(0, 4), st.integers(0, 10**16), st.integers(1, 10**9)
        ),
        min_size=1,
    ),
)
def test_written_contacts_are_read_back_exactly(tmp_path, names, rows):
    last = len(names) - 1
    raw = [(min(a, last), min(b, last), up, up + lasts) for a, b, up, lasts in rows]
    trace = make_trace(names, np.array(raw))
    path = tmp_path / "written.csv"
    write_contacts(trace, path)
    again = read_contacts(path)
    assert _named(again) == _named(trace)
    assert _there(again) == _there(trace)
    assert again.changes == {}


def _named(trace):
    return sorted(
        (*sorted((trace.names[a], trace.names[b])), up, down)
        for a, b, up, down in trace.contacts.tolist()
    )


def _there(trace):
    return sorted((trace.names[node], up, down) for node, up, down in trace.presence.tolist())


def test_a_node_without_presence_keeps_its_name(tmp_path):
    trace = read_text(tmp_path, "a b 0 10\nb c 5 5\n", presence="seen")
    assert len(trace.presence) == 2
    write_contacts(trace, tmp_path / "written.csv")
    again = read_contacts(tmp_path / "written.csv")
    assert again.names == trace.names == ("a", "b", "c")
    assert again.presence.tolist() == trace.presence.tolist()


def test_a_name_that_is_no_line_of_text_is_not_written(tmp_path):
    trace = make_trace(["a\nb", "c"], np.array([[0, 1, 0, 1]]))
    with pytest.raises(InputError, match="not a name"):
        write_contacts(trace, tmp_path / "written.csv")
