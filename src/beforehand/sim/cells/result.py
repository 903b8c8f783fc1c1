"""The result of a run of the world of cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Columns = dict[str, NDArray[np.int64]]


class Outage(NamedTuple):
    """A failure that took place."""

    node: int
    station: int
    """The station in whose cell it was; `NOWHERE` if in none."""
    from_us: int
    to_us: int


@dataclass(frozen=True)
class Sample:
    """The buffers at one instant, and the counts up to it."""

    t_us: int
    kept: list[int]
    """The number of messages in the send buffer of each station."""
    early: list[int]
    """The number of messages in the receive buffer of each host that is up."""
    unacked: list[int]
    """The number of messages in the send buffer of each host that is up."""
    sent: NDArray[np.int64]
    """Counts by network, kind and quantity (`tally`)."""
    outcomes: NDArray[np.int64]
    """Counts by kind, whether the receiver is a host, and outcome, at intended receivers."""
    air_outcomes: NDArray[np.int64]
    """Counts by outcome, of every frame at every node in range."""


@dataclass(frozen=True)
class CellsRun:
    """The result of a run. Hosts are the nodes from `spec.stations` on."""

    events: Columns
    senders: NDArray[np.int32]
    """The node whose frame brought the message, for each `receive` row of `events`."""
    samples: list[Sample]
    """The last one is of the end of the run."""
    handoffs: int
    """How often a host changed its cell."""
    outages: list[Outage]
    """All failures that took place."""
    entered: dict[int, int]
    """Host -> when it entered the cell in which it joined. That is the first cell where it neither
    left nor failed before it learned of its registration."""
    away: dict[int, int]
    """Host -> the last time after joining that it was in range of no station."""
    thrown: int = 0
    """Frames that were discarded because the queue of their node was full."""
