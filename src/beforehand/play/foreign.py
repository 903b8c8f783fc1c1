"""Gather the log of another system as a run laid out by causality, with the verifier's findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from beforehand.errors import InputError, list_some, visible
from beforehand.events import BROADCAST, DELIVER, RECEIVE, About
from beforehand.logs.model import Event
from beforehand.logs.model import Run as LogRun
from beforehand.play.causal import Causal
from beforehand.play.edges import Edges, edges_of
from beforehand.play.layout import STEP_US, places_of
from beforehand.play.run import UNKNOWN_SENDER, Events, Ints, Run, Violations
from beforehand.verify.foreign import entry
from beforehand.verify.foreign.findings import Order
from beforehand.verify.foreign.judge import SOURCES, LogVerdict, judge_run

NOTE = "the log gives an order, not a clock: an event is right of its causes, and x is no time"
PROOFS_MAX = 200


READ_PLAINLY = entry.LogOptions()


def foreign_run(path: Path, wanted: str | None, asked: entry.LogOptions = READ_PLAINLY) -> Run:
    """Return a run of the log of another system: the named one, else the first with a finding.

    asked: which fields or profile the user named.
    """
    readings = entry.read(path, None, asked)
    runs = [(run, reading.format) for reading in readings for run in reading.runs if run.events]
    found = [(run, form) for run, form in runs if wanted is None or run.name.startswith(wanted)]
    if not found:
        problem = f"no run is named `{wanted}`" if runs else "there are no events in the log"
        hint = f"runs here: {list_some([run.name for run, _ in runs])}"
        raise InputError(problem, where=str(path), hint=hint)
    judged = [(run, judge_run(run, form)) for run, form in found]
    run, verdict = next((one for one in judged if one[1].findings), judged[0])
    notes = [note for reading in readings for note in reading.assumed]
    for reading in readings:
        notes += [f"{many:,} lines skipped: {why}" for why, many in reading.skipped.items()]
    if len(runs) > 1:
        names = list_some([one.name for one, _ in runs])
        notes.append(f"the log has {len(runs)} runs, and the page shows one: {names}")
    return make_run(run, verdict, path.name, notes)


def make_run(run: LogRun, verdict: LogVerdict, title: str, notes: Sequence[str]) -> Run:
    """Return a run of a log. Each event is a broadcast, or the reception of another event."""
    order = Order(run, list(run.events))
    rows = [event for sequence in order.sequences for event in sequence]
    nodes = {name: at for at, name in enumerate(order.nodes)}
    edges = edges_of(run, rows)
    starts = np.cumsum([0, *(len(sequence) for sequence in order.sequences)]).tolist()
    lines = [range(low, high) for low, high in pairwise(starts)]
    place, broken = places_of(lines, edges.causes)
    t_us = np.array([place[at] for at in range(len(rows))], np.int64) * STEP_US
    node = np.array([nodes[event.node] for event in rows], np.int64)
    shown_notes = [NOTE, *notes, *verdict.notes]
    if broken:
        shown_notes.append(f"{broken:,} causes come after their effects: no order can keep them")
    if len(verdict.findings) > PROOFS_MAX:
        shown_notes.append(
            f"the page shows the first {PROOFS_MAX} of {len(verdict.findings):,} findings"
        )
    if not edges.is_way_known:
        shown_notes.append("arrows lead from the broadcast: the log does not tell the way")
    wrong, sentences, words = _violations(verdict, rows, edges, t_us, node)
    details = Causal(
        source=f"causality from {SOURCES[run.causality]}",
        noun="event" if edges.is_way_known else "broadcast",
        gaps=_gaps(rows, lines, t_us, node),
        labels={(int(node[at]), at): _label(event) for at, event in enumerate(rows)},
        findings=sentences,
    )
    return Run(
        name=visible(run.name),
        title=visible(title),
        names=tuple(visible(name) for name in order.nodes),
        about=About(protocol=verdict.format),
        events=_events(rows, edges, t_us, node),
        violations=wrong,
        verdict=verdict.state,
        reason=visible(verdict.reason),
        presence=_stays(t_us, node, len(nodes)),
        pasts=_pasts(edges, node),
        notes=tuple(visible(note) for note in shown_notes),
        details=details,
        wrong_words=words,
    )


def _label(event: Event) -> str:
    return visible(event.message or event.text or event.id or event.kind)


def _events(rows: Sequence[Event], edges: Edges, t_us: Ints, node: Ints) -> Events:
    """Return a broadcast for each event that is no mere reception, and a reception per cause."""
    chosen = np.array([at for at in range(len(rows)) if at not in edges.mere], np.int64)
    pairs = [(cause, at) for at, causes in edges.causes.items() for cause in causes]
    cause, effect = np.array(pairs, np.int64).reshape(-1, 2).T
    own, other = (np.full(len(column), UNKNOWN_SENDER, np.int64) for column in (chosen, cause))
    sender = node[cause] if edges.is_way_known else other
    parts = [
        (t_us[chosen], node[chosen], own + 1 + BROADCAST, node[chosen], chosen, own, own),
        (t_us[effect], node[effect], other + 1 + RECEIVE, node[cause], cause, sender, t_us[cause]),
        (t_us[effect], node[effect], other + 1 + DELIVER, node[cause], cause, other, other),
    ]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.lexsort((columns[2], columns[0]))
    t, n, kind, origin, seq, sender, sent = (column[order] for column in columns)
    return Events(np.arange(len(order)), t, n, kind, origin, seq, sender, sent)


def _stays(t_us: Ints, node: Ints, count: int) -> Ints:
    """Return the line of each node: from its first event to its last."""
    first, last = np.full(count, np.iinfo(np.int64).max), np.zeros(count, np.int64)
    np.minimum.at(first, node, t_us)
    np.maximum.at(last, node, t_us)
    return np.column_stack([np.arange(count), first, last + STEP_US, np.zeros(count, np.int64)])


def _pasts(edges: Edges, node: Ints) -> Ints:
    """Return the causes that events name."""
    rows = [
        (int(node[at]), at, int(node[cause]), cause)
        for at, causes in edges.named.items()
        for cause in causes
    ]
    return np.array(rows, np.int64).reshape(-1, 4)


def _gaps(rows: Sequence[Event], lines: Sequence[range], t_us: Ints, node: Ints) -> Ints:
    """Return where the positions of a node skip some: events that are missing from the log."""
    found = []
    for line in lines:
        for at, after in pairwise(line):
            one, two = rows[at].position, rows[after].position
            if one is not None and two is not None and two - one > 1:
                found.append((int(node[at]), int(t_us[at]), int(t_us[after]), two - one - 1))
    return np.array(found, np.int64).reshape(-1, 4)


def _violations(
    verdict: LogVerdict, rows: Sequence[Event], edges: Edges, t_us: Ints, node: Ints
) -> tuple[Violations, tuple[str, ...], tuple[str, ...]]:
    """Return the findings in the order of the page, each in words, and the words of their kinds."""
    number = {id(event): at for at, event in enumerate(rows)}
    words = tuple(dict.fromkeys(finding.kind for finding in verdict.findings))
    findings = verdict.findings[:PROOFS_MAX]
    proofs = [[number[id(event)] for event in finding.chain()] for finding in findings]
    found = [
        (proof, words.index(finding.kind), visible(finding.summary))
        for proof, finding in zip(proofs, findings, strict=True)
        if proof
    ]
    found.sort(key=lambda one: int(t_us[one[0][-1]]))
    of = _messages_of(edges)
    chains = []
    for proof, _, _ in found:
        steps = [(t_us[i], node[i], node[of.get(i, i)], of.get(i, i), i not in of) for i in proof]
        chains.append(np.array(steps, np.int64))
    last = np.array([proof[-1] for proof, _, _ in found], np.int64)
    message = np.array([of.get(at, at) for at in last.tolist()], np.int64)
    kind = np.array([kind for _, kind, _ in found], np.int64)
    wrong = Violations(t_us[last], node[last], node[message], message, kind, tuple(chains))
    return wrong, tuple(text for _, _, text in found), words


def _messages_of(edges: Edges) -> Mapping[int, int]:
    """Return the event whose reception an event is, for each that is nothing else."""
    return {at: edges.causes[at][0] for at in edges.mere if edges.causes.get(at)}
