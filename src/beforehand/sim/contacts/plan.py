"""All that is known before a run of the compiled contact world, in columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from beforehand.kernels.epidemic.state import BROADCAST_AT, COME, DOWN, GO, NONE, UP
from beforehand.mobility.trace import Trace
from beforehand.sim.contacts.traffic import Planned

Longs = NDArray[np.int64]


class Plan(NamedTuple):
    """The planned events in order; the place of a broadcast is the number of its message."""

    t_us: Longs
    kind: NDArray[np.int8]
    a: NDArray[np.int32]
    b: NDArray[np.int32]
    place: NDArray[np.int32]
    """Of the contact, the stay or the broadcast in its own list."""


def make_plan(trace: Trace, traffic: Planned) -> Plan:
    """Return the plan in the order of `sim.contacts.world`: time, kind, nodes, index."""
    contacts, presence = trace.contacts, trace.presence
    parts = (
        (contacts[:, 2], UP, contacts[:, 0], contacts[:, 1]),
        (contacts[:, 3], DOWN, contacts[:, 0], contacts[:, 1]),
        (presence[:, 1], COME, presence[:, 0], NONE),
        (presence[:, 2], GO, presence[:, 0], NONE),
        (traffic.t_us, BROADCAST_AT, traffic.node, NONE),
    )
    t_us = np.concatenate([part[0] for part in parts])
    kind = np.concatenate([np.full(len(part[0]), part[1], np.int8) for part in parts])
    a = np.concatenate([part[2] for part in parts]).astype(np.int32)
    b = np.concatenate([np.broadcast_to(part[3], len(part[0])) for part in parts]).astype(np.int32)
    place = np.concatenate([np.arange(len(part[0]), dtype=np.int32) for part in parts])
    order = np.lexsort((place, b, a, kind, t_us))
    return Plan(t_us[order], kind[order], a[order], b[order], place[order])


def live_at_once(sent_us: Longs, lifetime_us: int | None) -> int:
    """Return how many messages are alive at once at most, if each lives this long."""
    if lifetime_us is None or not len(sent_us):
        return len(sent_us)
    # A message dies at the instant of its deadline, before anything else happens then.
    first = np.searchsorted(sent_us, sent_us - lifetime_us, "right")
    return int((np.arange(1, len(sent_us) + 1) - first).max())
