"""Read a log of any kind that `verify` reads, and choose the events of a diagram."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from beforehand.diagram.foreign import story_of_log
from beforehand.diagram.runs import story_of_run
from beforehand.diagram.story import Story
from beforehand.errors import InputError, list_some, visible
from beforehand.events import BROADCAST, DELIVER, NODE_SUFFIX
from beforehand.play.gather import gather_run
from beforehand.play.judge import violations_of
from beforehand.play.run import UNKNOWN_SENDER, Events, Run
from beforehand.verify.foreign.judge import LogVerdict
from beforehand.verify.plan import PLAN_FILE
from beforehand.verify.verdict import RunVerdict, Verdict, verify_events

STDIN = Path("-")


def read_story(
    path: Path,
    wanted: str | None = None,
    around: str | None = None,
    *,
    mapping: Sequence[str] = (),
    profile: Path | None = None,
) -> Story:
    """Return the diagram of a log or of a results folder.

    wanted: the run, or the beginning of its name. By default the first one with a violation.
    around: a message; see `story_of_run` and `story_of_log`.
    mapping, profile: how the log is read; see `verify_events`.
    """
    if path.is_dir() and (path / PLAN_FILE).is_file():
        return story_of_run(gather_run(path, wanted), around)
    return story_of(path, verify_events(path, mapping=mapping, profile=profile), wanted, around)


def story_of(
    path: Path, verdict: Verdict, wanted: str | None = None, around: str | None = None
) -> Story:
    """Return the diagram of a run of a log that was judged."""
    runs = verdict.runs
    found = [at for at, run in enumerate(runs) if wanted is None or run.run.startswith(wanted)]
    if not found:
        names = list_some([visible(run.run) for run in runs])
        problem = f"no run is named `{wanted}`" if runs else "there are no events in the log"
        raise InputError(problem, where=str(path), hint=f"runs here: {names}" if runs else "")
    at = next((at for at in found if any(runs[at].counts.values())), found[0])
    chosen = runs[at]
    if isinstance(chosen, LogVerdict):
        read = [run for reading in verdict.readings for run in reading.runs]
        return story_of_log(read[at], chosen, around)
    return story_of_run(_run_of(path, chosen), around)


def _run_of(path: Path, verdict: RunVerdict) -> Run:
    """Return all events of a run, or those that the verifier kept of a log in several files."""
    is_one_log = path.is_file() and not path.name.endswith(NODE_SUFFIX)
    if is_one_log:
        return gather_run(path, verdict.run)
    log = verdict.log
    kind = np.where(log.is_broadcast, BROADCAST, DELIVER)
    sender = np.full(len(kind), UNKNOWN_SENDER)
    columns = (log.step, log.t_us, log.node, kind, log.origin, log.seq, sender)
    events = Events(*(column.astype(np.int64) for column in columns))
    return Run(
        name=verdict.run,
        title=verdict.run,
        names=_names(log.about.names, events),
        about=log.about,
        events=events,
        violations=violations_of(verdict),
        verdict=verdict.state,
        reason=verdict.reason,
        presence=np.zeros((0, 4), np.int64),
        notes=(
            "the diagram shows broadcasts and deliveries, and each time is on its node's clock",
        ),
    )


def _names(names: Sequence[str], events: Events) -> tuple[str, ...]:
    highest = max(int(column.max(initial=-1)) for column in (events.node, events.origin))
    return (*names, *(str(number) for number in range(len(names), highest + 1)))
