"""From a scenario to its results: every stage in turn, each with what is missing and no more."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from beforehand.errors import LocalError
from beforehand.files import check_folder_target
from beforehand.pipeline.experiment import Experiment, Row, State, load_experiment, read_scenario
from beforehand.pipeline.publish import publish
from beforehand.pipeline.stages import Missing, OpenSpark, Work
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


@dataclass(frozen=True)
class Place:
    """Where Spark runs: in a session of the user's, or in one of our own."""

    master: str | None
    remote: str | None
    conf: Mapping[str, str] | None
    spark: SparkSession | None

    def __post_init__(self) -> None:
        if self.spark is not None and (self.master or self.remote or self.conf):
            problem = "a session is where it is: pass `spark` without `master`, `remote` and `conf`"
            raise LocalError(problem)

    @property
    def is_elsewhere(self) -> bool:
        """Whether tasks run on other machines, or might."""
        if self.spark is None and not self.master:
            return bool(self.remote)
        from beforehand.spark.executors import has_executors, is_local

        return has_executors(self.spark) if self.spark else not is_local(self.master or "")

    def open(self, app: str, *, small: bool) -> AbstractContextManager[SparkSession]:
        """A session of ours is stopped on the way out; one of the user's stays as it is."""
        if self.spark is not None:
            return nullcontext(self.spark)
        from beforehand.spark.session import open_session

        return open_session(self.master, self.remote, app=app, small=small, conf=self.conf)

    def check(self, session: SparkSession, out: Path) -> None:
        """Refuse executors that run other code or do not share the folder of the results."""
        if self.is_elsewhere:
            from beforehand.spark.executors import check_executors

            check_executors(session, out)


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
    place = Place(master, remote, conf, spark)
    check_folder_target(out)
    scenario = read_scenario(path, seeds=seeds, overrides=overrides)
    experiment = load_experiment(scenario.world, where=str(path))
    work = plan_work(out, experiment, scenario)
    write_index(work, scenario)
    missing = work.missing()
    with ExitStack() as stack:

        @functools.cache
        def session() -> SparkSession:
            small = experiment.is_small(missing)
            opened = place.open(f"beforehand {scenario.name}", small=small)
            found = stack.enter_context(opened)
            place.check(found, out)
            return found

        if any(missing.values()) and place.is_elsewhere:
            session()  # what is wrong with a cluster is told before anything is computed
        _compute(experiment, work, missing, session, tell)
    conclusion = experiment.conclude(scenario, work)
    publish(out, scenario, conclusion)
    state, rows = conclusion.state, conclusion.rows
    computed = {stage: len(jobs) for stage, jobs in missing.items()}
    return Summary(experiment, scenario.name, scenario.title, out, state, rows, computed)


def look_ahead(
    path: Path, out: Path, *, seeds: int | None = None, overrides: Sequence[str] = ()
) -> list[Progress]:
    """How much of a scenario is in `out` already. Nothing is written."""
    scenario = read_scenario(path, seeds=seeds, overrides=overrides)
    work = plan_work(out, load_experiment(scenario.world, where=str(path)), scenario)
    missing = work.missing()
    return [
        Progress(stage, len(jobs) - len(missing[stage]), len(jobs))
        for stage, jobs in work.jobs.items()
    ]


def _compute(
    experiment: Experiment, work: Work, missing: Missing, spark: OpenSpark, tell: Tell
) -> None:
    for stage in experiment.stages():
        jobs, to_do = work[stage.name], missing[stage.name]
        if to_do:
            stage.check(to_do)
            tell(f"{stage.name}: {len(to_do)} of {len(jobs)} to do")
            stage.maker.make(stage.name, to_do, spark)
        known = [job.dataset.manifest().facts for job in jobs]
        for sentence in known[0].get("told", ()) if known else ():
            tell(f"{stage.name}: {sentence}")
        if cpu_s := sum(facts.get("cpu_s", 0.0) for facts in known):
            tell(f"{stage.name}: {cpu_s:.1f} CPU seconds in all")
