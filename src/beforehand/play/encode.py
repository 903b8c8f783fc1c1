"""Encode a run: its tables as columns of a pack.

Times are whole milliseconds since the first instant of the page. Receptions are ordered by node,
then by the order of the run, which deflates best (about 2 bytes a reception).
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from beforehand.errors import InputError
from beforehand.events import BROADCAST, DELIVER, DROP, EXPIRE, RECEIVE
from beforehand.play.messages import MessageIndex, index_messages
from beforehand.play.nearness import follow_from_places
from beforehand.play.pack import VALUE_MAX, Pack
from beforehand.play.places import Places, round_places
from beforehand.play.run import NO_RECEPTION, Ints, Run

VERSION = 1
PLAIN = "plain"
"""The kind of a run without details."""
MS = 1000
LENGTH_MS_MAX = 2**31 - 2
"""24 days: times in the page are 32-bit integers, and the largest stands for `never`."""
NEAR_NOTE = (
    "contacts follow from the places: they are those of the log, to half a metre and 0.2 seconds"
)
NEVER, AT_ONCE, LATER, AGAIN, WITH = range(5)
"""How a message was released after its reception: never; at once; at a time in `later`; the node
had it before; WITH + k: together with the k-th reception after it, which brought a cause."""


class Clock:
    """Converts the times of a run to milliseconds since its first instant."""

    def __init__(self, run: Run) -> None:
        times = [run.events.t_us, run.presence[:, 1], run.presence[:, 2]]
        times += [] if run.contacts is None else [run.contacts[:, 2], run.contacts[:, 3]]
        known = np.concatenate(times)
        self.start_us = int(known.min()) if len(known) else 0
        self.end_us = int(known.max()) if len(known) else 0
        if self.length_ms > LENGTH_MS_MAX:
            days = (self.end_us - self.start_us) / 86_400_000_000
            raise InputError(
                f"the run lasts {days:,.1f} days, and a page shows at most 24",
                where=run.name,
                hint="show a part of it: `--from 0d --to 7d`",
            )

    @property
    def length_ms(self) -> int:
        return (self.end_us - self.start_us) // MS

    def ms(self, t_us: NDArray[Any]) -> Ints:
        return (t_us.astype(np.int64) - self.start_us) // MS

    def lengths(self, from_us: NDArray[Any], to_us: NDArray[Any]) -> Ints:
        """Return how long intervals are on the page: the difference of their rounded ends."""
        return self.ms(to_us) - self.ms(from_us)


def encode(run: Run) -> tuple[dict[str, Any], bytes]:
    """Return the head of a page and the body of its pack."""
    clock, pack, messages = Clock(run), Pack(), index_messages(run)
    _add_messages(pack, clock, messages)
    lost_causes = _add_pasts(pack, run, messages)
    _add_receptions(pack, run, clock, messages)
    _add_losses(pack, run, clock, messages)
    _add_violations(pack, run, clock, messages)
    _add_presence(pack, run, clock)
    places = None if run.movement is None else round_places(run.movement, clock)
    are_near = places is not None and _are_near(run, clock, places)
    _add_contacts(pack, None if are_near else run.contacts, clock)
    if places is not None:
        places.add(pack, len(run.names), run.background)
    notes = [*run.notes, NEAR_NOTE] if are_near else list(run.notes)
    if lost_causes:
        notes.append(f"{lost_causes:,} named causes are of messages that the page does not have")
    extra = None if run.details is None else run.details.encode(pack, clock, messages)
    head = {
        "version": VERSION,
        "kind": PLAIN if run.details is None else run.details.kind,
        "extra": extra,
        "relays": run.relays,
        "wrong_words": list(run.wrong_words),
        "start_us": clock.start_us,
        "length": clock.length_ms,
        "name": run.name,
        "title": run.title,
        "names": list(run.names),
        "about": {
            **msgspec.to_builtins(msgspec.structs.replace(run.about, names=(), doubts=())),
            "has_lifetimes": messages.life_us is not None,
            "has_senders": run.has_senders,
            "has_contacts": run.contacts is not None,
        },
        "verdict": run.verdict,
        "reason": run.reason,
        "ghosts": len(messages.origin) - messages.broadcast_count,
        "window": None
        if run.window_us is None
        else [max(0, (t - clock.start_us) // MS) for t in run.window_us],
        "plane": None if places is None else places.plane,
        "near_m": run.about.range_m if are_near else None,
        "notes": notes,
        "columns": pack.directory,
    }
    return head, bytes(pack.body)


def _add_messages(pack: Pack, clock: Clock, messages: MessageIndex) -> None:
    pack.add("message.origin", messages.origin)
    pack.add("message.t", clock.ms(messages.t_us), delta=True)
    if int(np.abs(messages.seq).max(initial=0)) <= VALUE_MAX // 2:
        pack.add("message.seq", messages.seq, delta=True)
    else:
        pack.add("message.seq", messages.seq & 0xFFFFFFFF)
        pack.add("message.seq_high", messages.seq >> 32)
    if messages.life_us is not None:
        # A deadline is on the clock of its origin.
        pack.add("message.life", messages.life_us // MS)


def _add_pasts(pack: Pack, run: Run, messages: MessageIndex) -> int:
    """Add the named causes; return the number of those that are of no message of the page."""
    if run.pasts is None:
        return 0
    origin, seq, cause_origin, cause_seq = run.pasts.T
    effect, cause = messages.find(origin, seq), messages.find(cause_origin, cause_seq)
    known = (effect >= 0) & (cause >= 0)
    order = np.argsort(effect[known], kind="stable")
    pack.add("past.count", np.bincount(effect[known], minlength=len(messages.origin)))
    pack.add("past.back", (effect - cause)[known][order])
    return int(((effect >= 0) & (cause < 0)).sum())


def _add_receptions(pack: Pack, run: Run, clock: Clock, messages: MessageIndex) -> None:
    events, size = run.events, max(1, len(messages.origin))
    received, delivered = events.kind == RECEIVE, events.kind == DELIVER
    message = messages.find(events.origin, events.seq)
    pair = events.node * size + message
    done_pair, first = np.unique(pair[delivered], return_index=True)
    done_t = events.t_us[delivered][first]
    # Deliveries of messages that the log never shows as received; an origin receives nothing.
    sent = pair[events.kind == BROADCAST]
    alone = delivered & ~np.isin(pair, pair[received]) & ~np.isin(pair, sent)
    rows = np.flatnonzero(received | alone)
    rows = rows[np.argsort(events.node[rows], kind="stable")]
    node, t = events.node[rows], clock.ms(events.t_us[rows])
    at = np.minimum(np.searchsorted(done_pair, pair[rows]), max(0, len(done_pair) - 1))
    is_done = np.zeros(len(rows), np.bool_)
    done = t
    if len(done_pair):
        is_done = done_pair[at] == pair[rows]
        done = clock.ms(done_t[at])
    is_again = np.ones(len(rows), np.bool_)
    is_again[np.unique(pair[rows], return_index=True)[1]] = False
    # A node that delivers its own message as it broadcasts it writes no `deliver` row.
    delivers_own = (events.node == events.origin)[delivered].any()
    is_own = (messages.origin[message[rows]] == node) & ~delivers_own
    wait = np.where(is_done, done - t, np.where(node < run.relays, 0, -1))
    release, later = _releases(
        node, t, wait, is_again | (is_own & ~is_done) | (is_done & (wait < 0))
    )
    sender = np.where(alone[rows], NO_RECEPTION, events.sender[rows])
    pack.add("node.receptions", np.bincount(node, minlength=len(run.names)))
    pack.add("reception.t", t, delta=True)
    pack.add("reception.message", message[rows], delta=True)
    pack.add("reception.sender", sender, delta=True)
    pack.add("reception.release", release)
    pack.add("reception.later", later)
    if events.sent_us is not None:
        sent_us = events.sent_us[rows]
        flight = np.where(
            sent_us < 0, 0, clock.lengths(np.maximum(sent_us, clock.start_us), events.t_us[rows])
        )
        pack.add("reception.flight", flight)


def _releases(node: Ints, t: Ints, wait: Ints, is_again: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Return how each reception was released: half the size of the time of its delivery.

    is_again: the node had the message before.
    """
    if not len(t):
        return t, t
    here = node << 40
    at = np.minimum(np.searchsorted(here + t, here + t + np.maximum(wait, 0)), len(t) - 1)
    is_met = (wait > 0) & (node[at] == node) & (t[at] == t + wait)
    code = np.where(is_met, WITH + at - np.arange(len(t)), LATER)
    code = np.where(wait == 0, AT_ONCE, np.where(wait < 0, NEVER, code))
    code = np.where(is_again, AGAIN, code)
    return code, wait[code == LATER]


def _add_losses(pack: Pack, run: Run, clock: Clock, messages: MessageIndex) -> None:
    events = run.events
    is_lost = np.isin(events.kind, (EXPIRE, DROP))
    pack.add("lost.t", clock.ms(events.t_us[is_lost]), delta=True)
    pack.add("lost.node", events.node[is_lost])
    pack.add("lost.message", messages.find(events.origin[is_lost], events.seq[is_lost]))
    pack.add("lost.kind", events.kind[is_lost] == DROP)


def _add_violations(pack: Pack, run: Run, clock: Clock, messages: MessageIndex) -> None:
    wrong = run.violations
    pack.add("wrong.t", clock.ms(wrong.t_us), delta=True)
    pack.add("wrong.node", wrong.node)
    pack.add("wrong.message", messages.find(wrong.origin, wrong.seq))
    pack.add("wrong.kind", wrong.kind)
    rows = np.concatenate(wrong.chain) if wrong.chain else np.zeros((0, 5), np.int64)
    pack.add("chain.count", [len(chain) for chain in wrong.chain])
    pack.add("chain.t", clock.ms(rows[:, 0]))
    pack.add("chain.node", rows[:, 1])
    pack.add("chain.message", messages.find(rows[:, 2], rows[:, 3]))
    pack.add("chain.spoken", rows[:, 4])


def _add_presence(pack: Pack, run: Run, clock: Clock) -> None:
    node, up_us, down_us, crashed = run.presence[
        np.lexsort((run.presence[:, 1], run.presence[:, 0]))
    ].T
    pack.add("stay.node", node, delta=True)
    pack.add("stay.t", clock.ms(up_us), delta=True)
    pack.add("stay.length", clock.lengths(up_us, down_us))
    pack.add("stay.crashed", crashed)


def _are_near(run: Run, clock: Clock, places: Places) -> bool:
    """Return whether the page derives the contacts: those of nodes within range."""
    if run.contacts is None:
        return False
    ways, range_m = places.ways(clock.start_us), run.about.range_m
    return follow_from_places(run.contacts, ways, range_m, clock.start_us, clock.end_us)


def _add_contacts(pack: Pack, rows: Ints | None, clock: Clock) -> None:
    contacts = np.zeros((0, 4), np.int64) if rows is None else rows
    a, b, up_us, down_us = contacts[np.argsort(contacts[:, 2], kind="stable")].T
    pack.add("contact.a", a)
    pack.add("contact.b", b)
    pack.add("contact.t", clock.ms(up_us), delta=True)
    pack.add("contact.length", clock.lengths(up_us, down_us))
