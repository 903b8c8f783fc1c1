"""The data that a page shows: the tables of one run in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beforehand.events import About

Ints = NDArray[np.int64]

UNKNOWN_SENDER = -1
NO_RECEPTION = -2
"""Stands for the sender of a delivery without a reception in the log."""


@dataclass(frozen=True)
class Events:
    """The rows of an event log in columns, in the order of the run. `kind` is a code."""

    step: Ints
    t_us: Ints
    node: Ints
    kind: Ints
    origin: Ints
    seq: Ints
    sender: Ints
    """UNKNOWN_SENDER where the log does not name it."""

    def __len__(self) -> int:
        return len(self.t_us)

    def take(self, rows: NDArray[Any]) -> Events:
        return Events(**{name: column[rows] for name, column in vars(self).items()})


@dataclass(frozen=True)
class Violations:
    """Deliveries that violate the definition of causal order, in the order of the run."""

    t_us: Ints
    node: Ints
    origin: Ints
    seq: Ints
    kind: Ints
    """An index into `kernels.verify.causality.KINDS`."""
    chain: tuple[Ints, ...] = ()
    """The proof of each of the first violations: t_us, node, origin, seq, is_broadcast per row."""


@dataclass(frozen=True)
class Movement:
    """Straight ways of nodes, in metres and microseconds; see `mobility.positions`."""

    node: Ints
    t0_us: Ints
    x0: NDArray[np.float64]
    y0: NDArray[np.float64]
    t1_us: Ints
    x1: NDArray[np.float64]
    y1: NDArray[np.float64]


@dataclass(frozen=True)
class Run:
    """One run. A value of None was not kept with it, and the page says so in `notes`."""

    name: str
    title: str
    names: tuple[str, ...]
    about: About
    events: Events
    violations: Violations
    verdict: str
    reason: str
    presence: Ints
    """Rows of node, up_us, down_us, and 1 if the stay ended in a crash."""
    contacts: Ints | None = None
    """Rows of a, b, up_us, down_us."""
    pasts: Ints | None = None
    """Rows of origin, seq, cause_origin, cause_seq."""
    movement: Movement | None = None
    window_us: tuple[int, int] | None = None
    notes: tuple[str, ...] = field(default_factory=tuple)

    @property
    def has_senders(self) -> bool:
        return bool((self.events.sender >= 0).any())
