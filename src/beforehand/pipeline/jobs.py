"""From a scenario to its results: every stage in turn, each with what is missing and no more."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from beforehand.errors import LocalError
from beforehand.files import check_folder_target
from beforehand.pipeline.experiment import Experiment, Row, State, load_experiment, read_scenario
from beforehand.pipeline.publish import publish
from beforehand.pipeline.stages import OpenSpark, Work
from beforehand.pipeline.work import Progress, plan_work, write_index

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Summary:
    """What a scenario came to."""

    experiment: Experiment
    name: str
    title: str
    out: Path
    state: State
    rows: list[Row]
    """What it is about; see `Conclusion`."""
    computed: dict[str, int]
    """How many datasets of each stage were missing and are there now."""


def run_scenario(
    path: Path,
    out: Path,
    *,
    seeds: int | None = None,
    overrides: Sequence[str] = (),
    master: str | None = None,
    remote: str | None = None,
    conf: Mapping[str, str] | None = None,
    spark: SparkSession | None = None,
    tell: Tell = lambda _: None,
) -> Summary:
    """Compute what is missing of a scenario, and put its results into `out`.

    master, remote: where Spark runs; on a cluster, `out` must be a folder that all machines share.
    conf: settings of Spark. spark: a session to work in instead of one of our own; it is left as it
    was. Without anything to compute, Spark is not started. tell: is told what is being done.
    """
    if spark is not None and (master or remote or conf):
        raise LocalError(
            "a session is where it is: pass `spark` without `master`, `remote`, `conf`"
        )
    check_folder_target(out)
    scenario = read_scenario(path, seeds=seeds, overrides=overrides)
    experiment = load_experiment(scenario.world, where=str(path))
    work = plan_work(out, experiment, scenario)
    write_index(work, scenario)
    computed = {
        stage: sum(not job.dataset.exists for job in jobs) for stage, jobs in work.jobs.items()
    }
    with ExitStack() as stack:

        @functools.cache
        def opened() -> SparkSession:
            from beforehand.spark.executors import check_executors, has_executors
            from beforehand.spark.session import open_session

            small, app = experiment.is_small(work), f"beforehand {scenario.name}"
            session = spark or stack.enter_context(
                open_session(master, remote, app=app, small=small, conf=conf)
            )
            if has_executors(session):
                check_executors(session, out)
            return session

        if any(computed.values()) and _is_elsewhere(master, remote, spark):
            opened()  # what is wrong with a cluster is told before anything is computed
        _compute(experiment, work, opened, tell)
    conclusion = experiment.conclude(scenario, work)
    publish(out, scenario, conclusion)
    state, rows = conclusion.state, conclusion.rows
    return Summary(experiment, scenario.name, scenario.title, out, state, rows, computed)


def _is_elsewhere(master: str | None, remote: str | None, spark: SparkSession | None) -> bool:
    """Whether tasks run on other machines, or might."""
    if spark is None and not master:
        return bool(remote)
    from beforehand.spark.executors import has_executors, is_local

    return has_executors(spark) if spark else not is_local(master or "")


def look_ahead(
    path: Path, out: Path, *, seeds: int | None = None, overrides: Sequence[str] = ()
) -> list[Progress]:
    """How much of a scenario is in `out` already. Nothing is written."""
    scenario = read_scenario(path, seeds=seeds, overrides=overrides)
    work = plan_work(out, load_experiment(scenario.world, where=str(path)), scenario)
    return [
        Progress(stage, sum(job.dataset.exists for job in jobs), len(jobs))
        for stage, jobs in work.jobs.items()
    ]


def _compute(experiment: Experiment, work: Work, spark: OpenSpark, tell: Tell) -> None:
    for stage in experiment.stages():
        jobs = work[stage.name]
        missing = [job for job in jobs if not job.dataset.exists]
        if missing:
            stage.check(missing)
            tell(f"{stage.name}: {len(missing)} of {len(jobs)} to do")
            stage.maker.make(stage.name, missing, spark)
        known = [job.dataset.manifest().facts for job in jobs]
        for sentence in known[0].get("told", ()) if known else ():
            tell(f"{stage.name}: {sentence}")
        if cpu_s := sum(facts.get("cpu_s", 0.0) for facts in known):
            tell(f"{stage.name}: {cpu_s:.1f} CPU seconds in all")
