"""In strict mode, each repair of a trace is refused with its line."""

from __future__ import annotations

import pytest

from beforehand.cli import main
from beforehand.errors import InputError
from beforehand.mobility.read import READERS, read
from tests.mobility.formats.test_xml import GPX, SUMO

CONTACTS = "a b 0 5\nc c 1 4\na b 3 9\na d 7 7\nb a 20 30\n"
STAYED = (
    "a,b,start,end,kind\na,,0,10,presence\nb,,5,20,presence\n"
    "a,b,6,8,contact\na,b,8.5,12,contact\na,b,15,18,contact\n"
)
EVENTS = (
    "1 CONN a b up\n2 CONN a b up\n3 MSG x y\n4 CONN c d down\n5 CONN a b down\n6 CONN a b down\n"
    "5 CONN e f up\n7 CONN e e up\n9 CONN e e down\n"
)
POINTS = "node,t,x,y\na,0,0,0\na,0,5,0\nb,3,1,1\na,9,5,5\n"
MOVED = "0 9 0 9 0 9\n0 a 0 0\n0 a 5 0\n3 b 1 1\n9 a 5 5\n"
NS2 = '$god_ on\n$node_(0) set X_ 5\n$ns_ at 2 "$node_(0) setdest 9 9 1"\n'
BONN = "0 0 0 9 5 5\n9 1 1\n"

# format, content, the lines that are refused, with what each would be counted as
CASES = [
    ("contacts", CONTACTS, {2: "self_contact", 3: "merged", 4: "zero_length"}),
    ("contacts", STAYED, {5: "clipped_to_presence", 6: "outside_presence"}),
    ("sociopatterns", "20 a b\n20 b a\n40 a -1\n40 c c\n", {3: "saw_nobody", 4: "self_contact"}),
    (
        "one-events",
        EVENTS,
        {2: "duplicate_up", 3: "skipped_line", 4: "unmatched_down", 7: "never_down", 9: "self"},
    ),
    ("one-events", EVENTS, {7: "out_of_order"}),
    ("csv", POINTS, {2: "duplicate_position", 4: "never_present"}),
    ("one-movement", MOVED, {2: "duplicate_position", 4: "never_present"}),
    ("ns2", NS2, {1: "skipped_line"}),
    ("ns2", "0 create x 1 1\n0 destroy x\n0 create a 1 1\n9 destroy a\n", {1: "never_present"}),
    ("bonnmotion", BONN, {2: "never_present"}),
]


def told_by(error):
    return list(getattr(error, "errors", (error,)))


@pytest.mark.parametrize(("format", "content", "refused"), CASES)
def test_strict_mode_refuses_repairs_with_their_lines(tmp_path, format, content, refused):
    path = tmp_path / "trace"
    path.write_text(content)
    mended = read(path, format).changes
    with pytest.raises(InputError) as caught:
        read(path, format, strict=True)
    told = told_by(caught.value)
    for line, kind in refused.items():
        here = [error for error in told if error.where == f"{path}:{line}"]
        assert any(f"`{kind}" in error.hint for error in here), told
    # Neither is anything told that would not be mended, nor anything mended that is not told; that
    # slots are joined is what the format means.
    known = {error.hint.split("`")[3] for error in told}
    assert known == set(mended) - ({"merged"} if format == "sociopatterns" else set())
    counted = [error for error in told if "`merged`" not in error.hint]
    assert len(counted) == sum(n for kind, n in mended.items() if kind != "merged")


CLEAN = {
    "contacts": "a b 0 5\nb c 3 9\na b 7 8\n",
    "sociopatterns": "20 a b\n40 b a\n60 a c\n",
    "ion": "a contact +0 +60 1 2 9\na contact +0 +60 2 3 9\n",
    "sumo": SUMO,
    "gpx": GPX,
    "one-events": "1 CONN a b up\n5 CONN a b down\n6 CONN a b up\n7 CONN a b down\n",
    "csv": "node,t,x,y\na,0,0,0\na,9,5,0\n",
    "one-movement": "0 9 0 9 0 9\n0 a 0 0\n9 a 5 5\n",
    "ns2": "0 create a 1 1\n9 destroy a\n",
    "bonnmotion": "0 0 0 9 5 5\n0 1 1\n",
}


def test_every_format_can_be_read_strictly():
    assert {*CLEAN, "gtfs", "parquet"} == set(READERS)


@pytest.mark.parametrize("format", CLEAN)
def test_strict_mode_reads_a_clean_trace_unchanged(tmp_path, format):
    path = tmp_path / "trace"
    path.write_text(CLEAN[format])
    loose, found = read(path, format), read(path, format, strict=True)
    assert (loose.names, loose.presence.tolist()) == (found.names, found.presence.tolist())


def test_many_lines_are_cut_and_counted(tmp_path, capsys):
    path = tmp_path / "trace"
    path.write_text("a b 0 5\n" * 40)
    assert main(["contacts", str(path), "--strict"]) == 2
    told = capsys.readouterr().err
    assert f"{path}:2" in told
    assert "and 19 more of such problems" in told


def test_a_requested_slot_is_no_repair(tmp_path):
    path = tmp_path / "trace"
    path.write_text("a b 5 5\nb c 100 200\n")
    assert main(["-q", "contacts", str(path), "--strict"]) == 2
    assert main(["-q", "contacts", str(path), "--strict", "--slot", "20s"]) == 0
