"""Run a finished task of a results folder once more, for a page that plays it.

Sweeps keep measures and no logs. A simulation is determined by its parameters and its seed, which
its manifest has. So its log can be had again at the cost of one run.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from beforehand.errors import InputError, list_some
from beforehand.files import MANIFEST, find_damage, read_text
from beforehand.pipeline.experiment import Row, load_experiment
from beforehand.verify.plan import PLAN_FILE, read_plan


class _Made(msgspec.Struct):
    parameters: Row


def can_replay(root: Path) -> bool:
    """Return whether the runs of a results folder can be had again from their parameters."""
    return load_experiment(read_plan(root).world, where=str(root / PLAN_FILE)).replay is not None


def replay_run(root: Path, wanted: str | None, into: Path) -> tuple[str, str]:
    """Write the logs of a finished task into a folder; return its name and what is played of it.

    wanted: the name of the task, or the beginning of it; by default the first that is finished.
    """
    plan = read_plan(root)
    replay = load_experiment(plan.world, where=str(root / PLAN_FILE)).replay
    if replay is None:
        raise InputError(f"no run of the world `{plan.world}` can be replayed", where=str(root))
    folders = [root / folder for stage in plan.stages.values() for folder in stage]
    found = [f for f in folders if wanted is None or f.name.startswith(wanted)]
    finished = [folder for folder in found if (folder / MANIFEST).is_file()]
    if not finished:
        problem = "no run is finished" if wanted is None or found else f"no run is named `{wanted}`"
        names = list_some([folder.name for folder in folders])
        hint = f"runs here: {names}" if names else "`beforehand run` goes on with what is missing"
        raise InputError(problem, where=str(root), hint=hint)
    if damage := find_damage(finished[0]):
        hint = "run the scenario again: it makes damaged datasets anew"
        raise InputError("; ".join(damage), where=str(finished[0]), hint=hint)
    manifest = finished[0] / MANIFEST
    try:
        made = msgspec.json.decode(read_text(manifest), type=_Made)
        return finished[0].name, replay(finished[0].name, made.parameters, into)
    except (msgspec.MsgspecError, KeyError) as error:
        hint = "another version of the package made this folder; run the scenario again"
        raise InputError(
            f"not the parameters of a run: {error}", where=str(manifest), hint=hint
        ) from error
