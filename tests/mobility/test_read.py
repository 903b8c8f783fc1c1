"""`read`: the content decides; ambiguous, unknown or broken files are refused with a hint."""

from __future__ import annotations

import numpy as np
import pytest

from beforehand.errors import InputError
from beforehand.mobility.positions import Positions
from beforehand.mobility.read import READERS, detect, read
from beforehand.mobility.statistics import at_once_max
from beforehand.mobility.trace import Trace
from tests.mobility.formats.test_xml import GPX, SUMO

SAMPLES = {
    "sumo": SUMO,
    "gpx": GPX,
    "ns2": '$node_(0) set X_ 1.0\n$ns_ at 2.0 "$node_(0) setdest 20.0 0.0 2.0"\n',
    "one-events": "# made by The ONE\n0 CONN 14 9 up\n20 CONN 14 9 down\n",
    "one-movement": "0 100 0 500 0 500\n0 1 5 5\n10 1 6 6\n",
    "bonnmotion": "0.0 1.0 2.0 60.0 3.0 4.0\n0.0 5.0 5.0 60.0 5.0 5.0 90.0 1.0 1.0\n",
    "contacts": "# a comment\n1 2 121 500 1 0\n3 2 130 131 1 0\n",
    "ion": "# a plan\na contact +0 +60 1 2 100000\na contact +0 +60 2 1 100000\n",
    "sociopatterns": "1247652139\t95682569\t97124353\n1247652159\t95682569\t97124353\n",
    "csv": "node,t,x,y\na,0,1,2\na,5,2,3\n",
}
OTHER_SPELLINGS = {
    "walkers": ("ns2", "0.0 create 1 5.0 5.0 0.0\n0.0 setdest 1 9 9 0 1.0\n8 destroy 1\n"),
    "classes": ("sociopatterns", "40 454 640 MX MX\n60 454 640 MX MX\n"),
    "header": ("contacts", "a,b,start,end\nann,bob,1,2\n"),
    "lonlat": ("csv", "t,node,lat,lon\n0,a,1,2\n9,a,1,2\n"),
    "z axis": ("one-movement", "0 100 0 500 0 500 0 0\n0 1 5 5 0\n10 1 6 6 0\n"),
}


def written(tmp_path, text):
    path = tmp_path / "something.dat"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [*SAMPLES.items(), *OTHER_SPELLINGS.values()],
    ids=[*SAMPLES, *OTHER_SPELLINGS],
)
def test_the_format_is_detected_from_the_content(tmp_path, name, text):
    path = written(tmp_path, text)
    assert detect(path) == name
    found = read(path)
    assert isinstance(found, Trace | Positions)
    assert len(found.presence) >= 1


def test_there_is_a_sample_for_every_text_format():
    assert set(SAMPLES) == set(READERS) - {"gtfs", "parquet"}


def test_a_list_with_a_contact_the_wrong_way_round_is_still_a_list_and_the_line_is_named(tmp_path):
    path = written(tmp_path, "1 2 10 20\n1 2 40 30\n1 2 50 60\n")
    with pytest.raises(InputError, match="ends before it starts") as caught:
        read(path)
    assert caught.value.where == f"{path}:2"
    alone = written(tmp_path, "1 2 40 30\n")
    with pytest.raises(InputError, match="ends before it starts"):
        read(alone)


def test_a_file_that_fits_two_formats_is_refused_until_the_format_is_given(tmp_path):
    path = written(tmp_path, "0 1 2 3 4 5\n0 1 4 6 8 9\n")
    with pytest.raises(InputError, match="more than one format: `bonnmotion`, `contacts`") as told:
        read(path)
    assert "`contacts`" in told.value.hint
    assert isinstance(read(path, "contacts"), Trace)
    assert isinstance(read(path, format="bonnmotion"), Positions)


@pytest.mark.parametrize("text", ["what is this\nnobody knows\n", "1 2\n3 4\n"])
def test_a_file_that_fits_no_format_is_refused_with_the_list_of_formats(tmp_path, text):
    with pytest.raises(InputError, match="the format is unknown") as caught:
        read(written(tmp_path, text))
    assert all(f"`{name}`" in caught.value.hint for name in READERS)


def test_misuse_is_answered_before_work_starts(tmp_path):
    path = written(tmp_path, SAMPLES["contacts"])
    with pytest.raises(InputError, match="no such format: `excel`"):
        read(path, "excel")
    with pytest.raises(InputError, match="no option `gap`") as caught:
        read(path, gap=5)
    assert caught.value.hint == "its options are `columns`, `presence`, `slot_s`, `strict`"
    with pytest.raises(InputError, match="no such file"):
        read(tmp_path / "nowhere")
    with pytest.raises(InputError, match="nothing in the file"):
        read(written(tmp_path, "# empty\n\n"))


def test_a_file_that_is_not_text_names_the_line(tmp_path):
    path = tmp_path / "latin.txt"
    path.write_bytes("1 2 3 4\né b 3 4\n".encode("latin-1"))
    with pytest.raises(InputError, match="not UTF-8 text: byte 0xe9") as caught:
        read(path)
    assert caught.value.where == f"{path}:2"


def test_options_reach_the_reader(tmp_path):
    trace = read(written(tmp_path, "1 2 0 10\n2 3 20 30\n"), presence="seen")
    assert trace.presence[:, 1:].tolist() == [[0, 10**7], [0, 3 * 10**7], [2 * 10**7, 3 * 10**7]]


def test_real_visitors_of_an_exhibition(shared_data):
    trace = read(shared_data / "infectious_dublin" / "listcontacts_2009_07_15.txt")
    assert isinstance(trace, Trace)
    assert (trace.nodes_count, len(trace.contacts)) == (410, 10494)
    assert trace.changes == {"merged": 17298 - 10494}


def test_real_students_with_bluetooth(shared_data):
    trace = read(next(shared_data.glob("haggle_cambridge_students/*.tsv")))
    assert isinstance(trace, Trace)
    # 10641 connections of both directions, in seconds: the overlapping ones are joined, those that
    # begin and end in the same second are dropped.
    assert sum(trace.changes.values()) + len(trace.contacts) == 10641


def test_real_buses_of_a_whole_city(shared_data):
    positions = read(shared_data / "gtfs_cairns" / "cairns_gtfs.zip", day="2014-06-02")
    assert isinstance(positions, Positions)
    alone = read(shared_data / "gtfs_cairns" / "cairns_gtfs.zip", day="2014-06-02", blocks="trip")
    assert len(alone.names) == 622
    # No schedule can do with fewer vehicles than trips at one time; 10 % more is a fair guess.
    needed = at_once_max(alone.presence[:, 1], alone.presence[:, 2])
    assert needed <= len(positions.names) <= 1.15 * needed
    assert positions.changes["interpolated_time"] == 26
    assert positions.presence[:, 2].max() > 24 * 3600 * 10**6
    way_m = np.hypot(positions.x1 - positions.x0, positions.y1 - positions.y0)
    speed = way_m / (positions.t1_us - positions.t0_us) * 1e6
    assert speed.max() < 50
    trace = positions.contacts_within(200.0)
    assert len(trace.contacts) > 1000
    assert set(trace.changes) == {"same_time", "interpolated_time", "inferred_vehicle"}
