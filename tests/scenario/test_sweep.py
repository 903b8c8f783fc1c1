"""`[sweep]` takes any key of mobility, traffic and network, as a grid."""

from __future__ import annotations

import pytest

from beforehand.errors import InputError
from beforehand.pipeline.contacts.plan import plan_runs
from beforehand.pipeline.contacts.points import point_table
from beforehand.pipeline.experiment import load_experiment, read_scenario
from beforehand.pipeline.work import plan_work
from beforehand.pipeline.worlds.contacts import traces_of

HEAD = """\
[mobility]
generator = "waypoint"
nodes = 5

[[protocols]]
name = "causal"

"""


def write(folder, sweep, head=HEAD):
    path = folder / "try.toml"
    path.write_text(f"{head}[sweep]\n{sweep}")
    return path


def read(folder, sweep, head=HEAD, **options):
    return read_scenario(write(folder, sweep, head), **options)


RANGED = HEAD.replace("nodes = 5", 'nodes = 5\nrange = "50m"')


def test_two_swept_keys_make_a_grid(tmp_path):
    scenario = read(tmp_path, 'layer.capacity = [50, 100]\ntraffic.period = ["1m", "5m"]\n', RANGED)
    assert [point.name for point in scenario.points] == [
        "capacity 50, period 1m",
        "capacity 50, period 5m",
        "capacity 100, period 1m",
        "capacity 100, period 5m",
    ]
    specs = [run.spec for _, run in plan_runs(scenario)]
    found = {(spec.layer.capacity, spec.traffic.period_us // 60_000_000) for spec in specs}
    assert found == {(50, 1), (50, 5), (100, 1), (100, 5)}
    assert len({run.label for _, run in plan_runs(scenario)}) == 4


@pytest.mark.parametrize("written", ["network.capacity", '"network.capacity"', "layer.capacity"])
def test_a_swept_key_may_be_written_with_and_without_quotes(tmp_path, written):
    scenario = read(tmp_path, f"{written} = [5, 6]\nseeds = 2\n", RANGED)
    assert [dict(point.values) for point in scenario.points] == [
        {"network.capacity": 5},
        {"network.capacity": 6},
    ]
    assert scenario.seeds == (1, 2)


def test_a_scenario_without_swept_keys_is_one_point(tmp_path):
    scenario = read(tmp_path, "seeds = 3\n", RANGED)
    (point,) = scenario.points
    assert (point.name, dict(point.values)) == ("", {})
    assert not len(point_table(scenario.points))


def test_the_command_line_can_sweep(tmp_path):
    overrides = ["sweep.network.capacity=[5, 6]"]
    scenario = read(tmp_path, "seeds = 1\n", RANGED, overrides=overrides)
    assert [point.name for point in scenario.points] == ["capacity 5", "capacity 6"]


def test_points_with_the_same_mobility_share_a_trace(tmp_path):
    sweep = 'seeds = 2\nmobility.range = ["50m", "100m"]\nnetwork.capacity = [5, 6]\n'
    scenario = read(tmp_path, sweep)
    work = plan_work(tmp_path / "out", load_experiment("contacts", where="x"), scenario)
    assert len(work["positions"]) == 2  # one for each seed
    assert len(work["contacts"]) == 4  # one for each seed and range
    assert len(work["events"]) == len({job.name for job in work["events"]}) == 8
    traces = traces_of(scenario, work)
    assert traces[0, 1] == traces[1, 1] != traces[2, 1]
    for at, run in plan_runs(scenario):
        (job,) = [job for job in work["events"] if job.spec == run]
        assert job.inputs == (traces[at, run.spec.seed],)


def test_numbers_of_swept_values_have_units(tmp_path):
    sweep = (
        'mobility.range = ["50m"]\ntraffic.period = ["5m"]\nnetwork.bandwidth = ["2kB/s"]\n'
        'network.loss = ["5%"]\nnetwork.retry = ["5s"]\nnetwork.eviction = ["random"]\n'
        'traffic.payload = ["1kB"]\nmobility.hours = [2]\n'
    )
    rows = point_table(read(tmp_path, sweep).points).to_pylist()
    found = {row["key"]: (row["value"], row["number"], row["unit"]) for row in rows}
    assert found == {
        "mobility.range": ("50m", 50.0, "m"),
        "mobility.hours": ("2", 2.0, "h"),
        "traffic.period": ("5m", 300.0, "s"),
        "traffic.payload": ("1kB", 1000.0, "B"),
        "network.bandwidth": ("2kB/s", 2000.0, "B/s"),
        "network.loss": ("5%", 0.05, ""),
        "network.retry": ("5s", 5.0, "s"),
        "network.eviction": ("random", None, ""),
    }


@pytest.mark.parametrize(
    ("sweep", "problem", "hint"),
    [
        ("network.capcity = [1, 2]", "no such key: `capcity`", "did you mean `capacity`?"),
        ("netwrk.capacity = [1, 2]", "no table to sweep: `netwrk`", "did you mean `network`?"),
        ("network.capacity = 5", "`capacity`: not a list of values: `5`", "capacity = [...]"),
        ("network.capacity = []", "`capacity`: not a list of values: `[]`", "= [...]"),
        ("network.capacity = [5, 0]", "`capacity`: not a whole number from 1 on: `0`", ""),
        ("network.latency = [5]", "`latency`: a number without a unit: `5`", 'as `"20s"`'),
        ("mobility.nodez = [5]", "no such parameter: `nodez`", "its parameters are"),
        ("mobility.nodes = [5, 6]", "`nodes` is swept and set", "leave it out of `[mobility]`"),
        ("sedes = 3", "no such key: `sedes`", "did you mean `seeds`?"),
        ('traffic.period = ["60s", "1m"]', "two points of the sweep are the same", "leave out"),
        (
            f"network.capacity = {list(range(1, 41))}\ntraffic.payload = {list(range(1, 41))}",
            *("the grid has 1,600 points, of which 1,000 can be run", "sweep fewer"),
        ),
    ],
)
def test_an_error_of_a_sweep_names_file_line_key_and_the_nearest_valid_key(
    tmp_path, sweep, problem, hint
):
    with pytest.raises(InputError) as caught:
        read(tmp_path, sweep, RANGED)
    (found,) = getattr(caught.value, "errors", (caught.value,))
    assert found.problem == problem
    assert hint in found.hint
    line = 9 if "points" in problem else 10
    assert found.where == f"{tmp_path / 'try.toml'}:{line}"
