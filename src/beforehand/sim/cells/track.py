"""Record a run of cells besides its event log: places, cells, handoff phases, radio frames.

Only a run that is asked for it keeps a track. The tracked world overrides steps of the world, so
another run does not pay for it, and both give the same event log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beforehand.events import (
    EVENTS_FILE,
    FRAMES_FILE,
    LINKS_FILE,
    PHASES_FILE,
    POSITIONS_FILE,
    About,
)
from beforehand.protocols.contract.base import NodeId, Timer
from beforehand.protocols.mobile.systems import SYSTEMS
from beforehand.protocols.registry import written_promise
from beforehand.sim.cells.channel import AirStep
from beforehand.sim.cells.result import CellsRun
from beforehand.sim.cells.spec import CellsSpec
from beforehand.sim.cells.tally import KINDS, OUTCOMES, RADIO, Tally
from beforehand.sim.cells.world import EVERYBODY, NOWHERE, World
from beforehand.sim.collector import no_collection
from beforehand.sim.log import event_table, links_table, write_events

PHASES = ("away", "connecting", "catching", "connected", "leaving", "gone", "down")
"""The states of a host; *down*: it has crashed."""
UNKNOWN = -1
REPLAYED_MAX = 200_000
"""A replay ends after about so many receptions."""
SPEED_M_US = 1e-11
"""Two speeds that differ by less than this are one: 10 µm/s."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass
class Track:
    """The record of a tracked world, in the order of the run."""

    edges: Sequence[tuple[int, int]]
    end_us: int
    places: list[tuple[int, int, float, float]] = field(default_factory=list)
    """node, t_us, x, y."""
    phases: list[tuple[int, int, int, int]] = field(default_factory=list)
    """t_us, host, the station of its cell or `NOWHERE`, and the index of its phase."""
    frames: list[tuple[int, ...]] = field(default_factory=list)
    """t_us of the end, airtime_us (-1: the queue was full, so it was never sent), node, target, the
    index of its kind, and the numbers of nodes in range by outcome, `UNKNOWN` if several frames
    ended at one instant and not all were received."""


def run_tracked(spec: CellsSpec, seed: int) -> tuple[CellsRun, Track]:
    """Run the spec as `run` does, and keep a track of it."""
    spec.check()
    world = TrackedWorld(spec, seed, SYSTEMS[spec.system])
    with no_collection():
        world.run()
    return world.result(), world.track


class TrackedWorld(World):
    """A world that keeps a track."""

    def __init__(self, spec: CellsSpec, seed: int, system: Any) -> None:
        super().__init__(spec, seed, system)
        self.track = Track(self._edges, spec.duration_us)
        self._seen: dict[int, tuple[int, int]] = {}  # host -> its cell and phase
        self._requests: dict[int, tuple[int, ...]] = {}
        self._outcomes = np.zeros(len(OUTCOMES), np.int64)
        self._kinds = Tally(spec.nodes)  # to count a frame changes a tally
        self._thrown = 0
        self.track.places += [(n, 0, *at) for n, at in enumerate(self._stations.at)]

    def _look(self, node: int) -> None:
        """Note the cell and the phase of a host if they have changed."""
        driver = self._drivers[node]
        if node < self._spec.stations or driver is None:
            return
        phase = PHASES.index(driver.core.state if driver.is_up else "down")
        seen = (self._cells[node], phase)
        if self._seen.get(node) != seen:
            self._seen[node] = seen
            self.track.phases.append((self._now_us, node, *seen))

    def _place(self, node: int) -> None:
        at = self._walker.at[node - self._spec.stations]
        self.track.places.append((node, self._now_us, *at))

    def _appear(self, node: int) -> None:
        super()._appear(node)
        self._place(node)
        self._look(node)

    def _walk(self, node: int) -> None:
        super()._walk(node)
        driver = self._drivers[node]
        if driver is not None and driver.is_up and node not in self._gone:
            self._place(node)
            self._look(node)

    def _leave(self, node: int) -> None:
        super()._leave(node)
        self._look(node)

    def _fail(self, index: int) -> None:
        node = self._victim(index)
        super()._fail(index)
        if node is not None:
            self._place(node)
            self._look(node)

    def _arrive(self, node: int, source: int, frame: Any) -> None:
        super()._arrive(node, source, frame)
        self._look(node)

    def _fire(self, node: int, timer: Timer, ticket: int) -> None:
        super()._fire(node, timer, ticket)
        self._look(node)

    def send(self, node: Any, sends: Sequence[tuple[NodeId | None, Any]]) -> None:
        number, stations = self._channel.frames, self._spec.stations
        super().send(node, sends)
        for peer, frame in sends:
            assert peer is None or isinstance(peer, int)
            if peer is not None and peer < stations and node < stations:
                continue  # by wire
            kind, size = self._kinds.count(RADIO, node, peer, frame)
            size_bytes = size.total_bytes + self._system.radio_header_bytes
            airtime_us = self._spec.radio.airtime_us(size_bytes)
            target = EVERYBODY if peer is None else peer
            self._requests[number] = (airtime_us, node, target, kind)
            number += 1

    def _hand_over(self, step: AirStep) -> None:
        super()._hand_over(step)
        for _, node in step.taken:
            self._look(node)
        thrown = self._channel.thrown - self._thrown
        self._thrown += thrown
        outcomes = self._channel.read()[1]
        here, self._outcomes = (outcomes - self._outcomes).tolist(), outcomes
        # The compiled channel lists frames that found a full queue after those that have ended.
        first_thrown = len(step.ended) - thrown
        if first_thrown > 1:
            here = [UNKNOWN, *(UNKNOWN if many else 0 for many in here[1:])]
        for at, number in enumerate(step.ended):
            airtime_us, *request = self._requests.pop(number)
            ended = (step.t_us, airtime_us) if at < first_thrown else (self._now_us, UNKNOWN)
            seen = here if at < first_thrown else [0] * len(OUTCOMES)
            self.track.frames.append((*ended, *request, *seen))


def write_track(track: Track, folder: Path) -> None:
    """Write the tables that `play` reads beside an event log."""
    for name, table in (
        (LINKS_FILE, links_table(_links(track))),
        (PHASES_FILE, _phases_table(track)),
        (FRAMES_FILE, _frames_table(track)),
        (POSITIONS_FILE, _movement_table(track)),
    ):
        write_events(table, folder / name)


def _links(track: Track) -> Ints:
    """Return the wires, and the stay of each host in each cell: a, b, up_us, down_us."""
    rows = [(*sorted(edge), 0, track.end_us) for edge in track.edges]
    begun: dict[int, tuple[int, int]] = {}
    for t_us, host, cell, phase in [*track.phases, *_ends(track)]:
        before = begun.get(host)
        is_in = cell != NOWHERE and PHASES[phase] not in ("down", "gone")
        if before is not None and (not is_in or before[0] != cell):
            rows.append((before[0], host, before[1], t_us))
            del begun[host]
        if is_in:
            begun.setdefault(host, (cell, t_us))
    return np.array(rows, np.int64).reshape(-1, 4)


def _ends(track: Track) -> list[tuple[int, int, int, int]]:
    hosts = dict.fromkeys(host for _, host, _, _ in track.phases)
    return [(track.end_us, host, NOWHERE, 0) for host in hosts]


def _phases_table(track: Track) -> pa.Table:
    t_us, host, cell, phase = np.array(track.phases, np.int64).reshape(-1, 4).T
    named = pa.DictionaryArray.from_arrays(phase.astype(np.int8), pa.array(PHASES))
    names = ["t_us", "node", "station", "phase"]
    columns = [pa.array(c) for c in (t_us, host.astype(np.int32), cell.astype(np.int32))]
    return pa.table([*columns, named], names=names)


def _frames_table(track: Track) -> pa.Table:
    table = np.array(track.frames, np.int64).reshape(-1, 5 + len(OUTCOMES))
    t_us, airtime_us, node, target, kind, *outcomes = table.T
    named = pa.DictionaryArray.from_arrays(kind.astype(np.int8), pa.array(KINDS))
    plain = (t_us, airtime_us, node.astype(np.int32), target.astype(np.int32))
    columns = [
        *(pa.array(c) for c in plain),
        named,
        *(pa.array(f.astype(np.int16)) for f in outcomes),
    ]
    return pa.table(columns, names=["t_us", "airtime_us", "node", "target", "kind", *OUTCOMES])


def _movement_table(track: Track) -> pa.Table:
    """Return straight ways: a way lasts until the host turns, stands still, or disappears."""
    table = np.array(track.places, np.float64).reshape(-1, 4)
    node, t_us, x, y = table[np.lexsort((table[:, 1], table[:, 0]))].T
    moved = np.concatenate([t_us[1:] > t_us[:-1], [False]])[: len(node)]
    same = np.append(node[1:] == node[:-1], False)[: len(node)]
    way = np.flatnonzero(moved & same)
    last = np.flatnonzero(~same & (t_us < track.end_us))
    ways = [
        np.concatenate([node[way], node[last]]),
        np.concatenate([t_us[way], t_us[last]]), np.concatenate([x[way], x[last]]),
        np.concatenate([y[way], y[last]]),
        np.concatenate([t_us[way + 1], np.full(len(last), track.end_us)]),
        np.concatenate([x[way + 1], x[last]]), np.concatenate([y[way + 1], y[last]]),
    ]  # fmt: skip
    names = ["node", "t0_us", "x0", "y0", "t1_us", "x1", "y1"]
    whole = {"node": np.int32, "t0_us": np.int64, "t1_us": np.int64}
    joined = zip(names, _joined(ways), strict=True)
    return pa.table({n: pa.array(c.astype(whole.get(n, np.float64))) for n, c in joined})


def _joined(ways: list[Floats]) -> list[Floats]:
    """Join ways that go on in one direction at one speed: a host turns every few steps."""
    order = np.lexsort((ways[1], ways[0]))
    node, t0, x0, y0, t1, x1, y1 = (column[order] for column in ways)
    vx, vy = (x1 - x0) / (t1 - t0), (y1 - y0) / (t1 - t0)
    goes_on = (node[1:] == node[:-1]) & (t0[1:] == t1[:-1])
    for v in (vx, vy):
        goes_on &= np.abs(v[1:] - v[:-1]) < SPEED_M_US
    first = np.flatnonzero(np.append(True, ~goes_on)[: len(node)])
    last = np.append(first[1:], len(node)) - 1
    return [node[first], t0[first], x0[first], y0[first], t1[last], x1[last], y1[last]]


def record_run(name: str, spec: CellsSpec, seed: int, folder: Path) -> CellsRun:
    """Run once, and write the event log and the tables beside it into a folder."""
    result, track = run_tracked(spec, seed)
    about = About(protocol=spec.system, range_m=spec.range_m, stations=spec.stations)
    promise = written_promise(spec.system)
    senders = result.senders
    log = event_table(name, result.events, senders=senders, promise=promise, about=about)
    write_events(log, folder / EVENTS_FILE)
    write_track(track, folder)
    return result


def replay_run(name: str, parameters: Mapping[str, Any], folder: Path) -> str:
    """Record the run of a finished task again, or its beginning; return the part that was played.

    A search has many runs. Its first one is played.
    """
    fields = {field: parameters[field] for field in CellsSpec.__struct_fields__}
    spec = msgspec.convert(fields, CellsSpec)
    per_us = spec.hosts * spec.rate_per_s / 1e6
    end_us = spec.warm_up_us + int(REPLAYED_MAX / per_us) if per_us else spec.duration_us
    part = ""
    if end_us < spec.duration_us:
        spec = msgspec.structs.replace(spec, duration_us=end_us)
        part = f"the first {end_us / 1e6:.0f} s of the run"
    record_run(name, spec, parameters["seed"], folder)
    return part
