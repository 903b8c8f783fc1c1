"""What a run of the world of cells leaves behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Columns = dict[str, NDArray[np.int64]]


class Outage(NamedTuple):
    """A failure that came about."""

    node: int
    station: int
    """In whose cell it was; `NOWHERE` if in none."""
    from_us: int
    to_us: int


@dataclass(frozen=True)
class Sample:
    """What there is at one instant, and what was counted up to it."""

    t_us: int
    kept: list[int]
    """Of each station: messages in its send buffer."""
    early: list[int]
    """Of each host that is up: messages in its receive buffer."""
    said: list[int]
    """Of each host that is up: messages in its send buffer."""
    sent: NDArray[np.int64]
    """By network, kind, and what is counted (`tally`)."""
    fates: NDArray[np.int64]
    """By kind, whether it was for a host, and fate, of what was meant for somebody in the cell."""
    heard: NDArray[np.int64]
    """By fate: of every frame at everybody in range."""


@dataclass(frozen=True)
class CellsRun:
    """What happened. Hosts are nodes from `spec.stations` on."""

    events: Columns
    samples: list[Sample]
    """The last one is of the end."""
    handoffs: int
    """How often a host changed its cell."""
    outages: list[Outage]
    """Node, from, to."""
    entered: dict[int, int]
    """When a host first came to where it joined: into the first cell that it did not leave, and in
    which it did not fail, before it had heard of its registration."""
    away: dict[int, int]
    """Hosts that were in the range of no station after they had joined, and when they last were."""
    thrown: int = 0
    """Frames that were thrown away because the queue of their node was full."""
