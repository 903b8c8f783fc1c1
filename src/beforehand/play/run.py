"""The data that a page shows: the tables of one run in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from beforehand.events import About

if TYPE_CHECKING:
    from beforehand.play.messages import MessageIndex
    from beforehand.play.pack import Pack

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
    sent_us: Ints | None = None
    """When the frame of a `receive` row was sent; None: the log does not say for any row."""

    def __len__(self) -> int:
        return len(self.t_us)

    def take(self, rows: NDArray[Any]) -> Events:
        columns: dict[str, Any]
        columns = {n: None if c is None else c[rows] for n, c in vars(self).items()}
        return Events(**columns)


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


class PageClock(Protocol):
    """Converts the times of a run to milliseconds of its page."""

    def ms(self, t_us: NDArray[Any]) -> Ints: ...

    def lengths(self, from_us: NDArray[Any], to_us: NDArray[Any]) -> Ints: ...


class Details(Protocol):
    """The data of a kind of run besides messages, nodes and links."""

    kind: ClassVar[str]
    """The name of the module of the page that draws it."""

    def encode(self, pack: Pack, clock: PageClock, messages: MessageIndex) -> dict[str, Any]:
        """Add columns to the pack, and return what the module needs besides them."""
        ...

    def cut(self, begin_us: int, end_us: int, chosen: Ints) -> Details:
        """Return the part in a window, of the chosen nodes."""
        ...


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
    background: tuple[NDArray[np.float64], ...] = ()
    """Lines of a map, as points of x, y in metres."""
    window_us: tuple[int, int] | None = None
    notes: tuple[str, ...] = field(default_factory=tuple)
    relays: int = 0
    """The first so many nodes relay messages and deliver none: stations."""
    details: Details | None = None
    """None: a run of contacts, which has none."""
    wrong_words: tuple[str, ...] = ()
    """The names of the kinds of violations; empty: those of the verifier."""

    @property
    def has_senders(self) -> bool:
        return bool((self.events.sender >= 0).any())
