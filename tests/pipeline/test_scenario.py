"""Scenario files: their content, and the errors of a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from beforehand.errors import InputError, InputErrors
from beforehand.pipeline.contacts.plan import specs_of
from beforehand.pipeline.experiment import read_scenario
from beforehand.scenario.shipped import FOLDER
from beforehand.sim.contacts.run import Spec
from beforehand.sim.contacts.traffic import Traffic

SCENARIOS = FOLDER
MINUTE_US = 60_000_000

GOOD = """\
[mobility]
generator = "crowd"

[[protocols]]
name = "causal"
"""


def write(folder, text):
    path = folder / "try.toml"
    path.write_text(text)
    return path


def problems_of(path, **options):
    with pytest.raises(InputError) as caught:
        read_scenario(path, **options)
    return getattr(caught.value, "errors", (caught.value,))


def specs_in(path, **options):
    return list(specs_of(read_scenario(path, **options), 1))


def lifetimes_of(name):
    specs = specs_in(SCENARIOS / f"{name}.toml")
    return [(s.protocol, s.lifetime_us and s.lifetime_us // MINUTE_US) for s in specs]


def test_the_scenarios_of_the_paper_run_its_lifetimes():
    buses = [("causal", None), *(("delta", minutes) for minutes in (120, 60, 40, 20, 10))]
    assert lifetimes_of("city-bus") == [*buses, ("none", None)]
    assert lifetimes_of("ostermalm") == [("delta", minutes) for minutes in (20, 15, 10, 5)]


@pytest.mark.parametrize(
    ("name", "period_min", "range_m"), [("city-bus", 20, 200), ("ostermalm", 1, 50)]
)
def test_the_scenarios_of_the_paper_have_its_traffic_and_range(name, period_min, range_m):
    scenario = read_scenario(SCENARIOS / f"{name}.toml")
    traffic = {spec.traffic for spec in specs_of(scenario, 1)}
    assert traffic == {Traffic(20_000_000, period_min * MINUTE_US, 200)}
    assert scenario.options["mobility"].range_m == range_m


@pytest.mark.parametrize("name", ["my-gtfs", "my-contacts"])
def test_the_examples_lack_only_the_input_file(name):
    (problem,) = problems_of(SCENARIOS / f"{name}.toml")
    assert "no such file" in problem.problem
    assert line_at(problem).startswith("input =")


@pytest.mark.parametrize("name", ["my-gtfs", "my-contacts"])
def test_every_commented_setting_of_an_example_is_valid(name, tmp_path):
    lines = (SCENARIOS / f"{name}.toml").read_text().splitlines()
    shown = [line.removeprefix("# ") if " = " in line else line for line in lines]
    (problem,) = problems_of(write(tmp_path, "\n".join(shown)))
    assert "no such file" in problem.problem


def line_at(problem):
    path, _, line = problem.where.rpartition(":")
    return Path(path).read_text().splitlines()[int(line) - 1]


def test_omitted_settings_have_defaults(tmp_path):
    scenario = read_scenario(write(tmp_path, GOOD))
    assert (scenario.name, scenario.title, scenario.paper) == ("try", "try", None)
    assert scenario.seeds == (1,)
    assert scenario.options["gauges"] == {"period": None, "node": None}
    assert list(specs_of(scenario, 7)) == [Spec("causal", seed=7)]


def test_settings_of_the_command_line_override_the_file(tmp_path):
    path = write(tmp_path, GOOD + '[network]\nannounce = "3s"\nlatency = "1ms"\n')
    scenario = read_scenario(path, seeds=3, overrides=["network.announce=5s", "traffic.first=0s"])
    (spec,) = specs_of(scenario, 1)
    assert (spec.layer.announce_us, spec.links.latency_us) == (5_000_000, 1_000)
    assert spec.traffic.first_us == 0
    assert scenario.seeds == (1, 2, 3)
    assert scenario.document["network"]["announce"] == "5s"


def test_settings_take_decimal_units(tmp_path):
    text = GOOD + '[network]\nbandwidth = "1.5MB/s"\nframe = "16kB"\n[traffic]\npayload = "80 B"\n'
    (spec,) = specs_in(write(tmp_path, text))
    assert (spec.links.bytes_per_s, spec.layer.frame_bytes_max) == (1_500_000, 16_000)
    assert spec.traffic.payload_bytes == 80
    (endless,) = specs_in(write(tmp_path, text), overrides=["network.bandwidth=endless"])
    assert endless.links.bytes_per_s is None


def test_all_problems_are_reported_together_with_their_lines(tmp_path):
    text = """\
[scenario]
name = "Two Words"
colour = "red"

[mobility]
generator = "walkers"
hours = "five"
speed = 3

[traffic]
period = 20

[network]
latency = "2 parsecs"
loss = 0.1

[[protocols]]
name = "causal"
lifetimes = ["20m"]

[[protocols]]
name = "delta"

[[protocols]]
nome = "causal"

[sweeps]
seeds = 0
"""
    problems = problems_of(write(tmp_path, text))
    told = [(int(p.where.rpartition(":")[2]), p.problem) for p in problems]
    expected = [
        (2, "not a plain name"),
        (3, "no such key: `colour`"),
        (7, "`hours`: not a duration"),
        (8, "no such parameter: `speed`"),
        (5, "places need a range"),
        (11, "`period`: a number without a unit"),
        (14, "`latency`: not a duration"),
        (13, "need a retry time"),
        (19, "`causal` has no message lifetimes"),
        (21, "`delta` needs lifetimes"),
        (25, "no such key: `nome`"),
        (24, "a protocol without a `name`"),
        (27, "no such table: `sweeps`"),
    ]
    for line, fragment in expected:
        assert any(at == line and fragment in problem for at, problem in told), (line, fragment)
    assert len(told) == len(expected)


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("[[protocols]]\nname = 'causal'\n", "`generator` or `input`"),
        (GOOD.replace("[mobility]", "[mobility]\ninput = 'x'"), "`generator` or `input`"),
        (GOOD.replace('"crowd"', '"trams"'), "no such choice: `trams`"),
        (GOOD.replace('"crowd"', '"crowd"\nrange = "1m"'), "contacts already"),
        (GOOD.replace('"crowd"', '"crowd"\nformat = "csv"'), "`format` is for an `input`"),
        (GOOD.replace('"crowd"', '"walkers"\nrange = "0m"'), "longer than zero"),
        (GOOD.replace("causal", "casual"), "no such choice: `casual`"),
        (GOOD + "[network]\npush = true\nretry = '5s'\n", "`push` does not go with `retry`"),
        ("[mobility]\ngenerator = 'crowd'\n", "no protocols"),
        (GOOD + "[[protocols]]\nname = 'causal'\n", "a second time"),
        (GOOD + "[[protocols]]\nname = 'delta'\nlifetimes = ['20']\n", "not a duration"),
        (GOOD + "[[protocols]]\nname = 'delta'\nlifetimes = '20m'\n", "not a list"),
        (GOOD + "[[protocols]]\nname = 'vector'\nliteral_barriers = true\n", "no barriers"),
        (GOOD + "[network]\nbandwidth = '1MB'\n", "not a bandwidth"),
        (GOOD + "[network]\nbandwidth = '0B/s'\n", "nothing would ever arrive"),
        (GOOD + "[network]\ncapacity = 0\n", "not a whole number from 1 on"),
        (GOOD + "[network]\neviction = 'newest'\n", "no such choice"),
        (GOOD + "[network]\nloss = 1\n", "not a share"),
        (GOOD + "[traffic]\npayload = '1.5B'\n", "not a whole number of bytes"),
        (GOOD + "[traffic]\nperiod = '0s'\n", "longer than zero"),
        (GOOD + "[sweep]\nseeds = 1.5\n", "not a whole number"),
        ("[scenario]\nworld = 'moon'\n" + GOOD, "no such world: `moon`"),
        (GOOD + "[sweep]\nevents = true\n", "no such key: `events`"),
        ("traffic = 3\n" + GOOD, "`traffic` is no table"),
        ("[mobility\n", "not TOML"),
    ],
)
def test_each_mistake_is_reported(tmp_path, text, fragment):
    (problem,) = problems_of(write(tmp_path, text))
    assert fragment in problem.problem


def test_an_input_is_looked_for_beside_the_scenario(tmp_path):
    (tmp_path / "met.txt").write_text("a b 0 10\nb c 5 20\n")
    path = write(tmp_path, GOOD.replace('generator = "crowd"', 'input = "met.txt"'))
    source = read_scenario(path).options["mobility"]
    assert source.load(1).nodes_count == 3
    assert not source.has_places
    assert source.seeds((1, 2, 3)) == (1,)


def test_a_wrong_format_of_an_input_is_reported(tmp_path):
    (tmp_path / "met.txt").write_text("a b 0 10\n")
    for line, fragment in [('format = "xls"', "no such format"), ("slots = 3", "no such param")]:
        text = GOOD.replace('generator = "crowd"', f'input = "met.txt"\n{line}')
        (problem,) = problems_of(write(tmp_path, text))
        assert fragment in problem.problem
        assert problem.where.endswith(":3")


@pytest.mark.parametrize(
    ("override", "where", "fragment"),
    [
        ("network.announce=soon", "--set network.announce", "not a duration"),
        ("network.speed=3", "--set network.speed", "no such key"),
        ("seeds=3", "", "not a setting"),
        ("protocols.name=x", "--set protocols.name", "no table"),
    ],
)
def test_a_mistake_on_the_command_line_names_its_flag(tmp_path, override, where, fragment):
    (problem,) = problems_of(write(tmp_path, GOOD), overrides=[override])
    assert problem.where == where
    assert fragment in problem.problem


def test_a_missing_scenario_is_reported_without_a_traceback(tmp_path):
    (problem,) = problems_of(tmp_path / "none.toml")
    assert "no such scenario" in problem.problem


def test_several_problems_are_one_error(tmp_path):
    with pytest.raises(InputErrors):
        read_scenario(write(tmp_path, GOOD + "[traffic]\nfirst = 1\nperiod = 2\n"))
