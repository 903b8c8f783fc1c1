"""Traffic as data: when each node of a trace broadcasts how many bytes.

Every draw is a hash of the seed, the node and a number. So all protocols of a seed see the same
traffic, and two runs that differ in one parameter share their random numbers. The cost is one array
operation per broadcast of the busiest node, and memory for all broadcasts.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from beforehand.errors import InputError, closest, list_some
from beforehand.mobility.trace import Trace
from beforehand.sim.contacts.workload import Broadcast
from beforehand.sim.streams import GOLDEN, stream_key
from beforehand.units import format_duration

Ints = NDArray[np.int64]
Law = Literal["periodic", "poisson", "uniform", "file"]
PayloadLaw = Literal["fixed", "uniform", "exponential"]

BROADCASTS_MAX = 20_000_000
"""The limit for one run: the plan alone takes 100 bytes for each."""
PAYLOAD_BYTES_MAX = 100_000_000
"""The limit exists because every message object holds its payload."""


class Event(msgspec.Struct, frozen=True, array_like=True):
    """One broadcast of a file."""

    t_us: int
    source: str
    payload_bytes: int


class Traffic(msgspec.Struct, frozen=True):
    """The broadcasts of the nodes. The default is that of OPP VI: `first_us` after the appearance
    of a node, and then every `period_us`."""

    first_us: int = 20_000_000
    """A node broadcasts nothing in this time after each appearance."""
    period_us: int = 60_000_000
    """The time between two broadcasts of a node; the mean time, if the law draws it."""
    payload_bytes: int = 200
    """The size of a payload; the mean size, if its law draws it."""
    law: Law = "periodic"
    """*periodic*: every `period_us`. *poisson*: after exponential times. *uniform*: after times
    from 0 to twice `period_us`. *file*: the broadcasts in `events`, and no others."""
    phase: bool = False
    """Whether each node begins after a random part of the period; for *periodic* only."""
    payload_law: PayloadLaw = "fixed"
    """*uniform*: from 0 to twice `payload_bytes`. *exponential*: with this mean."""
    sources: tuple[str, ...] | float | None = None
    """The nodes that broadcast: by name, or a share of all nodes; None: all."""
    events: tuple[Event, ...] = ()

    @property
    def is_drawn(self) -> bool:
        """Return whether another seed gives other traffic."""
        has_times = self.law in ("poisson", "uniform") or (self.law == "periodic" and self.phase)
        is_share = isinstance(self.sources, float) and self.law != "file"
        return has_times or is_share or (self.payload_law != "fixed" and self.law != "file")


class Planned(NamedTuple):
    """All broadcasts of a run in order of time, then of nodes."""

    t_us: Ints
    node: Ints
    payload_bytes: Ints

    def broadcasts(self) -> list[Broadcast]:
        """Return the same as objects."""
        return [Broadcast(*row) for row in zip(*(c.tolist() for c in self), strict=True)]


def plan_traffic(trace: Trace, traffic: Traffic, seed: int) -> Planned:
    """Return the broadcasts of all nodes while they are present.

    `check_traffic` must have accepted the traffic for this trace.
    """
    if traffic.law == "file":
        number = {name: node for node, name in enumerate(trace.names)}
        rows = [(e.t_us, number[e.source], e.payload_bytes) for e in traffic.events]
        t_us, node, payload_bytes = np.array(rows, np.int64).reshape(-1, 3).T
        kept = _is_present(trace, t_us, node)
        order = np.lexsort((node[kept], t_us[kept]))
        return Planned(t_us[kept][order], node[kept][order], payload_bytes[kept][order])
    stays = trace.presence[np.isin(trace.presence[:, 0], _sources(trace, traffic, seed))]
    stay, t_us = _periodic(stays, traffic, seed)
    if traffic.law != "periodic":
        stay, t_us = _renewed(stays, traffic, seed)
    node = stays[stay, 0]
    order = np.lexsort((node, t_us))
    node, t_us = node[order], t_us[order]
    return Planned(t_us, node, _payloads(node, traffic, seed))


def check_traffic(trace: Trace, traffic: Traffic, where: str = "") -> None:
    """Refuse traffic that does not fit the trace, before the run begins.

    where: the place of the period, for the error about too many broadcasts.
    """
    named = traffic.sources if isinstance(traffic.sources, tuple) else ()
    known = set(trace.names)
    for key, names in (("sources", named), ("input", [e.source for e in traffic.events])):
        if missing := [name for name in dict.fromkeys(names) if name not in known]:
            near = closest(missing[0], trace.names)
            hint = f"{near} the trace has {list_some(trace.names)}".strip()
            raise InputError(f"no such node: `{missing[0]}`", where=f"traffic.{key}", hint=hint)
    if traffic.law == "file":
        _check_events(trace, traffic)
        return
    there_us = np.maximum(trace.presence[:, 2] - trace.presence[:, 1] - traffic.first_us, 0)
    count = int((-(-there_us // traffic.period_us)).sum())
    if count > BROADCASTS_MAX:
        enough = format_duration(10 ** len(str(int(there_us.sum()) // BROADCASTS_MAX)))
        raise InputError(
            f"a broadcast every {format_duration(traffic.period_us)} makes {count:,} of them, "
            f"of which {BROADCASTS_MAX:,} can be played",
            where=where,
            hint=f"a longer period, for example `{enough}`, makes fewer",
        )


def _check_events(trace: Trace, traffic: Traffic) -> None:
    number = {name: node for node, name in enumerate(trace.names)}
    rows = np.array([(e.t_us, number[e.source]) for e in traffic.events], np.int64).reshape(-1, 2)
    if not _is_present(trace, rows[:, 0], rows[:, 1]).any():
        span = f"{trace.start_us / 1e6:g} s to {trace.end_us / 1e6:g} s"
        problem = "no source of the file is present when it broadcasts"
        raise InputError(problem, where="traffic.input", hint=f"the trace lasts from {span}")


def _is_present(trace: Trace, t_us: Ints, node: Ints) -> NDArray[np.bool_]:
    """Return whether each node is present at its instant."""
    stays = trace.presence[np.lexsort((trace.presence[:, 1], trace.presence[:, 0]))]
    if not len(stays):
        return np.zeros(len(t_us), bool)
    # Node and rank of the time in one number: the last stay that has begun is found at once.
    times = np.unique(stays[:, 1])
    begun = stays[:, 0] * (len(times) + 1) + np.searchsorted(times, stays[:, 1], "right")
    wanted = node * (len(times) + 1) + np.searchsorted(times, t_us, "right")
    last = stays[np.searchsorted(begun, wanted, "right") - 1]
    is_there: NDArray[np.bool_] = (last[:, 0] == node) & (last[:, 1] <= t_us) & (t_us < last[:, 2])
    return is_there


def _sources(trace: Trace, traffic: Traffic, seed: int) -> Ints:
    """Return the nodes that broadcast. A larger share contains the nodes of a smaller one."""
    nodes = np.arange(trace.nodes_count)
    if isinstance(traffic.sources, tuple):
        return np.array([trace.names.index(name) for name in traffic.sources])
    if traffic.sources is None:
        return nodes
    count = max(1, round(traffic.sources * len(nodes)))
    return np.sort(np.argsort(draw(seed, "sources", nodes), kind="stable")[:count])


def _periodic(stays: Ints, traffic: Traffic, seed: int) -> tuple[Ints, Ints]:
    """Return (index of the stay, time) of each broadcast."""
    begin_us = stays[:, 1] + traffic.first_us
    if traffic.phase:
        phase_us = draw(seed, "phase", stays[:, 0]) * traffic.period_us
        begin_us = begin_us + phase_us.astype(np.int64)
    counts = np.maximum(-(-(stays[:, 2] - begin_us) // traffic.period_us), 0)
    stay = np.repeat(np.arange(len(stays)), counts)
    turn = np.arange(len(stay)) - np.repeat(np.cumsum(counts) - counts, counts)
    return stay, begin_us[stay] + turn * traffic.period_us


def _renewed(stays: Ints, traffic: Traffic, seed: int) -> tuple[Ints, Ints]:
    """Return (index of the stay, time) of each broadcast, with independent times between them."""
    now_us = stays[:, 1] + traffic.first_us
    found: list[tuple[Ints, Ints]] = []
    left, turn = np.arange(len(stays)), 0
    while len(left):
        drawn = draw(seed, "gaps", stays[left, 0], stays[left, 1], np.full(len(left), turn))
        share = -np.log1p(-drawn) if traffic.law == "poisson" else 2.0 * drawn
        # At least 1 µs, so that the times of a node grow and the loop ends.
        now_us[left] += np.maximum((share * traffic.period_us).astype(np.int64), 1)
        left = left[now_us[left] < stays[left, 2]]
        found.append((left, now_us[left]))
        turn += 1
    stay, t_us = (np.concatenate(part) for part in zip(*found, strict=True))
    return stay, t_us


def _payloads(node: Ints, traffic: Traffic, seed: int) -> Ints:
    """Return the size of each payload. node: in order of time."""
    if traffic.payload_law == "fixed":
        return np.full(len(node), traffic.payload_bytes, np.int64)
    order = np.argsort(node, kind="stable")
    turn = np.empty(len(node), np.int64)
    turn[order] = np.arange(len(node)) - np.searchsorted(node[order], node[order])
    drawn = draw(seed, "payloads", node, turn)
    share = 2.0 * drawn if traffic.payload_law == "uniform" else -np.log1p(-drawn)
    size_bytes: Ints = np.round(share * traffic.payload_bytes).astype(np.int64)
    return np.minimum(size_bytes, PAYLOAD_BYTES_MAX)


def draw(seed: int, stream: str, *ids: Ints) -> NDArray[np.float64]:
    """Return a uniform draw from [0, 1) for each row of ids: `streams.unit` on arrays."""
    key = np.full(len(ids[0]), stream_key(seed, stream), np.uint64)
    for values in ids:
        z = (key ^ values.astype(np.uint64)) + np.uint64(GOLDEN)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        key = z ^ (z >> np.uint64(31))
    return (key >> np.uint64(11)).astype(np.float64) * 2.0**-53
