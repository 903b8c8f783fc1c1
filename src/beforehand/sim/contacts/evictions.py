"""Evictions from full buffers: record them in a run, and measure how long the copies were held."""

from __future__ import annotations

import weakref
from array import array
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beforehand.events import BROADCAST, RECEIVE
from beforehand.protocols.contract.base import MessageId
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.orders.order import Order
from beforehand.sim.contacts.summary import index_messages

Ints = NDArray[np.int64]


class Evictions:
    """Records which messages the nodes of a run evict. The event log does not contain them."""

    def __init__(self) -> None:
        self._rows = array("q")

    def watch(self, node: int, order: Order, now_us: Callable[[], int]) -> None:
        """Record the evictions that the epidemic layer of this node tells its order about.

        now_us: returns the time of the world, which differs from the clock of the node.
        """
        # Weakly, because a run leaves no reference cycles.
        evict, weak = type(order).on_evict, weakref.proxy(order)

        def on_evict(local_us: int, ids: Iterable[MessageId], out: Outbox[Any]) -> None:
            for origin, seq in ids:
                # A full buffer removes expired messages first: those are not evicted.
                if not weak.has_expired((origin, seq), local_us):
                    self._rows.extend((now_us(), node, origin, seq))  # type: ignore[arg-type]
            evict(weak, local_us, ids, out)

        order.on_evict = on_evict  # type: ignore[assignment,method-assign]

    def rows(self) -> Ints:
        """Return t_us, node, origin and seq of each eviction, in order of time."""
        return np.array(self._rows, np.int64).reshape(-1, 4)


def held_before_eviction(columns: Mapping[str, NDArray[Any]], evictions: Ints) -> Ints:
    """Return how long the node had held the message, for each eviction.

    A node stores a message only while it does not hold it. So of one node and message, the k-th
    eviction removes what the k-th broadcast or reception stored.
    """
    kind = columns["kind"]
    stored = np.flatnonzero((kind == BROADCAST) | (kind == RECEIVE))
    columns = {name: columns[name][stored] for name in ("kind", "t_us", "node", "origin", "seq")}
    both = {
        name: np.concatenate((columns[name].astype(np.int64), evictions[:, at]))
        for at, name in enumerate(("t_us", "node", "origin", "seq"))
    }
    both["kind"] = np.concatenate((columns["kind"], np.full(len(evictions), RECEIVE)))
    message, broadcast_rows = index_messages(both)
    place = both["node"] * max(1, len(broadcast_rows)) + message
    held, gone = _numbered(place[: len(stored)]), _numbered(place[len(stored) :])
    order = np.lexsort((held[1], held[0]))
    size = int(max(held[1].max(initial=0), gone[1].max(initial=0))) + 1
    keys = held[0][order] * size + held[1][order]
    found = order[np.searchsorted(keys, gone[0] * size + gone[1])] if len(order) else order
    held_us: Ints = evictions[:, 0] - columns["t_us"][found]
    return held_us


def _numbered(place: Ints) -> tuple[Ints, Ints]:
    """Return (place, how often the place occurred before) of each row."""
    order = np.argsort(place, kind="stable")
    ordered = place[order]
    begins = np.concatenate(([True], ordered[1:] != ordered[:-1]))[: len(ordered)]
    starts = np.maximum.accumulate(np.where(begins, np.arange(len(ordered)), 0))
    before = np.empty(len(place), np.int64)
    before[order] = np.arange(len(ordered)) - starts
    return place, before
