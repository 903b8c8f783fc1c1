"""All datasets that a scenario comes to, whether they are there or not. Nothing runs here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from beforehand.errors import InputError
from beforehand.pipeline.datasets import MANIFEST, Dataset, plan_dataset, write_text
from beforehand.pipeline.plan import Run, plan_runs
from beforehand.pipeline.scenario import Scenario
from beforehand.scenario.source import Source

STAGES: dict[str, tuple[str, ...]] = {
    "positions": (),
    "contacts": ("positions",),
    "plan": (),
    "events": ("contacts", "plan"),
    "verdicts": ("events",),
    "metrics": ("events", "verdicts"),
}
"""What each stage reads. A source that has contacts is its own trace, without `contacts`."""

POSITION_SOURCES = ("mobility", "kernels/contacts.py", "pipeline/positions.py")
CONTACT_SOURCES = ("mobility/trace.py", "kernels/contacts.py", "pipeline/contacts.py")
PLAN_SOURCES = ("pipeline/plan.py",)
VERDICT_SOURCES = (
    "kernels/causality.py",
    *("verify/event_log.py", "verify/verdict.py", "pipeline/verdicts.py"),
)
METRIC_SOURCES = ("pipeline/metrics.py", "pipeline/schemas.py")
INDEX = "plan.json"


@dataclass(frozen=True)
class Work:
    """The datasets of one scenario, by stage."""

    positions: Mapping[int, Dataset]
    """By seed; a file is the same for all of them."""
    traces: Mapping[int, Dataset]
    plan: Dataset
    runs: tuple[Run, ...]
    verdicts: tuple[Dataset, ...]
    """In the order of `runs`."""
    metrics: Dataset

    def by_stage(self) -> dict[str, list[Dataset]]:
        """Each dataset once, in the order of the stages."""
        positions = list(dict.fromkeys(d.folder for d in self.positions.values()))
        every = {d.folder: d for d in (*self.positions.values(), *self.traces.values())}
        contacts = [folder for folder in every if folder not in positions]
        return {
            "positions": [every[folder] for folder in positions],
            "contacts": [every[folder] for folder in contacts],
            "plan": [self.plan],
            "events": [run.events for run in self.runs],
            "verdicts": list(self.verdicts),
            "metrics": [self.metrics],
        }


@dataclass(frozen=True)
class Progress:
    """How far a stage is."""

    stage: str
    there: int
    wanted: int


def plan_work(root: Path, scenario: Scenario) -> Work:
    """Every dataset of a scenario below `root`."""
    source = scenario.source
    shared = source.seeds(scenario.seeds)
    positions, traces = {}, {}
    for seed in scenario.seeds:
        own = seed if seed in shared else shared[0]
        positions[seed] = _positions(root, source, own)
        traces[seed] = positions[seed]
        if source.has_places:
            traces[seed] = _contacts(root, positions[seed], source.range_m, f"s{own}")
    runs = plan_runs(root, scenario, traces)
    verdicts = [
        plan_dataset(
            root,
            "verdicts",
            run.label,
            inputs=[run.name],
            parameters={},
            sources=VERDICT_SOURCES,
        )
        for run in runs
    ]
    names = [run.name for run in runs]
    plan = plan_dataset(
        root, "plan", scenario.name, inputs=names, parameters={}, sources=PLAN_SOURCES
    )
    metrics = _metrics(root, scenario.name, runs, verdicts)
    return Work(positions, traces, plan, tuple(runs), tuple(verdicts), metrics)


def write_index(root: Path, scenario: Scenario, work: Work) -> None:
    """Say what was asked for last, for `read_progress`."""
    folders = {
        stage: [str(d.folder.relative_to(root.absolute())) for d in datasets]
        for stage, datasets in work.by_stage().items()
    }
    index = {"scenario": scenario.name, "stages": folders}
    write_text(root / INDEX, json.dumps(index, indent=2) + "\n")


def read_progress(root: Path) -> list[Progress]:
    """For each stage of what was asked for last: how many of its datasets are there."""
    try:
        index = json.loads((root / INDEX).read_text())
    except FileNotFoundError as error:
        hint = "give the folder that `beforehand run` writes to"
        raise InputError(f"no `{INDEX}` here", where=str(root), hint=hint) from error
    return [
        Progress(stage, sum((root / f / MANIFEST).exists() for f in folders), len(folders))
        for stage, folders in index["stages"].items()
    ]


def _positions(root: Path, source: Source, seed: int) -> Dataset:
    drawn = seed if source.generator is not None else None
    return plan_dataset(
        root,
        "positions",
        f"s{seed}",
        inputs=(),
        parameters={"source": source.identity(), "seed": drawn},
        sources=POSITION_SOURCES,
    )


def _contacts(root: Path, positions: Dataset, range_m: float | None, label: str) -> Dataset:
    return plan_dataset(
        root,
        "contacts",
        label,
        inputs=[positions.name],
        parameters={"range_m": range_m},
        sources=CONTACT_SOURCES,
    )


def _metrics(root: Path, label: str, runs: Sequence[Run], verdicts: Sequence[Dataset]) -> Dataset:
    inputs = [run.name for run in runs] + [verdict.name for verdict in verdicts]
    return plan_dataset(
        root, "metrics", label, inputs=inputs, parameters={}, sources=METRIC_SOURCES
    )
