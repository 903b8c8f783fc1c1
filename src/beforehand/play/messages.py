"""Number the messages of a run: by broadcast, then those without a broadcast in the log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beforehand.events import BROADCAST, DELIVER, DROP, EXPIRE, RECEIVE
from beforehand.play.run import Ints, Run

NAMING = (BROADCAST, RECEIVE, DELIVER, EXPIRE, DROP)
"""The kinds of events that name a message."""


@dataclass(frozen=True)
class MessageIndex:
    """Messages in the order of their broadcasts; the last ones have none in the log."""

    origin: Ints
    seq: Ints
    t_us: Ints
    """The time of the broadcast; without one, of the first event that names the message."""
    broadcast_count: int
    life_us: Ints | None
    """How long each message lives; None if messages do not expire, or the log does not say."""
    _origins: Ints
    _seqs: Ints
    _keys: Ints
    """The key of each message, ascending."""
    _order: Ints

    def find(self, origin: NDArray[Any], seq: NDArray[Any]) -> Ints:
        """Return the number of each message, -1 where there is no such message."""
        if not len(self._keys) or not len(origin):
            return np.full(len(origin), -1, np.int64)
        keys, is_known = _keys(self._origins, self._seqs, origin, seq)
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(is_known & (self._keys[at] == keys), self._order[at], -1)


def index_messages(run: Run) -> MessageIndex:
    """Return the messages that the events of a run name. O(events log events)."""
    events = run.events
    rows = np.flatnonzero(np.isin(events.kind, NAMING))
    # Broadcasts first, so that the first row of a message is its broadcast if it has one.
    rows = rows[np.argsort(events.kind[rows] != BROADCAST, kind="stable")]
    origins, seqs = np.unique(events.origin[rows]), np.unique(events.seq[rows])
    keys, _ = _keys(origins, seqs, events.origin[rows], events.seq[rows])
    _, first = np.unique(keys, return_index=True)
    first.sort()
    chosen = rows[first]
    order = np.argsort(keys[first], kind="stable")
    origin, seq, t_us = events.origin[chosen], events.seq[chosen], events.t_us[chosen]
    count = int((events.kind[chosen] == BROADCAST).sum())
    life_us = _lifetimes(run, t_us, seq, count)
    return MessageIndex(origin, seq, t_us, count, life_us, origins, seqs, keys[first][order], order)


def _keys(
    origins: Ints, seqs: Ints, origin: NDArray[Any], seq: NDArray[Any]
) -> tuple[Ints, NDArray[np.bool_]]:
    """Return one number per (origin, seq), and whether both parts are known."""
    if not len(origins) or not len(seqs):
        return np.zeros(len(origin), np.int64), np.zeros(len(origin), np.bool_)
    i = np.minimum(np.searchsorted(origins, origin), len(origins) - 1)
    j = np.minimum(np.searchsorted(seqs, seq), len(seqs) - 1)
    return i * len(seqs) + j, (origins[i] == origin) & (seqs[j] == seq)


def _lifetimes(run: Run, t_us: Ints, seq: Ints, count: int) -> Ints | None:
    """Return how long each message lives: its seq is its deadline on the clock of its origin.

    None if a seq cannot be a deadline, because it is not within the skew of the lifetime.
    """
    lifetime_us, skew_us = run.about.lifetime_us, run.about.skew_us or 0
    if not lifetime_us or not count:
        return None
    life_us = seq - t_us
    # The node makes seqs distinct by a few microseconds.
    slack_us = skew_us + 1000
    if (np.abs(life_us[:count] - lifetime_us) > slack_us).any():
        return None
    life_us[count:] = np.maximum(life_us[count:], 0)
    return life_us
