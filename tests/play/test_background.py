"""A map is drawn below the nodes, and a map of another place is refused."""

import json
import re

import numpy as np
import pytest

from beforehand.cli import main
from beforehand.errors import InputError
from beforehand.mobility import geo
from beforehand.mobility.positions import Positions
from beforehand.mobility.read import read
from beforehand.play.background import with_map
from beforehand.play.encode import encode
from beforehand.play.gather import gather_run, trace_run
from tests.play.made_up import SECOND_US, write_log

WALK = "node,t,x,y\na,0,0,0\na,60,100,50\nb,0,100,50\nb,60,0,0\n"
STREETS = """LINESTRING (0 0, 100 50)
MULTILINESTRING ((0 0, 0 50, 100 50), (50 0, 50 50))
POLYGON ((10 10, 20 10, 20 20, 10 10), (12 12, 14 12, 14 14, 12 12))
POINT (3 4)
LINESTRING (9000 9000, 9100 9000)
"""


@pytest.fixture
def walk(tmp_path):
    path = tmp_path / "walk.csv"
    path.write_text(WALK)
    places = read(path, "csv")
    assert isinstance(places, Positions)
    return trace_run(places.contacts_within(10), places, 10.0, "walk")


def decoded(run):
    head, _ = encode(run)
    return {column["name"]: column["n"] for column in head["columns"]}


def test_lines_of_a_map_in_wkt_reach_the_page(walk, tmp_path):
    path = tmp_path / "streets.wkt"
    path.write_text(STREETS)
    run = with_map(walk, path, None)
    assert [len(line) for line in run.background] == [2, 3, 2, 4, 4]
    assert run.background[1].tolist() == [[0, 0], [0, 50], [100, 50]]
    assert "1 of 6 lines of the map lie apart" in run.notes
    columns = decoded(run)
    assert (columns["map.points"], columns["map.x"], columns["map.y"]) == (5, 15, 15)
    assert "map.x" not in decoded(walk)


def test_ways_of_openstreetmap_are_projected_around_the_centre(walk, tmp_path):
    path = tmp_path / "town.osm"
    nodes = {1: (18.0, 59.0), 2: (18.001, 59.0), 3: (18.0, 59.0005)}
    rows = [f'<node id="{n}" lon="{lon}" lat="{lat}"/>' for n, (lon, lat) in nodes.items()]
    way = '<way id="{}"><nd ref="1"/><nd ref="{}"/><nd ref="99"/><tag k="{}" v="x"/></way>'
    rows += [way.format(1, 2, "highway"), way.format(2, 3, "building")]
    path.write_text(f"<osm>{''.join(rows)}</osm>")
    (line,) = with_map(walk, path, (18.0, 59.0)).background
    east, _ = geo.project_around(np.array([18.001]), np.array([59.0]), 18.0, 59.0)
    assert line.tolist() == [[0, 0], [east[0], 0]]
    with pytest.raises(InputError, match="a map in degrees"):
        with_map(walk, path, None)
    with pytest.raises(InputError, match="the map covers x, y"):
        with_map(walk, path, (11.0, 48.0))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<osm/>", "no WKT"),
        ("LINESTRING (0 0, 1)", "no points"),
        ("LINESTRING (0 0, 1 x)", "no WKT"),
        ("POINT (1 2)", "no line in the map"),
        ("LINESTRING EMPTY", "no line in the map"),
        ("LINESTRING (9000 9000, 9100 9000)", "the map covers x, y 9000..9100, 9000..9000 m"),
    ],
)
def test_a_file_that_is_no_map_of_the_run_is_refused(walk, tmp_path, text, problem):
    path = tmp_path / "streets.wkt"
    path.write_text(text)
    with pytest.raises(InputError, match=re.escape(problem)):
        with_map(walk, path, None)


def test_a_run_without_places_takes_no_map(tmp_path):
    log = write_log(tmp_path / "log.parquet", [(0, 0, 0, 0, 1), (SECOND_US, 0, 2, 0, 1)])
    (tmp_path / "streets.wkt").write_text(STREETS)
    with pytest.raises(InputError, match="no plane for a map"):
        with_map(gather_run(log), tmp_path / "streets.wkt", None)


def test_the_command_writes_a_page_with_a_map(tmp_path, capsys):
    (tmp_path / "walk.csv").write_text(WALK)
    (tmp_path / "streets.wkt").write_text(STREETS)
    page = tmp_path / "play.html"
    command = ["play", str(tmp_path / "walk.csv"), "--range", "10m", "--out", str(page)]
    assert main([*command, "--background", str(tmp_path / "streets.wkt"), "--json"]) == 0
    assert "1 of 6 lines of the map lie apart" in json.loads(capsys.readouterr().out)["notes"]
    assert '"map.points"' in page.read_text()
    assert main([*command, "--background", "x.osm", "--centre", "200,3"]) == 2
    assert "no place: `200,3`" in capsys.readouterr().err
