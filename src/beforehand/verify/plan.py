"""Read the plan in a results folder, and find the event logs that it names and that are missing."""

from __future__ import annotations

from pathlib import Path

import msgspec

from beforehand.errors import InputError
from beforehand.events import EVENTS_FILE
from beforehand.files import MANIFEST, recorded_marks, unreadable

PLAN_FILE = "plan.json"
EVENTS_STAGE = "events"
"""The stage that keeps event logs in the world of contacts. A sweep has one stage of any name."""


class Plan(msgspec.Struct, frozen=True):
    """The datasets that the last `beforehand run` into the folder asked for."""

    scenario: str
    world: str
    stages: dict[str, list[str]]
    """The folders of the datasets by stage, relative to the results folder."""


def read_plan(root: Path) -> Plan:
    """Return the plan of a results folder; raise InputError if there is none."""
    path = root / PLAN_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=Plan)
    except FileNotFoundError as error:
        hint = "give the folder that `beforehand run` writes to"
        raise InputError(f"no `{PLAN_FILE}` here", where=str(root), hint=hint) from error
    except OSError as error:
        raise unreadable(path, error) from error
    except msgspec.MsgspecError as error:
        hint = "run the scenario again: finished datasets are not computed twice"
        raise InputError(f"not a plan: {error}", where=str(path), hint=hint) from error


def find_lost_logs(root: Path) -> list[str]:
    """Return the folders of event logs that the plan names and that are missing.

    A folder without a plan misses nothing. A stage keeps logs if it is the stage of events, or if
    one of its datasets has a log. If no stage keeps logs, the logs in the folder are of earlier
    runs. Then every unfinished dataset may be one that keeps a log.
    """
    if not (root / PLAN_FILE).is_file():
        return []
    stages = read_plan(root).stages
    with_logs = [
        folders
        for stage, folders in stages.items()
        if stage == EVENTS_STAGE or any(_has(root / folder, EVENTS_FILE) for folder in folders)
    ]
    expected = [folder for folders in with_logs or stages.values() for folder in folders]
    return [name for folder in expected for name in _find_lost(root, folder, EVENTS_FILE)]


def _find_lost(root: Path, folder: str, log: str) -> list[str]:
    if not (root / folder / MANIFEST).exists():
        return [folder]
    try:
        marks = recorded_marks(root / folder)
    except (InputError, ValueError):
        # The reader of a log reports the manifest. Without a log there is no reader.
        return [] if _has(root / folder, log) else [folder]
    lost = [name for name in marks if name.endswith(log) and not (root / folder / name).is_file()]
    return [f"{folder}/{name}: missing" for name in lost]


def _has(folder: Path, log: str) -> bool:
    return next(folder.rglob(log), None) is not None
