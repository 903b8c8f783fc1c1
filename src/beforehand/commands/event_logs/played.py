"""Gather the run of a results folder that a page plays; replay it where no log was kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from beforehand.events import EVENTS_FILE
from beforehand.pipeline.replay import can_replay, replay_run
from beforehand.play.gather import draws, gather_run
from beforehand.verify.plan import read_plan

if TYPE_CHECKING:
    from beforehand.play.run import Run

NOTE = "no log was kept: this is the same run again, from the parameters in its manifest"


def is_playable(root: Path) -> bool:
    """Return whether a results folder has, or can have again, a run that a page can play."""
    return draws(root) or can_replay(root)


def gather_results(root: Path, wanted: str | None = None) -> Run:
    """Return a run of a results folder; by default its first."""
    if draws(root) or not can_replay(root):
        return gather_run(root, wanted)
    plan = read_plan(root)
    folders = [root / folder for stage in plan.stages.values() for folder in stage]
    kept = [log for folder in folders for log in sorted(folder.rglob(EVENTS_FILE))]
    found = [log for log in kept if _name_of(root, log).startswith(wanted or "")]
    if found:
        run = gather_run(found[0])
        return replace(run, title=plan.scenario)
    with TemporaryDirectory(prefix="beforehand-play-") as folder:
        name, part = replay_run(root, wanted, Path(folder))
        logs = sorted(Path(folder).glob("*.parquet"))
        one = Path(folder) / EVENTS_FILE
        run = gather_run(one if one.is_file() else logs[0])
    notes = (NOTE, f"the page shows {part}") if part else (NOTE,)
    return replace(run, name=name, title=plan.scenario, notes=(*notes, *run.notes))


def _name_of(root: Path, log: Path) -> str:
    """Return the name of a kept log below its world and stage: `n8-s1/plain-50`."""
    return "/".join(log.parent.relative_to(root).parts[2:])
