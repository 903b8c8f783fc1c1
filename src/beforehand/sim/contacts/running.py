"""The verdict and the figures of a run while it goes on: no row of the log has to be kept.

They are those of `sim.contacts.summary` on the whole log. The messages of unbounded caches are
received once, so only those that wait for their delivery are remembered.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from beforehand.events import BROADCAST, COLUMNS, DELIVER, JOIN, LEAVE
from beforehand.kernels.open_receptions import (
    EXPIRED,
    OPEN,
    LogRows,
    Measured,
    add_all,
    make_receptions,
    measure,
)
from beforehand.kernels.verify.running import RunningVerdict
from beforehand.sim.contacts.columns import Growing
from beforehand.sim.contacts.summary import count_reachable, describe
from beforehand.sim.contacts.traffic import Planned

Ints = NDArray[np.int64]
DELAYS = ("delay", "delivered_delay", "latency", "age")
RECEPTIONS = 1 << 16


class LogPage(NamedTuple):
    """A part of a log of the twin."""

    columns: dict[str, NDArray[Any]]
    """As in `events`."""
    message: NDArray[np.int32]
    """The number of the message of each row, in the order of the broadcasts; -1 for none."""
    senders: NDArray[np.int32]
    """The node that forwarded the message, of each reception."""


class DelayStatistics:
    """Minimum, maximum, average and standard deviation of values that come in parts."""

    def __init__(self) -> None:
        self._count = 0
        self._mean = self._squares = 0.0
        self._low, self._high = math.inf, -math.inf

    def add(self, values: Ints) -> None:
        """Take more values (Chan, Golub and LeVeque 1979 for the squares)."""
        if not len(values):
            return
        count, mean = len(values), float(values.mean())
        apart, whole = mean - self._mean, self._count + count
        self._squares += float(((values - mean) ** 2).sum())
        self._squares += apart * apart * self._count * count / whole
        self._mean += apart * count / whole
        self._count = whole
        self._low = min(self._low, float(values.min()))
        self._high = max(self._high, float(values.max()))

    def described(self) -> dict[str, float | None]:
        """Return what `summary.describe` returns for all values."""
        if not self._count:
            return dict.fromkeys(("min", "max", "avg", "stdev"))
        stdev = math.sqrt(self._squares / self._count)
        return {"min": self._low, "max": self._high, "avg": self._mean, "stdev": stdev}


class RunningFigures:
    """Takes the pages of a run."""

    def __init__(self, nodes: int, traffic: Planned, live: int) -> None:
        """Begin. live: how many messages are alive at once at most."""
        self.rows = 0
        self._sent_us = traffic.t_us
        self._origin = traffic.node.astype(np.int32)
        self._verdict = RunningVerdict(nodes, len(traffic.t_us), live)
        self._open = make_receptions(RECEPTIONS)
        self._spreads = {name: DelayStatistics() for name in DELAYS}
        self._deliveries = self._receptions = 0
        self._kept = Growing(COLUMNS)

    def add(self, page: LogPage) -> None:
        """Take the next rows."""
        columns = page.columns
        kind = columns["kind"]
        self.rows += len(kind)
        self._receptions += len(page.senders)
        self._deliveries += int(np.count_nonzero(kind == DELIVER))
        self._verdict.add({"node": columns["node"], "kind": kind, "message": page.message})
        self._measure(LogRows(columns["t_us"], columns["node"], kind, page.message))
        kept = (kind == BROADCAST) | (kind == JOIN) | (kind == LEAVE)
        self._kept.append({name: column[kept] for name, column in columns.items()})

    def _measure(self, rows: LogRows) -> None:
        size = len(rows.kind)
        found = Measured(np.zeros(2, np.int64), *(np.empty(size, np.int64) for _ in range(3)))
        at = 0
        while at < size:
            at = measure(self._open, rows, self._origin, self._sent_us, found, at)
            if at < size:
                larger = make_receptions(4 * len(self._open.key))
                add_all(larger, self._open)
                self._open = larger
        received, delivered = found.sizes.tolist()
        latency_us, age_us = found.latency[:delivered], found.age[:delivered]
        values = (found.delay[:received], age_us - latency_us, latency_us, age_us)
        for name, part in zip(DELAYS, values, strict=True):
            self._spreads[name].add(part)

    def violations(self) -> dict[str, int]:
        """Return what `summary.count_violations` returns for the whole log."""
        return self._verdict.counts()

    def summary(self, life_us: int | None) -> dict[str, Any]:
        """Return what `summary.summarise` returns for the whole log."""
        columns = self._kept.taken()
        is_broadcast = columns["kind"] == BROADCAST
        broadcasts, receptions = int(np.count_nonzero(is_broadcast)), self._receptions
        expired, reachable = int(self._open.counts[EXPIRED]), count_reachable(columns, life_us)
        handed = broadcasts + receptions
        return {
            "broadcasts": broadcasts,
            "receptions": receptions,
            "again": 0,
            "deliveries": self._deliveries,
            "expired": expired,
            "dropped": 0,
            "waiting": int(self._open.counts[OPEN]),
            "delivery_ratio": self._deliveries / handed if handed else None,
            "expiry_ratio": expired / receptions if receptions else None,
            "reachable": reachable,
            "reach": receptions / reachable if reachable else None,
            "past_entries": describe(columns["value"][is_broadcast]),
            **{f"{name}_us": spread.described() for name, spread in self._spreads.items()},
        }
