"""What a scenario comes to, written down for whoever asks how far it is. Nothing runs here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from beforehand.errors import InputError
from beforehand.files import MANIFEST, find_damage, recorded_marks, unreadable, write_text
from beforehand.pipeline.experiment import Experiment, load_experiment
from beforehand.pipeline.stages import Work
from beforehand.scenario.head import Scenario

INDEX = "plan.json"
EVENTS_STAGE = "events"
"""In a world of contacts; a sweep has one stage, whatever it keeps."""


class Index(msgspec.Struct, frozen=True):
    """What was asked for last."""

    scenario: str
    world: str
    stages: dict[str, list[str]]
    """The folders of the datasets, from the folder of the results."""


@dataclass(frozen=True)
class Progress:
    """How far a stage is."""

    stage: str
    there: int
    wanted: int
    damaged: tuple[str, ...] = ()
    """What is not as it was when it was finished: folders, files and what is wrong with them."""


def plan_work(root: Path, experiment: Experiment, scenario: Scenario) -> Work:
    """Every dataset of a scenario below `root`, each once."""
    work = Work(root)
    for stage in experiment.stages():
        work.jobs[stage.name] = [work.job(stage, task) for task in stage.plan(scenario, work)]
    return work


def write_index(work: Work, scenario: Scenario) -> None:
    """Say what was asked for, for `read_progress`."""
    root = work.root.absolute()
    folders = {
        stage: [str(job.dataset.folder.relative_to(root)) for job in jobs]
        for stage, jobs in work.jobs.items()
    }
    text = msgspec.json.encode(Index(scenario.name, scenario.world, folders))
    write_text(work.root / INDEX, msgspec.json.format(text, indent=2).decode() + "\n")


def read_progress(root: Path) -> list[Progress]:
    """For each stage of what was asked for last: how many of its datasets are there."""
    index = read_index(root)
    load_experiment(index.world, where=str(root / INDEX))  # or its stages are not ours to speak of
    return [_progress(root, stage, folders) for stage, folders in index.stages.items()]


def find_lost_logs(root: Path) -> list[str]:
    """The event logs that belong to what was asked for last and are not there, by their folders.

    A stage keeps logs if that is what it is for, or if one of its datasets does. Where none does,
    the logs in the folder are of earlier runs, and all that is not finished may be one that does.
    """
    from beforehand.verify.event_log import EVENTS_FILE

    if not (root / INDEX).is_file():
        return []
    stages = read_index(root).stages
    keeping = [
        folders
        for stage, folders in stages.items()
        if stage == EVENTS_STAGE
        or any(next((root / folder).rglob(EVENTS_FILE), None) for folder in folders)
    ]
    expected = [folder for folders in keeping or stages.values() for folder in folders]
    return [name for folder in expected for name in _find_lost(root, folder, EVENTS_FILE)]


def _find_lost(root: Path, folder: str, file: str) -> list[str]:
    if not (root / folder / MANIFEST).exists():
        return [folder]
    try:
        marks = recorded_marks(root / folder)
    except (InputError, ValueError):
        return []  # whoever reads the log says so
    lost = [name for name in marks if name.endswith(file) and not (root / folder / name).is_file()]
    return [f"{folder}/{name}: missing" for name in lost]


def read_index(root: Path) -> Index:
    """What was asked for last."""
    path = root / INDEX
    try:
        return msgspec.json.decode(path.read_bytes(), type=Index)
    except FileNotFoundError as error:
        hint = "give the folder that `beforehand run` writes to"
        raise InputError(f"no `{INDEX}` here", where=str(root), hint=hint) from error
    except OSError as error:
        raise unreadable(path, error) from error
    except msgspec.MsgspecError as error:
        hint = "run the scenario again: what is there is not computed twice"
        raise InputError(f"not a plan: {error}", where=str(path), hint=hint) from error


def _progress(root: Path, stage: str, folders: list[str]) -> Progress:
    finished = [folder for folder in folders if (root / folder / MANIFEST).exists()]
    damaged = {folder: found for folder in finished if (found := find_damage(root / folder))}
    told = tuple(f"{folder}/{problem}" for folder, found in damaged.items() for problem in found)
    return Progress(stage, len(finished) - len(damaged), len(folders), told)
