"""Run a scenario: execute its stages in order, and compute only the missing datasets."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from beforehand.errors import LocalError
from beforehand.files import check_folder_target
from beforehand.pipeline.experiment import Experiment, Row, State, load_experiment, read_scenario
from beforehand.pipeline.publish import publish
from beforehand.pipeline.stages import (
    AsTasks,
    Followers,
    Job,
    Made,
    Missing,
    OpenSpark,
    Stage,
    Work,
)
from beforehand.pipeline.work import Progress, plan_work, write_index
from beforehand.scenario.shipped import find_scenario

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Note = Callable[[str], None]


@dataclass(frozen=True)
class Summary:
    """The outcome of a scenario."""

    experiment: Experiment
    name: str
    title: str
    out: Path
    state: State
    rows: list[Row]
    """The rows of the `Conclusion`."""
    computed: dict[str, int]
    """The number of datasets that this run computed, by stage."""


@dataclass(frozen=True)
class SparkPlace:
    """The Spark session to use: the caller's session, or one that the pipeline opens."""

    master: str | None
    remote: str | None
    conf: Mapping[str, str] | None
    spark: SparkSession | None
    ships: bool

    def __post_init__(self) -> None:
        if self.spark is not None and (self.master or self.remote or self.conf or self.ships):
            hint = "pass `spark` without `master`, `remote`, `conf` and `ship`"
            raise LocalError("an existing session cannot be moved", hint=hint)

    @property
    def is_elsewhere(self) -> bool:
        """Whether tasks run, or may run, on other machines."""
        if self.spark is None and not self.master:
            return bool(self.remote)
        from beforehand.spark.executors import has_executors, is_local

        return has_executors(self.spark) if self.spark else not is_local(self.master or "")

    def open(self, app: str, *, small: bool) -> AbstractContextManager[SparkSession]:
        """Return a session as a context manager. On exit only the pipeline's own session is
        stopped."""
        if self.spark is not None:
            return nullcontext(self.spark)
        from beforehand.spark.session import open_session

        return open_session(
            self.master, self.remote, app=app, small=small, conf=self.conf, ships=self.ships
        )

    def check(self, session: SparkSession, out: Path) -> None:
        """Refuse executors that run other code or do not share the results folder."""
        if self.is_elsewhere:
            from beforehand.spark.executors import check_executors

            check_executors(session, out)


def run_scenario(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    seeds: int | None = None,
    overrides: Sequence[str] = (),
    master: str | None = None,
    remote: str | None = None,
    conf: Mapping[str, str] | None = None,
    spark: SparkSession | None = None,
    ship: bool = False,
    note: Note = lambda _: None,
) -> Summary:
    """Compute the missing datasets of a scenario, and publish its results in `out`.

    path: a TOML file, or the name of a scenario of the package.
    out: the folder of the results; made if there is none.
    seeds, overrides: instead of the scenario's own; settings such as `network.announce=5s`.
    master, remote: where Spark runs; on a cluster, all machines must share the folder `out`.
    conf: Spark settings.
    spark: an existing session to use instead of a new one; it is left as it was.
    ship: send this package to the executors of a cluster.
    note: called with progress messages.

    If nothing is missing, Spark is not started.
    """
    place = SparkPlace(master, remote, conf, spark, ship)
    folder, file = Path(out), find_scenario(path)
    check_folder_target(folder)
    scenario = read_scenario(file, seeds=seeds, overrides=overrides)
    experiment = load_experiment(scenario.world, where=str(file))
    work = plan_work(folder, experiment, scenario)
    write_index(work, scenario)
    missing = work.missing()
    with ExitStack() as stack:

        @functools.cache
        def session() -> SparkSession:
            small = experiment.is_small(missing)
            found = stack.enter_context(place.open(f"beforehand {scenario.name}", small=small))
            place.check(found, folder)
            return found

        if any(missing.values()) and place.is_elsewhere:
            session()  # report a misconfigured cluster before computing anything
        _compute(experiment, work, missing, session, note)
    end = experiment.conclude(scenario, work)
    publish(folder, scenario, end)
    done = {stage: len(jobs) for stage, jobs in missing.items()}
    return Summary(experiment, scenario.name, scenario.title, folder, end.state, end.rows, done)


def look_ahead(
    path: Path, out: Path, *, seeds: int | None = None, overrides: Sequence[str] = ()
) -> list[Progress]:
    """Return for each stage how many of its datasets `out` already holds. Write nothing."""
    scenario = read_scenario(path, seeds=seeds, overrides=overrides)
    work = plan_work(out, load_experiment(scenario.world, where=str(path)), scenario)
    missing = work.missing()
    return [
        Progress(stage, len(jobs) - len(missing[stage]), len(jobs))
        for stage, jobs in work.jobs.items()
    ]


def _compute(
    experiment: Experiment, work: Work, missing: Missing, spark: OpenSpark, note: Note
) -> None:
    stages, made = experiment.stages(), set[str]()
    for stage in stages:
        jobs = work[stage.name]
        to_do = [job for job in missing[stage.name] if job.name not in made]
        if to_do:
            stage.check(to_do)
            note(f"{stage.name}: {len(to_do)} of {len(jobs)} to do")
            if isinstance(stage.maker, AsTasks):
                followers = _followers(stage, stages, missing)
                made |= stage.maker.make_with(stage.name, to_do, spark, followers)
            else:
                stage.maker.make(stage.name, to_do, spark)
        known = [job.dataset.manifest().facts for job in jobs]
        for sentence in known[0].get("sentences", ()) if known else ():
            note(f"{stage.name}: {sentence}")
        if cpu_s := sum(facts.get("cpu_s", 0.0) for facts in known):
            note(f"{stage.name}: {cpu_s:.1f} CPU seconds in all")


def _followers(stage: Stage, stages: Sequence[Stage], missing: Missing) -> Followers:
    """Return the missing datasets that the tasks of a stage can make as well."""
    found: dict[str, list[tuple[Callable[[Job], Made | None], Job]]] = {}
    for later in stages:
        if later.follow is not None and later.inputs == (stage.name,):
            for job in missing[later.name]:
                (source,) = job.inputs
                found.setdefault(source.name, []).append((later.follow, job))
    return found
