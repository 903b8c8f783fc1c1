"""Plan the datasets of a scenario, and report how many of them exist. Nothing is computed here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from beforehand.files import MANIFEST, find_damage, write_text
from beforehand.pipeline.experiment import Experiment, load_experiment
from beforehand.pipeline.stages import Work
from beforehand.scenario.head import Scenario
from beforehand.verify.plan import PLAN_FILE, Plan, read_plan


@dataclass(frozen=True)
class Progress:
    """The progress of one stage."""

    stage: str
    there: int
    wanted: int
    damaged: tuple[str, ...] = ()
    """Damaged datasets: the folder, the file and the problem of each."""


def plan_work(root: Path, experiment: Experiment, scenario: Scenario) -> Work:
    """Return all datasets of a scenario below `root`, each once."""
    work = Work(root)
    for stage in experiment.stages():
        work.jobs[stage.name] = [work.job(stage, task) for task in stage.plan(scenario, work)]
    return work


def write_index(work: Work, scenario: Scenario) -> None:
    """Write the list of planned datasets, which `read_progress` reads."""
    root = work.root.absolute()
    folders = {
        stage: [str(job.dataset.folder.relative_to(root)) for job in jobs]
        for stage, jobs in work.jobs.items()
    }
    text = msgspec.json.encode(Plan(scenario.name, scenario.world, folders))
    write_text(work.root / PLAN_FILE, msgspec.json.format(text, indent=2).decode() + "\n")


def read_progress(root: Path) -> list[Progress]:
    """Return for each stage of the last planned scenario how many of its datasets exist."""
    plan = read_plan(root)
    # Fail if this version does not know the world: its stages could then not be interpreted.
    load_experiment(plan.world, where=str(root / PLAN_FILE))
    return [_progress(root, stage, folders) for stage, folders in plan.stages.items()]


def is_done(stages: Sequence[Progress]) -> bool:
    """Return whether every planned dataset exists undamaged.

    A plan without datasets is not done: nothing shows that it was carried out.
    """
    return any(stage.wanted for stage in stages) and all(s.there == s.wanted for s in stages)


def _progress(root: Path, stage: str, folders: list[str]) -> Progress:
    finished = [folder for folder in folders if (root / folder / MANIFEST).exists()]
    damaged = {folder: found for folder in finished if (found := find_damage(root / folder))}
    problems = tuple(
        f"{folder}/{problem}" for folder, found in damaged.items() for problem in found
    )
    return Progress(stage, len(finished) - len(damaged), len(folders), problems)
