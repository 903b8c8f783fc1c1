"""`[traffic]` of a scenario."""

from __future__ import annotations

import pytest

from beforehand.errors import InputError
from beforehand.pipeline.contacts.plan import specs_of
from beforehand.pipeline.experiment import read_scenario
from beforehand.sim.contacts.traffic import Event

CROWD = '[mobility]\ngenerator = "crowd"\n'
FILE = '[mobility]\ninput = "met.txt"\n'
PROTOCOL = '\n[[protocols]]\nname = "causal"\n'


def traffic_of(folder, mobility, traffic):
    (folder / "met.txt").write_text("a b 0 100\nb c 50 200\n")
    path = folder / "try.toml"
    path.write_text(f"{mobility}[traffic]\n{traffic}{PROTOCOL}")
    (spec,) = specs_of(read_scenario(path), 1)
    return spec.traffic


def problems_of(folder, traffic):
    with pytest.raises(InputError) as caught:
        traffic_of(folder, CROWD, traffic)
    return getattr(caught.value, "errors", (caught.value,))


def test_periodic_traffic_has_a_phase_by_default_on_a_file_and_none_on_a_generator(tmp_path):
    assert traffic_of(tmp_path, FILE, "").phase
    assert not traffic_of(tmp_path, CROWD, "").phase
    assert not traffic_of(tmp_path, FILE, "phase = false\n").phase
    assert not traffic_of(tmp_path, FILE, 'law = "poisson"\n').phase


def test_sources_are_names_or_a_share(tmp_path):
    assert traffic_of(tmp_path, FILE, 'sources = ["a", "c"]\n').sources == ("a", "c")
    assert traffic_of(tmp_path, FILE, 'sources = "20%"\n').sources == 0.2
    assert traffic_of(tmp_path, FILE, "sources = 1\n").sources == 1.0


@pytest.mark.parametrize(
    "content", ["time,source,size\n3,a,20\n5,b,1000\n", "3 C M1 a b 20\n5 C M2 b a 1k\n"]
)
def test_traffic_from_a_one_simulator_file_has_its_messages(tmp_path, content):
    (tmp_path / "said.txt").write_text(content)
    found = traffic_of(tmp_path, FILE, 'input = "said.txt"\n')
    assert found.law == "file"
    assert found.events == (Event(3_000_000, "a", 20), Event(5_000_000, "b", 1000))


@pytest.mark.parametrize(
    ("traffic", "problem", "line"),
    [
        ('law = "posson"\n', "no such choice: `posson`", 4),
        ('law = "file"\n', "traffic from no file", 4),
        ('payload = "1kB"\ninput = "x"\n', "cannot read the file", 5),
        ('law = "poisson"\nphase = true\n', "`poisson` traffic has no phase", 5),
        ("sources = 0\n", "no node would broadcast", 4),
        ('laww = "poisson"\n', "no such key: `laww`", 4),
    ],
)
def test_an_error_of_traffic_names_its_line(tmp_path, traffic, problem, line):
    (found, *_) = [p for p in problems_of(tmp_path, traffic) if problem in p.problem]
    assert found.where.endswith(f"try.toml:{line}")
    assert found.hint


def test_a_period_beside_a_file_is_refused_not_ignored(tmp_path):
    (tmp_path / "said.txt").write_text("time,source,size\n3,a,20\n")
    (problem,) = problems_of(tmp_path, 'input = "said.txt"\nperiod = "5m"\n')
    assert problem.problem == "`period` does not go with a file"
