"""From a scenario to its results: every stage in turn, each with what is missing and no more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from beforehand.mobility.statistics import at_once_max
from beforehand.pipeline.plan import make_plan
from beforehand.pipeline.positions import make_positions, read_presence, read_trace
from beforehand.pipeline.publish import publish
from beforehand.pipeline.scenario import Scenario, read_scenario
from beforehand.pipeline.work import Work, plan_work, write_index
from beforehand.sim.protocols import PROTOCOLS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Tell = Callable[[str], None]

BULK_RECEPTIONS = 1_500_000
"""From here on the figures, which Java computes, take longer than starting it."""


@dataclass(frozen=True)
class Summary:
    """What a scenario came to."""

    name: str
    title: str
    out: Path
    runs: list[dict[str, Any]]
    """The rows of the dataset `runs`."""
    computed: dict[str, int]
    """How many datasets of each stage were missing and are there now."""

    @property
    def state(self) -> str:
        """The worst verdict on a protocol that promises causal order."""
        states = {row["verdict"] for row in self.runs if PROTOCOLS[row["protocol"]].is_causal}
        return next((state for state in ("invalid", "unknown") if state in states), "valid")


def run_scenario(
    path: Path,
    out: Path,
    *,
    seeds: int | None = None,
    overrides: Sequence[str] = (),
    master: str | None = None,
    remote: str | None = None,
    tell: Tell = lambda _: None,
) -> Summary:
    """Compute what is missing of a scenario, and put its results into `out`.

    master, remote: where Spark runs; on a cluster, `out` must be a folder that all machines share.
    Without anything to compute, Spark is not started. tell: is told what is being done.
    """
    scenario = read_scenario(path, seeds=seeds, overrides=overrides)
    work = plan_work(out, scenario)
    write_index(out, scenario, work)
    computed = {
        stage: sum(not dataset.exists for dataset in datasets)
        for stage, datasets in work.by_stage().items()
    }
    _load(scenario, work, tell)
    if any(computed[stage] for stage in ("contacts", "events", "verdicts", "metrics")):
        _compute(scenario, work, master, remote, tell)
    return Summary(scenario.name, scenario.title, out, publish(out, scenario, work), computed)


def _load(scenario: Scenario, work: Work, tell: Tell) -> None:
    """The stages that need no Spark."""
    for seed, dataset in work.positions.items():
        if not dataset.exists:
            tell(f"positions: {scenario.source.generator or scenario.source.path}, seed {seed}")
            make_positions(dataset, scenario.source, seed)
    if not work.plan.exists:
        make_plan(work.plan, work.runs)


def _compute(
    scenario: Scenario, work: Work, master: str | None, remote: str | None, tell: Tell
) -> None:
    from beforehand.spark.session import open_session

    app = f"beforehand {scenario.name}"
    with open_session(master, remote, app=app, small=_is_small(work)) as spark:
        _find_contacts(spark, scenario, work, tell)
        _simulate(spark, work, tell)
        _verify(spark, work, tell)
        _measure(spark, work, tell)


def _is_small(work: Work) -> bool:
    """Whether fewer receptions are to be expected than make up for a slower start of Java."""
    receptions = 0
    for run in work.runs:
        _, presence = read_presence(work.positions[run.spec.seed])
        _, up_us, down_us = presence.T
        traffic = run.spec.traffic
        spoken = np.maximum(down_us - up_us - traffic.first_us, 0) // traffic.period_us + 1
        # Everybody who is there at one time hears of everything, which is about right.
        receptions += int(spoken.sum()) * at_once_max(up_us, down_us)
    return receptions < BULK_RECEPTIONS


def _find_contacts(spark: SparkSession, scenario: Scenario, work: Work, tell: Tell) -> None:
    from beforehand.pipeline.contacts import make_contacts
    from beforehand.spark.progress import progress_bar

    for seed, trace in work.traces.items():
        if not trace.exists:
            assert scenario.source.range_m is not None, "only places lead to a missing trace"
            tell(f"contacts: within {scenario.source.range_m:g} m, seed {seed}")
            with progress_bar(spark, "contacts"):
                make_contacts(spark, trace, work.positions[seed], scenario.source.range_m)


def _simulate(spark: SparkSession, work: Work, tell: Tell) -> None:
    from beforehand.pipeline.simulate import simulate, watched_node
    from beforehand.spark.progress import progress_bar

    missing = [run for run in work.runs if not run.events.exists]
    if not missing:
        return
    for run in missing:
        watched_node(read_trace(run.trace), run.watched)  # or an error now, before anything runs
    tell(f"events: {len(missing)} of {len(work.runs)} simulations to do")
    with progress_bar(spark, "events"):
        simulate(spark, missing).collect()


def _verify(spark: SparkSession, work: Work, tell: Tell) -> None:
    from beforehand.pipeline.verdicts import commit_verdict, make_blocks, verify
    from beforehand.spark.progress import progress_bar

    pairs = zip(work.runs, work.verdicts, strict=True)
    missing = [(run, verdict) for run, verdict in pairs if not verdict.exists]
    if not missing:
        return
    tell(f"verdicts: {len(missing)} of {len(work.runs)} runs to verify")
    blocks = [block for pair in missing for block in make_blocks(*pair)]
    with progress_bar(spark, "verdicts"):
        judged = [row.asDict() for row in verify(spark, blocks).collect()]
    for run, verdict in missing:
        commit_verdict(run, verdict, [row for row in judged if row["run"] == run.name])


def _measure(spark: SparkSession, work: Work, tell: Tell) -> None:
    from beforehand.pipeline.metrics import make_metrics
    from beforehand.spark.progress import progress_bar

    if not work.metrics.exists:
        tell(f"metrics: {len(work.runs)} runs")
        with progress_bar(spark, "metrics"):
            make_metrics(spark, work.metrics, work.runs, work.verdicts)
