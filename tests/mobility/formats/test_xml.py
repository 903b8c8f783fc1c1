"""SUMO's floating car data and GPX tracks: positions, presence, and ambiguous input."""

from __future__ import annotations

import pytest

from beforehand.errors import InputError
from beforehand.mobility.positions import Positions
from beforehand.mobility.read import detect, read

SUMO = """<?xml version="1.0" encoding="UTF-8"?>
<!-- generated -->
<fcd-export xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
    <timestep time="0.00"><vehicle id="v0" x="0" y="0" speed="9"/><person id="p" x="200" y="0"/>
    </timestep>
    <timestep time="1.00"><vehicle id="v0" x="10" y="0"/><person id="p" x="200" y="0"/></timestep>
    <timestep time="2.00"><person id="p" x="200" y="0"/></timestep>
    <timestep time="3.00"><vehicle id="v0" x="30" y="0"/><person id="p" x="200" y="0"/></timestep>
    <timestep time="4.00"><vehicle id="v0" x="40" y="0"/><person id="p" x="200" y="0"/></timestep>
</fcd-export>
"""
GPX = """<?xml version="1.0"?>
<gpx xmlns="http://www.topografix.com/GPX/1/1"><metadata><name>all</name></metadata>
<wpt lat="1" lon="1"><name>a place</name></wpt>
<trk><name>ann</name><trkseg>
<trkpt lat="0" lon="0"><ele>3</ele><time>1970-01-01T00:00:00Z</time></trkpt>
<trkpt lat="0" lon="0.001"><time>1970-01-01T00:00:10Z</time></trkpt></trkseg><trkseg></trkseg>
<trkseg><trkpt lat="0" lon="0.001"><time>1970-01-01T00:01:00Z</time></trkpt>
<trkpt lat="0" lon="0"><time>1970-01-01T00:01:10+00:00</time></trkpt></trkseg></trk>
<trk><trkseg>
<trkpt lat="0" lon="0"><time>1970-01-01T00:00:05Z</time></trkpt>
<trkpt lat="0" lon="0"><time>1970-01-01T00:01:05Z</time></trkpt></trkseg></trk>
</gpx>
"""


def written(tmp_path, text, name="trace.xml"):
    path = tmp_path / name
    path.write_text(text)
    return path


def stays(found):
    assert isinstance(found, Positions)
    return [(found.names[n], up // 10**6, down // 10**6) for n, up, down in found.presence.tolist()]


def test_a_vehicle_of_sumo_is_there_while_time_steps_list_it(tmp_path):
    path = written(tmp_path, SUMO)
    assert detect(path) == "sumo"
    found = read(path)
    assert stays(found) == [("p", 0, 4), ("v0", 0, 1), ("v0", 3, 4)]
    assert found.x1[found.node == 1].tolist() == [10, 40]
    assert found.detected_format is not None
    assert found.detected_format.format == "sumo"


def test_sumo_coordinates_that_may_be_degrees_are_refused_without_a_setting(tmp_path):
    path = written(tmp_path, SUMO.replace('x="200"', 'x="0.2"'))
    with pytest.raises(InputError, match="may be metres or degrees") as caught:
        read(path)
    assert "--places degrees" in caught.value.hint
    assert read(path, places="metres").x1.max() == 40
    assert read(path, places="degrees").x1.max() > 10**6
    close = written(tmp_path, SUMO.replace('x="', 'x="0.'))
    with pytest.raises(InputError, match="look like degrees"):
        read(close)
    with pytest.raises(InputError, match="no such places: `feet`"):
        read(path, places="feet")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (SUMO.replace('x="10"', 'x="ten"'), "in `<vehicle>` at 1 s: not a number: `ten`"),
        (SUMO.replace(' id="v0"', "", 1), "no attribute 'id'"),
        (SUMO.replace('time="2.00"', 'time="-2"'), "a time before zero"),
        (SUMO[:-20], "broken XML"),
        (SUMO.replace("<!-- generated -->", "<!DOCTYPE x>"), "document type"),
        ("<fcd-export></fcd-export>", "no vehicle in the file"),
        ("<osm version='0.6'><node id='1'/></osm>", "XML of an unknown kind: `<osm>`"),
        ("<gpx><rte><rtept lat='1' lon='1'/></rte></gpx>", "no track with points"),
        (GPX.replace('lat="0"', 'lat="91"', 1), "a point of track 1: a latitude beyond"),
        (GPX.replace("<time>1970-01-01T00:00:10Z</time>", ""), "a point of track 1: not a time"),
        (GPX.replace("<name>ann</name>", "<name>track 2</name>"), "`track 2` has two tracks at"),
    ],
)
def test_a_broken_document_is_refused_with_its_place(tmp_path, text, problem):
    with pytest.raises(InputError) as caught:
        read(written(tmp_path, text))
    assert problem in caught.value.problem


def test_a_track_of_gpx_is_a_node_that_is_away_between_its_segments(tmp_path):
    found = read(written(tmp_path, GPX))
    assert stays(found) == [("ann", 0, 10), ("track 2", 5, 65), ("ann", 60, 70)]
    assert abs(found.x1 - found.x0).max() == pytest.approx(111.19, abs=0.01)
    assert stays(read(written(tmp_path, GPX), gap_s=20)) == [("ann", 0, 10), ("ann", 60, 70)]


def test_every_file_of_a_folder_of_tracks_is_a_node(tmp_path):
    track = GPX.replace('<trk><trkseg>\n<trkpt lat="0" lon="0"><time>1970-01-01T00:00:05Z', "<x>")
    one = track[: track.index("<x>")] + "</gpx>"
    written(tmp_path, one, "bob.gpx")
    written(tmp_path, one, "cem.gpx")
    assert detect(tmp_path) == "gpx"
    found = read(tmp_path)
    assert stays(found) == [("bob", 0, 10), ("cem", 0, 10), ("bob", 60, 70), ("cem", 60, 70)]
    assert found.contacts_within(10.0).contacts[:, 2:].tolist() == [
        [0, 10_000_000],
        [60_000_000, 70_000_000],
    ]
