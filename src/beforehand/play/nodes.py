"""Gather the logs of real nodes, which have no common clock, as a run laid out by causality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from beforehand.errors import InputError, list_some, visible
from beforehand.events import KINDS, SHARED_KINDS, About
from beforehand.play.causal import Causal
from beforehand.play.judge import violations_of
from beforehand.play.layout import STEP_US, places_of
from beforehand.play.run import UNKNOWN_SENDER, Events, Ints, Run, Violations
from beforehand.verify.event_log import coded
from beforehand.verify.node_logs import Merge, read_merges
from beforehand.verify.verdict import judge

NOTE = "the nodes have no common clock: an event is right of its causes, and x is no time"
SOURCE = "each node's own order, and the broadcast of what it receives and delivers"
WAY_NOTE = "a node logs no sender: arrows lead from the broadcast, whatever the way was"


def nodes_run(files: Sequence[Path], wanted: str | None) -> Run:
    """Return the run of the logs of real nodes; if there are several, the one of a name."""
    merges = {merge.run: (merge, about) for merge, about in read_merges(files)}
    where = str(files[0].parent)
    found = [name for name in merges if wanted is None or name.startswith(wanted)]
    if wanted in found:
        found = [str(wanted)]
    if len(found) != 1:
        problem = f"{len(found)} runs in the logs" if found else f"no run is named `{wanted}`"
        hint = f"choose one with `--run`: {list_some(list(merges))}"
        raise InputError(problem, where=where, hint=hint)
    return _run(*merges[found[0]])


def _run(merge: Merge, about: About) -> Run:
    names, events, t_us, broken = _events(merge)
    log = merge.log(about)
    rows = _rows_of(merge, log.node.astype(np.int64), log.step)
    verdict = judge(replace(log, t_us=t_us[rows]))
    own = {name: at for at, name in enumerate(names)}
    renumber = np.array([own[name] for name in log.about.names], np.int64)
    violations = _renumbered(violations_of(verdict), renumber)
    stays, gaps = _lines(merge, t_us)
    notes = [NOTE, WAY_NOTE]
    if broken:
        notes.append(f"{broken:,} deliveries precede their own broadcasts in every order")
    return Run(
        name=merge.run,
        title=merge.run,
        names=tuple(visible(name) for name in names),
        about=about,
        events=events,
        violations=violations,
        verdict=verdict.state,
        reason=verdict.reason,
        presence=stays,
        notes=tuple(notes),
        details=Causal(source=SOURCE, noun="broadcast", gaps=gaps, labels={}),
    )


def _rows_of(merge: Merge, line: Ints, step: Ints) -> Ints:
    """Return the row of each event of a merged log."""
    size = int(merge.step.max(initial=0)) + 1
    rows: Ints = np.searchsorted(merge.line * size + merge.step, line * size + step)
    return rows


def _events(merge: Merge) -> tuple[tuple[str, ...], Events, Ints, int]:
    """Return the names, the events with places as times, the place of each row, and the number of
    deliveries that no order can keep."""
    texts, codes = coded(merge.table["kind"])
    is_shared = np.array([kind in SHARED_KINDS for kind in texts])[codes]
    kind = np.array([KINDS.index(k) if k in SHARED_KINDS else -1 for k in texts])[codes]
    rows = np.flatnonzero(is_shared)
    names, origin = merge.origins(merge.table["origin"].take(rows))
    seq = merge.table["seq"].to_numpy()[rows]
    broadcast_of = {
        (int(origin[at]), int(seq[at])): row
        for at, row in enumerate(rows.tolist())
        if kind[row] == KINDS.index("broadcast")
    }
    causes: dict[int, tuple[int, ...]] = {}
    sent = np.full(len(rows), -1, np.int64)
    for at, row in enumerate(rows.tolist()):
        cause = broadcast_of.get((int(origin[at]), int(seq[at])), row)
        if cause != row:
            sent[at] = cause
            if merge.line[cause] != merge.line[row]:
                causes[row] = (cause,)
    bounds = np.searchsorted(merge.line, np.arange(len(merge.incarnations) + 1)).tolist()
    lines = [range(low, high) for low, high in pairwise(bounds)]
    place, broken = places_of(lines, causes)
    t_us = np.array([place[row] for row in range(len(merge.line))], np.int64) * STEP_US
    order = np.lexsort((rows, t_us[rows]))
    chosen = rows[order]
    sent_us = np.where(sent < 0, -1, t_us[np.maximum(sent, 0)])[order]
    events = Events(
        step=np.arange(len(chosen)),
        t_us=t_us[chosen],
        node=merge.line[chosen].astype(np.int64),
        kind=kind[chosen].astype(np.int64),
        origin=origin[order],
        seq=seq[order].astype(np.int64),
        sender=np.full(len(chosen), UNKNOWN_SENDER, np.int64),
        sent_us=sent_us,
    )
    return names, events, t_us, broken


def _renumbered(violations: Violations, renumber: NDArray[np.int64]) -> Violations:
    """Return violations with the numbers of the page for origins that have no log."""
    chains = []
    for chain in violations.chain:
        changed = chain.copy()
        changed[:, 2] = renumber[chain[:, 2]]
        chains.append(changed)
    return replace(violations, origin=renumber[violations.origin], chain=tuple(chains))


def _lines(merge: Merge, t_us: Ints) -> tuple[Ints, Ints]:
    """Return the stay of each incarnation, and the gaps in its log."""
    line = merge.line
    first = np.flatnonzero(np.append(True, line[1:] != line[:-1])[: len(line)])
    last = np.append(first[1:], len(line)) - 1
    stays = np.column_stack([line[first], t_us[first], t_us[last] + STEP_US, np.zeros(len(first))])
    missing = np.diff(merge.step) - 1
    at = np.flatnonzero((line[1:] == line[:-1]) & (missing > 0))
    gaps = np.column_stack([line[at], t_us[at], t_us[at + 1], missing[at]])
    return stays.astype(np.int64), gaps.astype(np.int64).reshape(-1, 4)
