"""Restrict a run to a time window and to some of its nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from beforehand.errors import InputError, closest
from beforehand.events import BROADCAST, DELIVER, RECEIVE
from beforehand.play.messages import index_messages
from beforehand.play.run import Events, Ints, Movement, Run, Violations


def restrict(run: Run, window_us: tuple[int, int | None] | None, nodes: str | None) -> Run:
    """Return the part of a run in a window (since its start) and of the named nodes.

    The verdict stays that of the whole run. Broadcasts of the messages that the part names are
    kept, also from before the window.
    """
    if window_us is None and nodes is None:
        return run
    chosen = _numbers(run, nodes)
    begin_us, end_us = _bounds(run, window_us)
    kept = _kept_events(run, begin_us, end_us, chosen)
    if not len(kept) and run.contacts is None:
        raise InputError("nothing happens in this part of the run", where=run.name)
    note = "the page shows a part of the run; the verdict is that of the whole run"
    return replace(
        run,
        events=kept,
        violations=_kept_violations(run.violations, begin_us, end_us, chosen),
        presence=_kept_intervals(run.presence, 1, begin_us, end_us, chosen),
        contacts=None
        if run.contacts is None
        else _kept_intervals(run.contacts, 2, begin_us, end_us, chosen),
        movement=None
        if run.movement is None
        else _kept_movement(run.movement, begin_us, end_us, chosen),
        details=None if run.details is None else run.details.cut(begin_us, end_us, chosen),
        window_us=None if window_us is None else (begin_us, end_us),
        notes=(*run.notes, note),
    )


def _numbers(run: Run, nodes: str | None) -> Ints:
    """Return the numbers of the named nodes."""
    if nodes is None:
        return np.arange(len(run.names))
    found = []
    for name in filter(None, (name.strip() for name in nodes.split(","))):
        if name not in run.names:
            raise InputError(
                f"no node is named `{name}`", where="--nodes", hint=closest(name, run.names)
            )
        found.append(run.names.index(name))
    if not found:
        raise InputError("no node is named", where="--nodes", hint="write for example `a,b,c`")
    return np.array(found, np.int64)


def _bounds(run: Run, window_us: tuple[int, int | None] | None) -> tuple[int, int]:
    times = [run.events.t_us, run.presence[:, 1], run.presence[:, 2]]
    known = np.concatenate(times)
    start_us, last_us = int(known.min(initial=2**62)), int(known.max(initial=0)) + 1
    if window_us is None:
        return start_us, last_us
    begin_us = start_us + window_us[0]
    if begin_us >= last_us:
        raise InputError("the run ends before this time", where="--from")
    return begin_us, last_us if window_us[1] is None else min(last_us, start_us + window_us[1])


def _kept_events(run: Run, begin_us: int, end_us: int, chosen: Ints) -> Events:
    events = run.events
    inside = (events.t_us >= begin_us) & (events.t_us < end_us) & np.isin(events.node, chosen)
    messages = index_messages(run)
    what = messages.find(events.origin, events.seq)
    # A reception before the window belongs to a delivery or a wait within it.
    pair = events.node * max(1, len(messages.origin)) + what
    early = (events.t_us < begin_us) & np.isin(events.node, chosen)
    done_before = pair[early & (events.kind == DELIVER)]
    waits = early & (events.kind == RECEIVE) & ~np.isin(pair, done_before)
    later = inside & (events.kind == DELIVER)
    waits &= np.isin(pair, pair[later]) | (run.about.lifetime_us is None)
    kept = inside | waits
    named = np.unique(what[kept & (what >= 0)])
    kept |= (events.kind == BROADCAST) & np.isin(what, named)
    return events.take(np.flatnonzero(kept))


def _kept_violations(wrong: Violations, begin_us: int, end_us: int, chosen: Ints) -> Violations:
    kept = (wrong.t_us >= begin_us) & (wrong.t_us < end_us) & np.isin(wrong.node, chosen)
    columns = {name: column[kept] for name, column in vars(wrong).items() if name != "chain"}
    proven = np.flatnonzero(kept[: len(wrong.chain)])
    return Violations(**columns, chain=tuple(wrong.chain[i] for i in proven.tolist()))


def _kept_intervals(rows: Ints, up: int, begin_us: int, end_us: int, chosen: Ints) -> Ints:
    """Return the stays or contacts in the window, cut to it.

    up: the column of the begin; nodes are in the columns before it, and the end is after it.
    """
    down = up + 1
    kept = (rows[:, down] > begin_us) & (rows[:, up] < end_us)
    kept &= np.isin(rows[:, :up], chosen).all(axis=1)
    cut = rows[kept].copy()
    cut[:, up], cut[:, down] = np.maximum(cut[:, up], begin_us), np.minimum(cut[:, down], end_us)
    return cut


def _kept_movement(movement: Movement, begin_us: int, end_us: int, chosen: Ints) -> Movement:
    kept = (movement.t1_us > begin_us) & (movement.t0_us < end_us)
    kept &= np.isin(movement.node, chosen)
    return Movement(*(column[kept] for column in vars(movement).values()))
