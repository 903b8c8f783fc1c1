"""The baselines of the mobile papers: CK, and flooding over TCP."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec

from beforehand.check.families.mobile import SECOND_US, missing
from beforehand.check.net.case import Case, Family
from beforehand.check.net.net import Net
from beforehand.protocols.contract.base import Core
from beforehand.protocols.contract.needs import LinkKind
from beforehand.protocols.mobile.ck.frames import Cast, HostState, Refused
from beforehand.protocols.mobile.ck.options import CkOptions
from beforehand.protocols.mobile.ck.station import CkStation
from beforehand.protocols.mobile.pace import Pace
from beforehand.protocols.mobile.systems import SYSTEMS
from beforehand.protocols.mobile.tcp_flooding.connection import Tcp
from beforehand.protocols.mobile.tcp_flooding.flooding import TcpStation
from beforehand.protocols.mobile.tcp_flooding.frames import Segment


class CellFamily(Family):
    """Hosts that do not crash. A registered host delivers every message broadcast from then on."""

    kind: LinkKind = "cell"

    def _draw(self, rng: random.Random, options: Any, hosts: int, flaps: int) -> Case:
        stations = rng.choice((2, 2, 3, 4))
        is_lossy = rng.random() < 0.7
        return Case(
            stations + hosts,
            broadcasts=(
                *(0 for _ in range(stations)),
                *(rng.choice((1, 3, 8)) for _ in range(hosts)),
            ),
            options=options,
            edges=tuple((rng.randrange(child), child) for child in range(1, stations)),
            is_linked=rng.random() < 0.7,
            stations=stations,
            skew_us=60 * SECOND_US,
            losses=rng.choice((3, 20)) if is_lossy else 0,
            doubles=rng.choice((0, 3, 20)) if is_lossy else 0,
            flaps=flaps,
            settings=rng.choice((0, 0, 3)),
        )

    def problems(self, net: Net) -> Iterator[str]:
        for host in range(net.case.stations, net.case.nodes):
            state = getattr(net.drivers[host].core, "state", None)
            if state != "connected":
                yield f"host {host} is {state}, not connected"
        for station in range(net.case.stations):
            gauges = net.drivers[station].core.gauges(net.now_us)
            left = {name: size for name, size in gauges.items() if name in self.empty and size}
            if left:
                yield f"station {station} is not done: {left}"
        yield from missing(net)

    empty: tuple[str, ...]
    """The gauges of a station that must be 0 at rest."""


class CkSetup(msgspec.Struct, frozen=True):
    pace: Pace
    options: CkOptions = CkOptions()


class CkFamily(CellFamily):
    """Messages with vector clocks, hosts that buffer nothing, and a central discard."""

    name = "ck"
    empty = ("kept", "early", "lacking", "handoffs", "unacknowledged", "gathered")
    sights = (
        *("lost", "doubled", "moved", "joining", "fetching", "handed on"),
        *("refused", "blocked", "for all", "for some"),
    )

    def draw(self, rng: random.Random) -> Case:
        pace = Pace(rounds=rng.choice((1, 1, 3)), inflight_max=rng.choice((1, 2, 150, 150)))
        # Few hosts with many moves: a host leaves a cell soon after it entered, so handoffs
        # overtake each other.
        hosts, flaps = rng.choice(((1, 60), (2, 60), (2, 0), (3, 3), (4, 10), (6, 30)))
        case = self._draw(rng, None, hosts, flaps)
        options = CkOptions(
            needs=rng.choice(("host", "host", "station")),
            ack_us=rng.choice((0, 0, 25_000)),
        )
        return replace(case, options=CkSetup(pace, options))

    def make_core(self, case: Case, node: int) -> Core[Any]:
        system, setup = SYSTEMS[self.name], case.options
        if node < case.stations:
            return system.make_station(node, case.edges or (), setup.pace, options=setup.options)
        return system.make_host(node, setup.pace, options=setup.options)

    def sent(self, net: Net, target: int, frame: Any) -> None:
        if isinstance(frame, Cast):
            net.sights.add("for some" if frame.hosts else "for all")
        elif isinstance(frame, HostState):
            net.sights.add("handed on")
        elif isinstance(frame, Refused):
            net.sights.add("refused")

    def look(self, net: Net, node: int) -> Iterator[str]:
        core = net.drivers[node].core
        if isinstance(core, CkStation):
            for pending in core.handoff.pending.values():
                yield "joining" if pending.old is None else "fetching"
                if pending.waiting is not None:
                    yield "handed on later"
            if any(guest.blocked for guest in core.handoff.guests.values()):
                yield "blocked"


class TcpFamily(CellFamily):
    """Flooding over TCP connections. Hosts do not move."""

    name = "tcp_flooding"
    empty = ("kept", "early")
    sights = ("waited", "lost", "doubled", "recovering", "backed off", "together", "one by one")

    def draw(self, rng: random.Random) -> Case:
        tcp = Tcp(
            timeout_us_max=3_200_000,
            window=rng.choice((1, 3, 46)),
            window_start=rng.choice((1, 4)),
            segment_bytes=rng.choice((8, 24, 536)),
        )
        case = self._draw(rng, tcp, hosts=rng.choice((2, 3, 4, 6)), flaps=0)
        measures = rng.random() < 0.3
        tcp = msgspec.structs.replace(tcp, measures=measures, ack_us=rng.choice((0, tcp.ack_us)))
        return replace(case, options=tcp)

    def make_core(self, case: Case, node: int) -> Core[Any]:
        if node < case.stations:
            return SYSTEMS[self.name].make_station(node, case.edges or (), tcp=case.options)
        return SYSTEMS[self.name].make_host(node, tcp=case.options)

    def sent(self, net: Net, target: int, frame: Any) -> None:
        if isinstance(frame, Segment) and len(frame.messages) > 1:
            net.sights.add("together")

    def look(self, net: Net, node: int) -> Iterator[str]:
        core = net.drivers[node].core
        if isinstance(core, TcpStation):
            for guest in core.guests.values():
                if guest.held:
                    yield "one by one"
                yield from guest.connection.moods()
