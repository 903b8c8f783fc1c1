"""Files without a header whose order of columns is not the documented one: recognised or refused.

Each of these was read with exit code 0 into a trace whose nodes or times made no sense.
"""

from __future__ import annotations

import pytest

from beforehand.errors import InputError
from beforehand.mobility.read import detect, read
from beforehand.mobility.tables.names import WHOLE
from beforehand.mobility.trace import Trace

SNAP = "9 8 1217567877\n1 1 1217573801\n13 1 1217606247\n17 1 1217617639\n48 2 1217618182\n"
RATINGS = "6,2,4,1289241911.7\n6,5,2,1289241941.5\n1,15,1,1289243140\n4,3,7,1289245277\n"
INTERNAL = "582 364 0\n168 472 2797\n168 912 3304\n2 790 4523\n2 322 7926\n364 582 9000\n"
HAGGLE = "3 21574 21687\n9 21578 21687\n3 21900 21900\n12 21990 22100\n9 22200 22400\n"
HAGGLE_BY_ID = "3 100 220\n3 400 520\n3 700 700\n9 100 340\n9 460 580\n9 900 1020\n"
WEIGHTS = "1 2 1 10\n2 3 1 20\n3 1 1 25\n1 4 1 25\n2 4 1 40\n"
GRID = "0 1 5 6\n0 2 7 9\n0 3 2 8\n10 1 6 8\n10 2 7 7\n10 3 3 8\n"


def written(tmp_path, text):
    path = tmp_path / "something.dat"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "nodes", "first_us", "line"),
    [
        (SNAP, {"9", "8", "1", "13", "17", "48", "2"}, 1217567857_000000, "a b time"),
        (RATINGS, {"6", "2", "5", "1", "15", "4", "3"}, 1289241891_700000, "a b - time"),
        (INTERNAL, {"582", "364", "168", "472", "912", "2", "790", "322"}, 0, "a b time"),
    ],
    ids=["unix time last", "weight and unix time", "times from zero on, last"],
)
def test_a_pair_before_its_time_is_not_read_as_a_time_before_its_pair(
    tmp_path, text, nodes, first_us, line
):
    trace = read(written(tmp_path, text))
    assert isinstance(trace, Trace)
    assert set(trace.names) == nodes
    assert trace.start_us == first_us
    assert trace.detected_format is not None
    assert any(f"a line is `{line}`" in told for told in trace.detected_format.assumed)


@pytest.mark.parametrize(
    ("text", "problem", "line"),
    [
        (HAGGLE, "one device, whose own name is not in the file: `3 21574 21687`", 1),
        (HAGGLE_BY_ID, "one device", 1),
        ("aa:bb 21574 21687\ncc:dd 21690 21800\n", "one device", 1),
        ("5 1217567877 1217573801\n6 1217567899 1217573901\n", "one device", 1),
        (WEIGHTS, "every contact starts at 1", 1),
        (GRID, "a node and a time with a place", 1),
        ("0 1 5 6\n0.5 1 5 6\n", "would name a node `0.5`", 2),
        ("20 1 2\n40 3 4\n", "may be `time a b` or `a b time`", 1),
        ("5 3 2\n9 8 1\n7 8 3\n1 2 2\n", "neither column 1 nor column 3 is in order", 3),
    ],
)
def test_an_implausible_reading_is_refused_with_its_line_and_the_option_that_decides(
    tmp_path, text, problem, line
):
    path = written(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read(path)
    assert problem in caught.value.problem
    assert caught.value.where == f"{path}:{line}"
    assert "--columns" in caught.value.hint


def test_the_named_columns_decide_where_the_content_cannot(tmp_path):
    path = written(tmp_path, "20 1 2\n40 3 4\n")
    assert read(path, columns="time,a,b").names == ("1", "2", "3", "4")
    assert read(path, columns="a,b,time").names == ("1", "3", "20", "40")
    weights = written(tmp_path, WEIGHTS)
    assert detect(weights, "a,b,weight,time") == "sociopatterns"
    assert read(weights, columns="a,b,weight,time").end_us == 60_000_000
    assert detect(weights, "a,b,start,end") == "contacts"
    assert read(weights, columns="a,b,start,end").names == ("1", "2", "3", "4")
    places = written(tmp_path, GRID)
    assert read(places, columns="time,node,x_km,y_km").names == ("1", "2", "3")
    with pytest.raises(InputError, match="neither places nor two nodes") as caught:
        read(path, columns="x1,time,x2")
    assert caught.value.where == f"columns of {path}"
    with pytest.raises(InputError, match="3 fields under a header of 4"):
        read(written(tmp_path, "20 1 2\n"), columns="time,a,b,weight")


@pytest.mark.parametrize(
    "text",
    [
        "20 1 2\n20 1 3\n20 2 3\n40 1 2\n60 3 4\n",  # every i below its j
        "1247652139 5 7\n1247652159 5 9\n1247652139 7 9\n",  # Unix times, not in order
        "40 454 640\n",
        "0 a b\n20 b c\n40 a d\n",
    ],
)
def test_sightings_in_the_documented_order_are_still_read(tmp_path, text):
    trace = read(written(tmp_path, text))
    assert trace.detected_format is not None
    assert "a line is `time a b`" in trace.detected_format.assumed[0]


def test_a_number_in_two_spellings_is_not_two_nodes(tmp_path):
    path = written(tmp_path, "a,b,start,end\n1,2,0,5\n1.0,3,6,9\n")
    with pytest.raises(InputError, match="are one number, written as two nodes") as caught:
        read(path)
    assert caught.value.where == f"{path}:3"
    assert read(written(tmp_path, "a,b,start,end\n1.0,2.0,0,5\n")).names == ("1.0", "2.0")
    assert not WHOLE.fullmatch("1.5")


def test_message_events_are_not_a_trace(tmp_path):
    with pytest.raises(InputError, match="these are message events"):
        read(written(tmp_path, "5 C M1 1 2 500\n9 C M2 2 1 500\n"))


def test_the_contacts_of_a_plan_of_ion_are_those_of_both_directions(tmp_path):
    plan = """## a plan
a contact +0 +100 1 2 125000
a contact +0 +100 2 1 125000 1.0
a range +0 +100 1 2 1
a contact +200 +300 2 3 9600
"""
    trace = read(written(tmp_path, plan))
    assert (trace.names, trace.contacts.tolist()) == (
        ("1", "2", "3"),
        [[0, 1, 0, 100_000_000], [1, 2, 200_000_000, 300_000_000]],
    )
    assert trace.detected_format is not None
    assert trace.detected_format.format == "ion"
    assert "1 of 3 contacts are planned in one direction" in trace.detected_format.assumed[0]


@pytest.mark.parametrize(
    ("plan", "start_us"),
    [
        ("a contact 2024/05/01-08:00:00 2024/05/01-09:00:00 1 2 9", 1714550400_000000),
        ("@ 2024/05/01-08:00:00\na contact +0 +60 1 2 9", 1714550400_000000),
        ("@ +10\na contact +5 +60 1 2 9", 15_000000),
    ],
)
def test_times_of_a_plan_are_dates_or_count_from_its_reference(tmp_path, plan, start_us):
    assert read(written(tmp_path, f"{plan}\n")).start_us == start_us


@pytest.mark.parametrize(
    ("plan", "problem"),
    [
        ("a contact +9 +5 1 2 9", "ends before it starts"),
        ("a contact +0 +5 1 2", "6 fields where 7"),
        ("a contact +0 +5 1 2 9\nd contact +0 1 2", "deletes contacts"),
        ("a contact +0 +5 1 2 9\na contact 2024/05/01-08:00:00 +5 1 2 9", "before it starts"),
        ("a contact +0 +5 1 2 9\na contact 2024/05/01-08:00:00 2024/05/01-09:00:00 1 2 9", "no `@"),
        ("a contact 2024/13/01-08:00:00 +5 1 2 9\n", "month must be in"),
        ("a range +0 +5 1 2 9\n", "no contact in the plan"),
    ],
)
def test_an_ambiguous_plan_is_refused(tmp_path, plan, problem):
    with pytest.raises(InputError, match=problem):
        read(written(tmp_path, f"{plan}\n"))


def test_escaped_variables_of_a_script_are_nodes(tmp_path):
    plain = '$node_(0) set X_ 1.0\n$ns_ at 2.0 "$node_(0) setdest 20.0 0.0 2.0"\n'
    escaped = '\\$node_(0) set X_ 1.0\n$ns_ at 2.0 \\"\\$node_(0) setdest 20.0 0.0 2.0\\"\n'
    one, two = (read(written(tmp_path, text)) for text in (plain, escaped))
    assert one.names == two.names == ("0",)
    assert one.x1.tolist() == two.x1.tolist()
    assert "skipped_line" not in two.changes
