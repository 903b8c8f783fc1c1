"""Gather what an observer has put in order: the output of `observe`, or a run of the world `drift`.

Each event is a message from its process to the observer. It waits in the queue of the observer from
its arrival to its delivery. The observer delivers by timestamp, so an event is delivered before
others that arrived earlier if its timestamp is smaller.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from beforehand.errors import InputError, list_some, visible
from beforehand.events import BROADCAST, DELIVER, RECEIVE, About
from beforehand.files import unreadable
from beforehand.play.messages import MessageIndex
from beforehand.play.pack import Pack
from beforehand.play.run import Events, Ints, PageClock, Run, Violations

ORDER, AT, WAITED, OBSERVER = "delivered_seq", "delivered_at", "waited_us", "observer"
ARRIVED = "arrived_seq"
"""The order of arrival, where the log has it: several events may arrive at one instant."""
NEEDED = ("process", ORDER, AT, WAITED)
MARKS = ("moved", "late", "suspect", "reset")
WRONG = ("suspect", "overdue", "reset", "late")
"""The marks that a page shows as findings, and the violations of a run with vector clocks."""
SUSPECT, OVERDUE, RESET, LATE = range(len(WRONG))
TICK_US = 1000
"""A page shows a tick without a unit as a millisecond."""
PROOFS_MAX = 200
NEAR_US = 86_400_000_000
"""A timestamp that is farther than this from the arrival is in another unit, or impossible."""


@dataclass(frozen=True)
class Observed:
    """The deliveries of an observer. A row is an event, in the order of arrival."""

    kind: ClassVar[str] = "observer"
    origin: Ints
    seq: Ints
    place: Ints
    """The place of the delivery in the order of deliveries, 0, 1, ...; -1: not delivered."""
    stamp_us: Ints
    """The timestamp by which the observer orders; that of the process."""
    unit: str
    """The meaning of a millisecond of the page: `ms` or `ticks`."""

    def encode(self, pack: Pack, clock: PageClock, messages: MessageIndex) -> dict[str, Any]:
        pack.add("queue.message", messages.find(self.origin, self.seq))
        pack.add("queue.place", self.place, delta=True)
        pack.add("queue.stamp", clock.ms(self.stamp_us))
        return {"unit": self.unit}

    def cut(self, begin_us: int, end_us: int, chosen: Ints) -> Observed:
        del begin_us, end_us
        kept = np.isin(self.origin, chosen)
        columns = {n: getattr(self, n)[kept] for n in ("origin", "seq", "place", "stamp_us")}
        return replace(self, **columns)


@dataclass(frozen=True)
class Arrivals:
    """The events that an observer received, in the order of arrival; times in microseconds."""

    process: Ints
    stamp_us: Ints
    arrived_us: Ints
    delivered_us: Ints
    place: Ints
    marks: dict[str, np.ndarray]
    past: Ints | None = None
    """The vector clock of each event, if the log has it."""


def is_observed(path: Path) -> bool:
    """Return whether a path is the output of `observe`: it has the columns of its order."""
    try:
        names = ds.dataset(path, format="parquet").schema.names if path.exists() else []
    except (OSError, pa.ArrowException):
        return False
    return {*NEEDED} <= {*names}


def observed_run(path: Path, wanted: str | None) -> Run:
    """Return the run of one observer in the output of `observe`."""
    try:
        table = ds.dataset(path, format="parquet").to_table()
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error) from error
    if not len(table):
        raise InputError("the observer has delivered nothing", where=str(path))
    name = path.name
    if OBSERVER in table.column_names:
        observers = table[OBSERVER].to_pylist()
        known = sorted({str(one) for one in observers})
        found = [one for one in known if wanted is None or one.startswith(wanted)]
        found = [wanted] if wanted in found else found
        if len(found) != 1:
            problem = (
                f"{len(found)} observers in the output" if found else f"no observer `{wanted}`"
            )
            hint = f"choose one with `--run`: {list_some(known)}"
            raise InputError(problem, where=str(path), hint=hint)
        table = table.filter(pa.array([str(one) == found[0] for one in observers]))
        name = found[0]
    processes = [visible(str(one)) for one in table["process"].to_pylist()]
    names = tuple(sorted({*processes}))
    numbers = {one: at for at, one in enumerate(names)}
    delivered, waited = _micros(table[AT]), _micros(table[WAITED])
    arrived = delivered - waited
    place = table[ORDER].to_numpy().astype(np.int64)
    has_ranks = ARRIVED in table.column_names
    rank = table[ARRIVED].to_numpy() if has_ranks else place
    order = np.lexsort((rank, arrived))
    marks = {
        mark: np.nan_to_num(table[mark].to_numpy(zero_copy_only=False).astype(float)) > 0
        for mark in MARKS
        if mark in table.column_names
    }
    stamps, notes = _stamps(table, arrived)
    if not has_ranks:
        notes = (*notes, "events that arrived in one instant are in the order of their delivery")
    arrivals = Arrivals(
        np.array([numbers[one] for one in processes], np.int64)[order],
        stamps[order],
        arrived[order],
        delivered[order],
        place[order],
        {mark: column[order] for mark, column in marks.items()},
        _past(table, len(names), order),
    )
    unit = "ticks" if (table.schema.metadata or {}).get(b"clock") == b"ticks" else "ms"
    return make_run(name, arrivals, names, unit, About(protocol="observe"), notes)


def _past(table: pa.Table, processes: int, order: Ints) -> Ints | None:
    """Return the vector clock of each event, if the output carries them for these processes."""
    if "past" not in table.column_names or not pa.types.is_list(table["past"].type):
        return None
    clocks, numbers = table["past"].to_pylist(), table["process"].to_pylist()
    is_dense = {*numbers} == {*range(processes)}
    if not is_dense or any(clock is None or len(clock) != processes for clock in clocks):
        return None
    by_name = sorted(range(processes), key=str)
    past: Ints = np.array(clocks, np.int64).reshape(-1, processes)[:, by_name]
    return past[order]


def _micros(column: Any) -> Ints:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us")).cast(pa.int64())
    found: Ints = column.to_numpy().astype(np.int64)
    return found


def _stamps(table: pa.Table, arrived: Ints) -> tuple[Ints, tuple[str, ...]]:
    """Return when each event was sent, on the clock of its process, and what is assumed."""
    names = table.column_names
    notes: tuple[str, ...] = ()
    kind = table["time"].type if "time" in names else pa.null()
    if pa.types.is_timestamp(kind) or pa.types.is_integer(kind):
        stamps = _micros(table["time"])
    elif "stamp" in names and pa.types.is_struct(table["stamp"].type):
        ticks = [(stamp or {}).get("r") or 0 for stamp in table["stamp"].to_pylist()]
        stamps = np.array(ticks, np.int64) * TICK_US
        notes = ("a tick of the stamps is shown as 1 ms: the output does not give their unit",)
    else:
        stamps = arrived
    is_near = np.abs(arrived - stamps) <= NEAR_US
    if stamps is arrived or not is_near.any():
        return arrived, ("the output has no timestamps in its unit: diamonds are at the arrival",)
    if far := int((~is_near).sum()):
        notes = (*notes, f"{far:,} timestamps are over a day away; they are shown at the arrival")
    return np.where(is_near, stamps, arrived), notes


def make_run(
    name: str,
    arrivals: Arrivals,
    names: tuple[str, ...],
    unit: str,
    about: About,
    notes: tuple[str, ...] = (),
) -> Run:
    """Return arrivals at an observer as a run: a line per process, and one for the observer."""
    observer, seq = len(names), _numbered(arrivals)
    events = _events(arrivals, seq, observer)
    wrong, verdict, reason = _wrong(arrivals, seq, observer)
    first, last = int(events.t_us.min()), int(events.t_us.max())
    stays = [(node, first, last + 1, 0) for node in range(observer + 1)]
    details = Observed(arrivals.process, seq, arrivals.place, arrivals.stamp_us, unit)
    return Run(
        name=name,
        title=name,
        names=(*names, "observer"),
        about=about,
        events=events,
        violations=wrong,
        verdict=verdict,
        reason=reason,
        presence=np.array(stays, np.int64),
        pasts=_pasts(arrivals, seq),
        notes=notes,
        details=details,
        wrong_words=WRONG,
    )


def _events(arrivals: Arrivals, seq: Ints, observer: int) -> Events:
    """Return a broadcast, a reception and, if there is one, a delivery for each event."""
    size = len(arrivals.process)
    none = np.full(size, -1, np.int64)
    is_out = arrivals.place >= 0
    numbers, out = np.arange(size), np.flatnonzero(is_out)
    here = np.full(size, observer)
    rows = [
        (arrivals.stamp_us, arrivals.process, np.full(size, BROADCAST), none, numbers),
        (arrivals.arrived_us, here, np.full(size, RECEIVE), arrivals.process, numbers),
        (arrivals.delivered_us[out], here[out], np.full(len(out), DELIVER), none[out],
         arrivals.place[out]),
    ]  # fmt: skip
    origins = [arrivals.process, arrivals.process, arrivals.process[is_out]]
    seqs = [seq, seq, seq[is_out]]
    t_us, node, kind, sender, tie = (np.concatenate(column) for column in zip(*rows, strict=True))
    sent = [none, arrivals.stamp_us, none[is_out]]
    order = np.lexsort((tie, kind, t_us))
    return Events(
        step=np.arange(len(order)),
        t_us=t_us[order],
        node=node[order],
        kind=kind[order].astype(np.int64),
        origin=np.concatenate(origins)[order],
        seq=np.concatenate(seqs)[order],
        sender=sender[order],
        sent_us=np.concatenate(sent)[order],
    )


def _numbered(arrivals: Arrivals) -> Ints:
    """Return the number of each event among those of its process, by timestamp."""
    order = np.lexsort((np.arange(len(arrivals.process)), arrivals.stamp_us, arrivals.process))
    process = arrivals.process[order]
    first = np.flatnonzero(np.append(True, process[1:] != process[:-1])[: len(process)])
    counts = np.diff(np.append(first, len(process)))
    seq = np.empty(len(order), np.int64)
    seq[order] = np.arange(len(order)) - np.repeat(first, counts) + 1
    return seq


def _wrong(arrivals: Arrivals, seq: Ints, observer: int) -> tuple[Violations, str, str]:
    """Return the findings: inverted deliveries if the clocks are known, else the marks."""
    found: list[tuple[Ints, int]] = []
    kind: Any
    if arrivals.past is not None:
        found.append((_late(arrivals), LATE))
        verdict, reason = ("invalid", "") if len(found[0][0]) else ("valid", "")
    else:
        marks = (("suspect", SUSPECT), ("late", OVERDUE), ("reset", RESET))
        for mark, of_mark in marks:
            if mark in arrivals.marks:
                found.append((np.flatnonzero(arrivals.marks[mark]), of_mark))
        doubts = [f"{len(rows):,} {WRONG[k]}" for rows, k in found if len(rows)]
        known = "the output has no vector clocks, so its order cannot be checked"
        verdict, reason = "unknown", "; ".join([known, *doubts])
    rows = np.concatenate([rows for rows, _ in found]) if found else np.zeros(0, np.int64)
    kinds = [np.full(len(rows), k) for rows, k in found]
    kind = np.concatenate(kinds) if found else rows
    order = np.argsort(arrivals.delivered_us[rows], kind="stable")
    rows = rows[order]
    node = np.full(len(rows), observer, np.int64)
    wrong = Violations(
        arrivals.delivered_us[rows],
        node,
        arrivals.process[rows],
        seq[rows],
        kind[order],
        tuple(_proof(arrivals, seq, observer, row) for row in rows[:PROOFS_MAX].tolist()),
    )
    return wrong, verdict, reason


def _late(arrivals: Arrivals) -> Ints:
    """Return the events that were delivered after one that causally follows them."""
    assert arrivals.past is not None
    delivered = np.flatnonzero(arrivals.place >= 0)
    order = delivered[np.argsort(arrivals.place[delivered], kind="stable")]
    past = arrivals.past[order]
    known = np.maximum.accumulate(np.vstack([np.zeros_like(past[:1]), past[:-1]]), axis=0)
    of = arrivals.process[order]
    at = np.arange(len(order))
    late: Ints = order[past[at, of] <= known[at, of]]
    return late


def _proof(arrivals: Arrivals, seq: Ints, observer: int, row: int) -> Ints:
    """Return the sending and the delivery of the event, and between them those of its effect."""
    if arrivals.past is None:
        return np.zeros((0, 5), np.int64)
    process = int(arrivals.process[row])
    follows = arrivals.past[:, process] >= arrivals.past[row, process]
    follows &= (arrivals.place >= 0) & (arrivals.place < arrivals.place[row])
    after = int(np.flatnonzero(follows)[np.argmin(arrivals.place[follows])])
    sent = [(arrivals.stamp_us[i], arrivals.process[i], i, 1) for i in (row, after)]
    delivered = [(arrivals.delivered_us[i], observer, i, 0) for i in (after, row)]
    rows = [
        (t, node, arrivals.process[i], seq[i], is_sent) for t, node, i, is_sent in sent + delivered
    ]
    return np.array(rows, np.int64)


def _pasts(arrivals: Arrivals, seq: Ints) -> Ints | None:
    """Return the causes that each event has beyond those of the event before at its process."""
    if arrivals.past is None:
        return None
    rows, none = [], np.zeros(arrivals.past.shape[1], np.int64)
    order = np.lexsort((seq, arrivals.process))
    number = {
        (int(p), int(arrivals.past[i, p])): int(seq[i]) for i, p in enumerate(arrivals.process)
    }
    before: dict[int, Ints] = {}
    for i in order.tolist():
        process = int(arrivals.process[i])
        clock: Ints = arrivals.past[i]
        last = before.get(process, none)
        for q in np.flatnonzero(clock > last).tolist():
            cause = (q, int(clock[q]) - (q == process))
            if cause in number:
                rows.append((process, int(seq[i]), q, number[cause]))
        before[process] = clock
    return np.array(rows, np.int64).reshape(-1, 4)
