"""The specification of a run in the world of cells, with everything but the seed. Plain values.

The defaults are those of MOB section 5. docs/cells.md discusses the choices that the papers leave
open: how a host chooses its cell, the MAC, and jitter.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from beforehand.errors import InputError, InputErrors
from beforehand.kernels.queue.heap import DUE_US_MAX
from beforehand.protocols.mobile.ck.options import CkOptions
from beforehand.protocols.mobile.pace import Pace
from beforehand.protocols.mobile.systems import SYSTEMS
from beforehand.protocols.mobile.tcp_flooding.connection import Tcp
from beforehand.sim.radio import Radio

SECOND_US = 1_000_000

Point = tuple[float, float]
"""In metres."""


class Walk(msgspec.Struct, frozen=True):
    """How hosts move: in straight lines, with a new direction every `turn_us`."""

    speed_m_s: float = 1.39
    """0: hosts do not move."""
    turn_us: int = 5 * SECOND_US
    step_us: int = SECOND_US
    """A host's position changes once per this time, by the distance walked in it."""
    stays_covered: bool = True
    """Whether a host that would leave the range of all stations turns at once; else it walks on."""


class Route(msgspec.Struct, frozen=True):
    """A host that walks straight from point to point, and then stays."""

    host: int
    points: tuple[Point, ...]


class Failure(msgspec.Struct, frozen=True):
    """A host crashes, and restarts at the same place with its saved state."""

    at_us: int
    for_us: int
    host: int | None = None
    station: int | None = None
    """If no host is named: a random host in this cell or, without a cell, of all hosts."""


class Wiring(msgspec.Struct, frozen=True):
    """The wires between stations: each direction is a FIFO queue."""

    bits_per_s: int = 100_000_000
    delay_us: int = 10_000
    header_bytes: int = 60
    """The headers of TCP, IPv4 and MAC, once for every frame: frames are not grouped."""


class CellsSpec(msgspec.Struct, frozen=True):
    """The parameters of a run. Hosts are numbered from 0 here; in logs they follow the stations."""

    system: str = "was"
    stations: int = 10
    hosts: int = 200
    stations_at: tuple[Point, ...] | None = None
    """None: a hexagonal lattice, in rings around the first station."""
    hosts_at: tuple[Point, ...] | None = None
    """None: drawn, see `placement`."""
    placement: Literal["cells", "area"] = "cells"
    """The same number of hosts in each cell, or positions anywhere in the covered area."""
    edges: tuple[tuple[int, int], ...] | None = None
    """The edges of the tree of stations. None: a shallow tree of degree three."""
    wiring: Wiring = Wiring()
    radio: Radio = Radio(bits_per_s=20_000_000, answers_draw=True, queue_max=100)
    """The queue limit of 100 frames is the default of INET, the simulator of the papers."""
    range_m: float = 120.0
    loss: float = 0.0
    """Fault injection: the share of frames that are lost although they were received by radio."""
    choice: Literal["stay", "nearest"] = "stay"
    """When a host leaves its station: out of its range, or when another station is nearer."""
    walk: Walk = Walk()
    routes: tuple[Route, ...] = ()
    payload_bytes: int = 100
    rate_per_s: float = 35.0
    """The broadcasts of all hosts together."""
    pace: Pace = Pace(rounds=5)
    ck: CkOptions = CkOptions()
    tcp: Tcp = Tcp()
    ack_jitter: float = 0.2
    """The maximum extra delay of an acknowledgement, as a fraction of the delay that its core
    requests. The first one of a node is later by up to one more interval."""
    timer_jitter: float = 0.1
    """The same for all other timers. With 0, two hidden hosts that have collided once collide again
    at every retransmission."""
    warm_up_us: int = 5 * SECOND_US
    """Hosts join in the first half of this time. Broadcasts begin after it."""
    duration_us: int = 300 * SECOND_US
    """The length of the run, including the warm-up."""
    settle_us: int = 10 * SECOND_US
    """A message broadcast later than this before the end may still be under way at the end."""
    failures: tuple[Failure, ...] = ()
    joins: tuple[tuple[int, int], ...] = ()
    """(host, at_us) of hosts that join later."""
    leaves: tuple[tuple[int, int], ...] = ()
    """(host, at_us) of hosts that leave permanently."""
    sample_us: int = SECOND_US
    channel: Literal["compiled", "driven"] = "compiled"
    """The implementation of the radio channel. Both give the same run; "driven" uses
    `sim.radio.Air`."""

    @property
    def nodes(self) -> int:
        return self.stations + self.hosts

    def check(self) -> None:
        """Refuse a spec that cannot be run, before anything runs."""
        self.radio.check()
        problems = [InputError(problem, where="the world of cells") for problem in self._problems()]
        if problems:
            raise InputErrors(problems)

    def _problems(self) -> list[str]:
        system = SYSTEMS.get(self.system)
        problems = []
        if system is None:
            known = ", ".join(SYSTEMS)
            problems.append(f"unknown system: `{self.system}`; known are {known}")
        elif not system.is_mobile and self.moves:
            problems.append(f"hosts of `{self.system}` cannot change their cell, but they walk")
        elif not system.survives_crashes and self.failures:
            problems.append(f"hosts of `{self.system}` do not survive a crash, but they fail")
        if system is not None and self.leaves and not system.may_leave:
            problems.append(f"hosts of `{self.system}` cannot leave for good, but they do")
        problems += [f"`{name}` must be at least {least}: {v}" for name, v, least in self._low()]
        if self.duration_us > DUE_US_MAX:
            problems.append(f"`duration_us` is too long: {self.duration_us}")
        if self.warm_up_us >= self.duration_us:
            problems.append("the warm-up takes all of the time")
        for name, points, count in (
            ("stations_at", self.stations_at, self.stations),
            ("hosts_at", self.hosts_at, self.hosts),
        ):
            if points is not None and len(points) != count:
                problems.append(f"`{name}` has {len(points)} points for {count}")
        named = [route.host for route in self.routes] + [host for host, _ in self.joins]
        named += [host for host, _ in self.leaves]
        named += [failure.host for failure in self.failures if failure.host is not None]
        problems += [f"there is no host {host}" for host in named if not 0 <= host < self.hosts]
        return problems

    def _low(self) -> list[tuple[str, float, float]]:
        limits: dict[str, tuple[float, float]] = {
            "stations": (self.stations, 1),
            "hosts": (self.hosts, 1),
            "wiring.bits_per_s": (self.wiring.bits_per_s, 1),
            "wiring.delay_us": (self.wiring.delay_us, 0),
            "walk.speed_m_s": (self.walk.speed_m_s, 0),
            "walk.step_us": (self.walk.step_us, 1),
            "walk.turn_us": (self.walk.turn_us, self.walk.step_us),
            "payload_bytes": (self.payload_bytes, 0),
            "rate_per_s": (self.rate_per_s, 0),
            "ack_jitter": (self.ack_jitter, 0),
            "timer_jitter": (self.timer_jitter, 0),
            "warm_up_us": (self.warm_up_us, 0),
            "sample_us": (self.sample_us, 1),
            "settle_us": (self.settle_us, 0),
            "loss": (self.loss, 0),
        }
        return [(name, value, least) for name, (value, least) in limits.items() if value < least]

    def core_options(self) -> dict[str, Any]:
        """Return the options that the cores of the system take by name."""
        options: dict[str, dict[str, Any]] = {
            "ck": {"options": self.ck},
            "tcp_flooding": {"tcp": self.tcp},
        }
        return options.get(self.system, {})

    @property
    def moves(self) -> bool:
        """Return whether hosts walk."""
        return self.walk.speed_m_s > 0
