"""The radio channel of a world of cells, in two equivalent implementations: driven and compiled.

The world requests frames. Then it lets the channel advance to the first instant at which a frame
ends, or to the world's own next event. The channel returns the nodes that accept each frame. A host
accepts frames of the station of its cell; a station accepts frames addressed to it. Both accept
only frames that were requested since the host entered the cell.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from beforehand.kernels.cells import air as twin
from beforehand.kernels.cells import grid_index, reception
from beforehand.kernels.cells.air import EVERYBODY
from beforehand.kernels.cells.reception import NOWHERE
from beforehand.sim.cells.spec import CellsSpec, Point
from beforehand.sim.cells.tally import KINDS, OUTCOMES
from beforehand.sim.contacts.links import FOREVER_US
from beforehand.sim.grid_index import GridIndex
from beforehand.sim.radio import MACS, STREAM, Air
from beforehand.sim.streams import stream_key

Ints = NDArray[np.int64]
Request = tuple[int, int, int, int]
"""Node, bytes, target or `EVERYBODY`, kind."""

FRAMES_START = 1 << 12
NEIGHBOURS_START = 1 << 4
NEVER_US = -1


class AirStep(NamedTuple):
    """An instant at which frames have ended; `NEVER_US` if none has."""

    t_us: int
    taken: list[tuple[int, int]]
    """(frame, node): the nodes that accept a frame."""
    ended: list[int]
    """Frames that are over, whether or not a node accepted them, and frames that were discarded
    because the queue of their node was full."""


class Channel(Protocol):
    due_us: int
    """The time of the next event on the channel, if no frame is requested."""
    frames: int
    """How many frames were requested so far: the number of the next one."""

    @property
    def thrown(self) -> int:
        """Return how many of these frames found a full queue."""
        ...

    def ask(self, request: Request) -> None:
        """Put a frame into the queue of its node, at the instant of the next `advance`."""
        ...

    @property
    def is_asked(self) -> bool:
        """Return whether a request is waiting for the next `advance`."""
        ...

    def advance(self, now_us: int, until_us: int) -> AirStep: ...

    def enter(self, host: int, station: int) -> None:
        """Put the host into the cell of that station, or `NOWHERE`, from now on."""
        ...

    def move(self, node: int, at: Point | None) -> None:
        """Move a node to a position. None: it is nowhere, and neither sends nor receives."""
        ...

    def read(self) -> tuple[Ints, Ints]:
        """Return the outcomes so far: by (kind, whether the receiver is a host, outcome) at the
        intended receivers, and by outcome at all neighbours."""
        ...


def open_channel(spec: CellsSpec, seed: int) -> Channel:
    if spec.channel == "compiled":
        return CompiledChannel(spec, seed)
    return DrivenChannel(spec, seed)


class DrivenChannel:
    """The channel that runs `sim.radio.Air`."""

    def __init__(self, spec: CellsSpec, seed: int) -> None:
        self.due_us = FOREVER_US
        self.frames = 0
        self._stations = spec.stations
        self._grid = GridIndex(spec.nodes, spec.range_m)
        self._air = Air(spec.radio, self._grid.neighbours, seed)
        self._asked: list[Request] = []
        self._requests: dict[int, Request] = {}
        self._cell = [NOWHERE] * spec.nodes
        self._entered = [0] * spec.nodes
        self._counts = np.zeros((len(KINDS), 2, len(OUTCOMES)), np.int64)
        self._air_outcomes = np.zeros(len(OUTCOMES), np.int64)

    @property
    def thrown(self) -> int:
        return self._air.thrown

    @property
    def is_asked(self) -> bool:
        return bool(self._asked)

    def ask(self, request: Request) -> None:
        self._asked.append(request)
        self.frames += 1

    def advance(self, now_us: int, until_us: int) -> AirStep:
        air = self._air
        step = AirStep(NEVER_US, [], [])
        for request in self._asked:
            before = air.thrown
            frame = air.transmit(now_us, *request[:3])
            if air.thrown == before:
                self._requests[frame] = request
            else:
                step.ended.append(frame)
        self._asked.clear()
        while air.due_us <= until_us and (step.t_us == NEVER_US or air.due_us == step.t_us):
            signal = air.step()
            if signal is not None and signal.is_end and any(signal[4:]):
                step = step._replace(t_us=signal.t_us)
                step.ended.append(signal.frame)
                self._sort(signal.frame, signal[4:], step.taken)
        self.due_us = air.due_us
        return step

    def _sort(self, frame: int, outcomes: Any, taken: list[tuple[int, int]]) -> None:
        source, _, target, kind = self._requests.pop(frame)
        for outcome, nodes in enumerate(outcomes):
            self._air_outcomes[outcome] += len(nodes)
            for node in nodes:
                host, station = (source, node) if source >= self._stations else (node, source)
                is_registered = self._cell[host] == station and frame >= self._entered[host]
                if is_registered and target in (EVERYBODY, node):
                    self._counts[kind, int(host == node), outcome] += 1
                    if outcome == 0:
                        taken.append((frame, node))

    def enter(self, host: int, station: int) -> None:
        self._cell[host], self._entered[host] = station, self.frames

    def move(self, node: int, at: Point | None) -> None:
        if at is None:
            self._grid.remove(node)
        else:
            self._grid.move(node, *at)

    def read(self) -> tuple[Ints, Ints]:
        return self._counts.copy(), self._air_outcomes.copy()


class CompiledChannel:
    """The same channel, run by the compiled kernel."""

    def __init__(self, spec: CellsSpec, seed: int) -> None:
        self.due_us = FOREVER_US
        self.frames = 0
        nodes, radio = spec.nodes, spec.radio
        self._radio = radio
        self._grid = grid_index.make_grid(nodes, spec.range_m)
        neighbours = np.zeros((nodes, min(nodes, NEIGHBOURS_START)), np.int64)
        degree = np.zeros(nodes, np.int64)
        self._state = twin.new_state(neighbours, degree, FRAMES_START, nodes + 1)
        self._reception = reception.new_reception(spec.stations, nodes, len(KINDS), FRAMES_START)
        self._rules = twin.Rules(
            mac=MACS.index(radio.mac),
            capture=radio.capture,
            cw=radio.cw,
            slot_us=radio.slot_us,
            difs_us=radio.difs_us,
            sense_us=radio.sense_us,
            key=np.uint64(stream_key(seed, STREAM)),
            answers_draw=radio.answers_draw,
            queue_max=radio.queue_max or 0,
            full_duplex=radio.full_duplex,
            unicast_hold_us=radio.unicast_hold_us,
        )
        self._asked: list[Request] = []
        self._airtimes_us: dict[int, int] = {}
        self._nothing = np.zeros((0, reception.REQUEST), np.int64)

    @property
    def thrown(self) -> int:
        return int(self._state.tally[twin.THROWN])

    @property
    def is_asked(self) -> bool:
        return bool(self._asked)

    def ask(self, request: Request) -> None:
        node, size_bytes, target, kind = request
        airtime_us = self._airtimes_us.get(size_bytes)
        if airtime_us is None:
            airtime_us = self._airtimes_us[size_bytes] = self._radio.airtime_us(size_bytes)
        self._asked.append((node, airtime_us, target, kind))
        self.frames += 1

    def advance(self, now_us: int, until_us: int) -> AirStep:
        requests, thrown = self._nothing, 0
        if self._asked:
            thrown = self.thrown
            requests = np.array(self._asked, np.int64)
            self._asked.clear()
            while self.frames > len(self._reception.frame):
                self._grow()
        step = self._reception
        reception.advance(self._state, self._rules, step, requests, now_us, until_us)
        t_us, due_us, taken, ended = step.answer.tolist()
        self.due_us = due_us if due_us != NEVER_US else FOREVER_US
        over = step.ended[:ended].tolist()
        if len(requests) and self.thrown > thrown:
            first = self.frames - len(requests)
            airtimes_us = self._state.airtime_us[first : self.frames]
            over += (first + np.flatnonzero(airtimes_us == NEVER_US)).tolist()
        return AirStep(t_us, step.taken[:taken].tolist(), over)

    def _grow(self) -> None:
        """Double the room for frames."""
        state, step = self._state, self._reception
        self._state = state._replace(
            airtime_us=np.concatenate((state.airtime_us, np.zeros_like(state.airtime_us))),
            target=np.concatenate((state.target, np.zeros_like(state.target))),
            following=np.concatenate((state.following, np.full_like(state.following, NEVER_US))),
        )
        more = np.concatenate((step.frame, np.zeros_like(step.frame)))
        self._reception = step._replace(frame=more)

    def enter(self, host: int, station: int) -> None:
        self._reception.cell[host], self._reception.entered[host] = station, self.frames

    def move(self, node: int, at: Point | None) -> None:
        if at is None:
            grid_index.remove(self._state, self._grid, node)
            return
        while not grid_index.move(self._state, self._grid, node, *at):
            self._widen()

    def _widen(self) -> None:
        """Double the room for neighbours."""
        state = self._state
        self._state = state._replace(
            neighbours=np.hstack((state.neighbours, np.zeros_like(state.neighbours))),
            audience=np.hstack((state.audience, np.zeros_like(state.audience))),
        )

    def read(self) -> tuple[Ints, Ints]:
        return self._reception.counts.copy(), self._reception.air_outcomes.copy()
