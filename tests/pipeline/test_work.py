"""The plan of a scenario: stages, tasks and names of datasets, before anything runs."""

from __future__ import annotations

import dataclasses

import pyarrow.parquet as pq
import pytest

from beforehand.errors import InputError
from beforehand.pipeline.contacts.positions import make_positions, read_trace, write_trace
from beforehand.pipeline.contacts.simulate import RunFacts, simulate, watched_node
from beforehand.pipeline.experiment import load_experiment, read_scenario, world_names
from beforehand.pipeline.work import Progress, is_done, plan_work, read_progress, write_index
from beforehand.pipeline.worlds.contacts import EXPERIMENT, traces_of

STAGES = [stage.name for stage in EXPERIMENT.stages()]

SCENARIO = """\
[mobility]
generator = "waypoint"
range = "100m"
nodes = 8
hours = 0.1

[[protocols]]
name = "delta"
lifetimes = ["1m", "5m"]

[[protocols]]
name = "causal"

[sweep]
seeds = 2

[gauges]
period = "10s"
"""
CONTACTS = "ann bob 0 100\nbob cem 50 300\nann cem 200 250\n"


@pytest.fixture
def work_of(tmp_path):
    def plan(text=SCENARIO, **options):
        path = tmp_path / "try.toml"
        path.write_text(text)
        return plan_work(tmp_path, EXPERIMENT, read_scenario(path, **options))

    return plan


def names_of(work, stage):
    return {job.name for job in work[stage]}


@pytest.mark.parametrize("world", world_names())
def test_each_stage_reads_only_earlier_stages(world):
    before = []
    for stage in load_experiment(world, where="").stages():
        assert set(stage.inputs) <= set(before)
        before.append(stage.name)


def test_every_stage_has_its_datasets(work_of):
    counts = {stage: len(jobs) for stage, jobs in work_of().jobs.items()}
    assert list(counts.items()) == [
        *(("positions", 2), ("contacts", 2)),
        *(("events", 6), ("verdicts", 6), ("metrics", 6)),
    ]


def test_the_longest_runs_come_first(work_of):
    labels = [run.task.label for run in work_of()["events"]]
    assert labels[:2] == ["causal-s1", "causal-s2"]
    assert labels[-2:] == ["delta-1m-s1", "delta-1m-s2"]


def test_one_more_lifetime_leaves_the_other_runs_as_they_are(work_of):
    before, after = work_of(), work_of(SCENARIO.replace('"5m"', '"5m", "3m"'))
    assert names_of(before, "events") < names_of(after, "events")
    assert names_of(before, "verdicts") < names_of(after, "verdicts")
    assert names_of(before, "contacts") == names_of(after, "contacts")
    assert names_of(before, "metrics") < names_of(after, "metrics")


def test_another_seed_adds_to_the_runs(work_of):
    assert names_of(work_of(), "events") < names_of(work_of(seeds=3), "events")


@pytest.mark.parametrize(
    ("setting", "stages"),
    [
        ("mobility.nodes=9", {"positions", "contacts", "events", "verdicts", "metrics"}),
        ("mobility.range=90m", {"contacts", "events", "verdicts", "metrics"}),
        ("network.latency=3ms", {"events", "verdicts", "metrics"}),
        ("gauges.node=3", {"events", "verdicts", "metrics"}),
        ("scenario.title=other", set()),
    ],
)
def test_a_setting_changes_only_the_stages_that_depend_on_it(work_of, setting, stages):
    before, after = work_of(), work_of(overrides=[setting])
    changed = {s for s in STAGES if names_of(before, s).isdisjoint(names_of(after, s))}
    assert changed == stages
    for stage in set(STAGES) - stages:
        assert names_of(before, stage) == names_of(after, stage)


def test_contacts_of_a_file_are_one_trace_for_all_seeds(work_of, tmp_path):
    (tmp_path / "met.txt").write_text(CONTACTS)
    text = '[mobility]\ninput = "met.txt"\n[[protocols]]\nname = "causal"\n[sweep]\nseeds = 3\n'
    work = work_of(text)
    assert [len(work[stage]) for stage in ("positions", "contacts", "events")] == [1, 0, 3]
    before = names_of(work, "events")
    (tmp_path / "met.txt").write_text(CONTACTS + "ann bob 290 299\n")
    assert names_of(work_of(text), "events").isdisjoint(before)


def test_progress_counts_finished_datasets(work_of, tmp_path):
    with pytest.raises(InputError, match=r"no `plan.json`"):
        read_progress(tmp_path)
    work = work_of()
    write_index(work, read_scenario(tmp_path / "try.toml"))
    first, second = work.datasets("events")[:2]
    first.commit()
    second.folder.mkdir()  # as left behind by a run that was killed
    there = {
        progress.stage: (progress.there, progress.wanted) for progress in read_progress(tmp_path)
    }
    assert there["events"] == (1, 6)
    assert there["metrics"] == (0, 6)


@pytest.mark.parametrize(
    ("written", "problem"),
    [("{", "not a plan"), ('{"stages": {}}', "not a plan"), (None, "no such world: `moon`")],
)
def test_a_foreign_plan_is_refused(work_of, tmp_path, written, problem):
    write_index(work_of(), read_scenario(tmp_path / "try.toml"))
    path = tmp_path / "plan.json"
    path.write_text(written or path.read_text().replace('"contacts",', '"moon",'))
    with pytest.raises(InputError, match=problem) as refused:
        read_progress(tmp_path)
    assert refused.value.where == str(path)
    assert refused.value.hint


def test_a_trace_comes_back_as_it_was_written(work_of, tmp_path):
    work = work_of()
    scenario = read_scenario(tmp_path / "try.toml")
    trace = scenario.options["mobility"].load(1).contacts_within(100)
    dataset = traces_of(scenario, work)[0, 1]
    dataset.commit(*write_trace(dataset, trace))
    again = read_trace(dataset)
    assert again.names == trace.names
    assert again.contacts.tolist() == trace.contacts.tolist()
    assert again.presence.tolist() == trace.presence.tolist()


def test_a_simulation_writes_every_column_that_later_stages_read(work_of, tmp_path):
    (tmp_path / "met.txt").write_text(CONTACTS)
    text = SCENARIO.replace('generator = "waypoint"', 'input = "met.txt"')
    for line in ('range = "100m"\n', "nodes = 8\n", "hours = 0.1\n"):
        text = text.replace(line, "")
    work = work_of(text + 'node = "cem"\n')
    (positions,), run = work["positions"], work["events"][0]
    positions.dataset.commit(*make_positions(positions))
    rows, facts = simulate(run)
    events = pq.read_table(run.dataset.file("events.parquet"))
    assert rows == events.num_rows
    assert set(events["run"].to_pylist()) == {run.name}
    assert isinstance(facts, RunFacts)
    assert facts.deliveries == events["kind"].to_pylist().count("deliver") > 10
    assert (facts.nodes, facts.contacts) == (3, 3)
    assert facts.frames > 0
    assert facts.cpu_s > 0
    gauges = pq.read_table(run.dataset.file("gauges.parquet"))
    assert set(gauges["node"].to_pylist()) == {2}
    assert set(gauges["run"].to_pylist()) == {run.name}


def test_the_watched_node_is_named_numbered_or_there_longest(work_of, tmp_path):
    work_of()
    trace = read_scenario(tmp_path / "try.toml").options["mobility"].load(1).contacts_within(100)
    trace = dataclasses.replace(trace, names=tuple("abcdefgh"))
    assert watched_node(trace, "c") == 2
    assert watched_node(trace, 5) == 5
    shorter = trace.presence.copy()
    shorter[shorter[:, 0] != 6, 2] -= 1
    assert watched_node(dataclasses.replace(trace, presence=shorter), None) == 6
    for wanted in ("z", 8, -1):
        with pytest.raises(InputError, match="no node to watch"):
            watched_node(trace, wanted)


@pytest.mark.parametrize(
    ("stages", "expected"),
    [
        ([], False),
        ([Progress("events", 0, 0)], False),
        ([Progress("events", 1, 2)], False),
        ([Progress("events", 2, 2), Progress("metrics", 0, 1)], False),
        ([Progress("events", 2, 2), Progress("metrics", 0, 0)], True),
    ],
)
def test_a_plan_is_done_if_it_is_not_empty_and_all_its_datasets_exist(stages, expected):
    assert is_done(stages) is expected
