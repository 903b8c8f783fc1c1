"""The source of mobility: a file is identified by its content."""

from __future__ import annotations

import inspect

import pytest

from beforehand.cli import main
from beforehand.scenario.bounds import BOUNDS
from beforehand.scenario.source import GENERATORS, digest_of_input


def test_the_digest_of_an_input_depends_on_content_and_file_names(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "stops.txt").write_text("1,2\n")
    assert digest_of_input(tmp_path / "one") == digest_of_input(tmp_path / "two")
    (tmp_path / "two" / "stops.txt").write_text("1,3\n")
    assert digest_of_input(tmp_path / "one") != digest_of_input(tmp_path / "two")
    (tmp_path / "one" / "stops.txt").rename(tmp_path / "one" / "shapes.txt")
    (tmp_path / "two" / "stops.txt").write_text("1,2\n")
    assert digest_of_input(tmp_path / "one") != digest_of_input(tmp_path / "two")
    file = tmp_path / "one" / "shapes.txt"
    assert digest_of_input(file) != digest_of_input(tmp_path / "one")


@pytest.mark.parametrize(
    ("generator", "line", "problem"),
    [
        ("waypoint", "hours = 1e12", "`hours`: out of bounds: `1e+12`"),
        ("waypoint", "hours = 0", "`hours`: out of bounds: `0`"),
        ("waypoint", "nodes = -3", "`nodes`: out of bounds: `-3`"),
        ("waypoint", "hours = nan", "`hours`: not what it takes: `nan`"),
        ("waypoint", "nodes = 100000\nhours = 8000", "too many steps"),
        ("walkers", "hours = inf", "`hours`: not what it takes: `inf`"),
        ("walkers", "straight = 1", "`straight`: out of bounds: `1`"),
        ("walkers", "entries_per_s = 900\nhours = 100", "too many walkers"),
        ("buses", "lines_count = 0", "`lines_count`: out of bounds: `0`"),
        ("crowd", "nodes_mean = 1e300", "`nodes_mean`: out of bounds: `1e+300`"),
    ],
)
def test_a_parameter_out_of_bounds_is_refused_at_its_line(
    tmp_path, capsys, generator, line, problem
):
    path, contacts = tmp_path / "s.toml", generator == "crowd"
    written = "" if contacts else 'range = "50m"\n'
    protocol = '\n[[protocols]]\nname = "causal"\n'
    path.write_text(f'[mobility]\n{written}generator = "{generator}"\n{line}\n{protocol}')
    assert main(["run", str(path), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert problem in said
    assert f"{path}:{3 if contacts else 4}" in said
    assert not (tmp_path / "out").exists()


def test_every_parameter_has_bounds_and_a_default_within_them():
    for name, make in GENERATORS.items():
        parameters = inspect.signature(make).parameters.values()
        defaults = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
        assert defaults.keys() == BOUNDS[name].keys()
        assert all(BOUNDS[name][key].holds(value) for key, value in defaults.items())
