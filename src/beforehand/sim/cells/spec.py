"""What one run of the world of cells depends on, besides its seed. Plain values.

The defaults are those of MOB section 5. What the papers leave open has a name here and is discussed
in docs/cells.md: how a host chooses its cell, the MAC, jitter.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from beforehand.errors import InputError, InputErrors
from beforehand.kernels.heap import DUE_US_MAX
from beforehand.protocols.mobile.pace import Pace
from beforehand.protocols.mobile.systems import SYSTEMS
from beforehand.sim.radio import Radio

SECOND_US = 1_000_000

Point = tuple[float, float]
"""In metres."""


class Walk(msgspec.Struct, frozen=True):
    """How hosts move: in a straight line, in a new direction now and then."""

    speed_m_s: float = 1.39
    """0: nobody moves."""
    turn_us: int = 5 * SECOND_US
    step_us: int = SECOND_US
    """A host stands still for so long, and then is where it has walked to meanwhile."""
    stays_covered: bool = True
    """Who would leave the range of all stations turns at once; else it just walks on."""


class Route(msgspec.Struct, frozen=True):
    """A host that walks straight from point to point, and then stays."""

    host: int
    points: tuple[Point, ...]


class Failure(msgspec.Struct, frozen=True):
    """A host crashes, and comes back at the same place with what it had saved."""

    at_us: int
    for_us: int
    host: int | None = None
    station: int | None = None
    """If no host is named: a random one of those in this cell, or, without a cell, of all."""


class Wiring(msgspec.Struct, frozen=True):
    """The wires between stations: each direction is a queue, first in, first out."""

    bits_per_s: int = 100_000_000
    delay_us: int = 10_000
    header_bytes: int = 60
    """Of TCP, IPv4 and MAC; one for every frame: nothing is grouped."""


class CellsSpec(msgspec.Struct, frozen=True):
    """Hosts are numbered from 0 here; in logs they come after the stations."""

    system: str = "was"
    stations: int = 10
    hosts: int = 200
    stations_at: tuple[Point, ...] | None = None
    """None: a hexagonal lattice, in rings around the first."""
    hosts_at: tuple[Point, ...] | None = None
    """None: drawn, see `placement`."""
    placement: Literal["cells", "area"] = "cells"
    """The same number in each cell, or anywhere in the area that is covered."""
    edges: tuple[tuple[int, int], ...] | None = None
    """Of the tree of stations; None: none has more than three neighbours, and it is not deep."""
    wiring: Wiring = Wiring()
    radio: Radio = Radio(bits_per_s=20_000_000, answers_draw=True, queue_max=100)
    """Queues as in INET, where the papers were simulated: a hundred frames, if one says nothing."""
    range_m: float = 120.0
    loss: float = 0.0
    """Of what was received by radio, this share is lost all the same: for those who look for
    trouble."""
    choice: Literal["stay", "nearest"] = "stay"
    """A host leaves its station when it is out of its range, or when another one is nearer."""
    walk: Walk = Walk()
    routes: tuple[Route, ...] = ()
    payload_bytes: int = 100
    rate_per_s: float = 35.0
    """Broadcasts of all hosts together."""
    pace: Pace = Pace(rounds=5)
    ack_jitter: float = 0.2
    """An acknowledgement comes later than its core asks for, by up to this share of the delay; the
    first of a node also by up to one interval more."""
    timer_jitter: float = 0.1
    """The same of all other timers. With 0, two hosts that are hidden from each other and have
    collided once collide again at every repetition."""
    warm_up_us: int = 5 * SECOND_US
    """Hosts join in the first half of this; then broadcasts begin."""
    duration_us: int = 300 * SECOND_US
    """Of all, the warm-up included."""
    settle_us: int = 10 * SECOND_US
    """What is broadcast so late may still be under way at the end."""
    failures: tuple[Failure, ...] = ()
    joins: tuple[tuple[int, int], ...] = ()
    """(host, at_us) of those who come later."""
    leaves: tuple[tuple[int, int], ...] = ()
    """(host, at_us) of those who go for good."""
    sample_us: int = SECOND_US
    channel: Literal["compiled", "driven"] = "compiled"
    """By whom the air is played: the same run, fast or through `sim.radio.Air`."""

    @property
    def nodes(self) -> int:
        return self.stations + self.hosts

    def check(self) -> None:
        """Refuse what cannot be run, before anything runs."""
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

    @property
    def moves(self) -> bool:
        """Whether anybody walks."""
        return self.walk.speed_m_s > 0
