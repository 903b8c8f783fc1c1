"""Hosts that move between the cells of a tree of stations."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec

from beforehand.check.net.case import Case, Family
from beforehand.check.net.net import Net
from beforehand.protocols.contract.base import Core
from beforehand.protocols.contract.needs import LinkKind
from beforehand.protocols.mobile.pace import Pace
from beforehand.protocols.mobile.systems import SYSTEMS
from beforehand.protocols.mobile.was.frames import CatchUp, ConnectAck, Forgotten
from beforehand.protocols.mobile.was.host import Host
from beforehand.protocols.mobile.was.station import Station

Saves = Literal["delivery", "acknowledgement"]
SECOND_US = 1_000_000


@dataclass(frozen=True)
class Setup:
    pace: Pace
    saves: Saves = "delivery"


class MobileFamily(Family):
    """A registered host delivers every message broadcast from then on, wherever it moves."""

    kind: LinkKind = "cell"
    sights = (
        *("waited", "lost", "doubled", "moved", "crashed", "cut off", "restarted"),
        *("asking", "fetching", "going", "handed on later", "caught up", "delivered elsewhere"),
        *("forgotten", "too many repetitions", "taken as new", "left"),
    )

    def __init__(self, *, floods: bool = False) -> None:
        """floods: handoffs as in MOB-TR."""
        self.name = "was_flood" if floods else "was"
        self._floods = floods

    @property
    def stream(self) -> str:
        """WAS was once called `mobile` here: its seeds keep their worlds."""
        return "was_flood" if self._floods else "mobile"

    def draw(self, rng: random.Random) -> Case:
        stations, hosts = rng.choice((2, 2, 3, 4)), rng.choice((2, 3, 4, 6))
        is_lossy = rng.random() < 0.7
        crashes = rng.choice((0, 0, 1, 3))
        # A host that saves only acknowledgements delivers messages again after a crash.
        saves: Saves = "delivery" if crashes else rng.choice(("delivery", "acknowledgement"))
        silence_us, repeats_max = rng.choice(
            (*((None, None),) * 4, (3 * SECOND_US, None), *((None, 0.3),) * 3)
        )
        pace = Pace(
            rounds=rng.choice((1, 1, 3)),
            inflight_max=rng.choice((2, 150, 150)),
            silence_us=silence_us,
            repeats_max=repeats_max,
            repeats_window=1,
            quiet_us=1_100_000,
        )
        case = Case(
            stations + hosts,
            broadcasts=(
                *(0 for _ in range(stations)),
                *(rng.choice((1, 3, 8)) for _ in range(hosts)),
            ),
            options=Setup(pace, saves),
            edges=tuple((rng.randrange(child), child) for child in range(1, stations)),
            is_linked=rng.random() < 0.7,
            stations=stations,
            skew_us=60 * SECOND_US,
            # No frame is in transit for as long as a host may be silent.
            delay_us_max=None if pace.patience_us is None else SECOND_US,
            losses=rng.choice((3, 20)) if is_lossy else 0,
            doubles=rng.choice((0, 3, 20)) if is_lossy else 0,
            flaps=rng.choice((0, 3, 10, 30)),
            crashes=crashes,
            mortal=tuple(range(stations, stations + hosts)),
            leaves=rng.choice((0, 0, 0, 1, 2)),
            settings=rng.choice((0, 0, 3)),
            inbox=rng.random() < 0.3,
        )
        pace = msgspec.structs.replace(
            pace, ack_ranges=rng.random() < 0.7, retry_full_at=rng.choice((None, None, 1))
        )
        return replace(case, options=Setup(pace, saves))

    def make_core(self, case: Case, node: int) -> Core[Any]:
        setup, system = case.options, SYSTEMS[self.name]
        if node < case.stations:
            return system.make_station(node, case.edges or (), setup.pace)
        return system.make_host(node, setup.pace, saves=setup.saves, durable=case.is_mortal)

    def sent(self, net: Net, target: int, frame: Any) -> None:
        if isinstance(frame, CatchUp):
            net.sights.add("caught up")
        elif isinstance(frame, Forgotten):
            net.sights.add("forgotten")
        elif isinstance(frame, ConnectAck) and frame.is_new and frame.ses > 1:
            net.sights.add("taken as new")
        elif isinstance(frame, ConnectAck) and frame.delivered:
            net.sights.add("to be skipped")

    def look(self, net: Net, node: int) -> Iterator[str]:
        core = net.drivers[node].core
        if isinstance(core, Host) and core.state == "gone":
            yield "left"
        if isinstance(core, Station):
            for guest in core.cell.guests.values():
                yield guest.phase
                if guest.waiting is not None:
                    yield "handed on later"
            if core.guard.unregistered_costly:
                yield "too many repetitions"
            if any(kept.delivered_by for kept in core.cell.kept.values()):
                yield "delivered elsewhere"

    def forget_counts(self, core: Any) -> None:
        super().forget_counts(core)
        if isinstance(core, Station):
            core.guard.unregistered_costly = 0
            for guest in core.cell.guests.values():
                guest.last_frame_us = 0

    def problems(self, net: Net) -> Iterator[str]:
        hosts = range(net.case.stations, net.case.nodes)
        for host in hosts:
            if _state(net, host) not in ("connected", "gone"):
                yield f"host {host} is {_state(net, host)}, not connected"
        for station in range(net.case.stations):
            core = net.drivers[station].core
            assert isinstance(core, Station)
            strangers = [host for host in core.cell.guests if _state(net, host) == "gone"]
            if strangers:
                yield f"station {station} still lists {strangers}, which left"
            gauges = net.drivers[station].core.gauges(net.now_us)
            if gauges["handoffs"] or gauges["kept"] or gauges["catch_up"]:
                yield f"station {station} is not done: {gauges}"
        if net.case.options.pace.patience_us is None:
            yield from missing(net)


def _state(net: Net, host: Any) -> str:
    """Return the state of a host of any system."""
    core: Any = net.drivers[host].core
    state: str = core.state
    return state


def missing(net: Net) -> Iterator[str]:
    """Yield the messages that a host should have delivered and did not.

    - A host that joined before the first broadcast must deliver all messages.
    - A host that joined later must deliver all messages of an origin after its first one.
    - A host that left need not deliver anything.

    A message that its origin has reported as lost is excused everywhere."""
    staying = [h for h in range(net.case.stations, net.case.nodes) if _state(net, h) != "gone"]
    for host in staying:
        driver = net.drivers[host]
        excused = set() if net.case.inbox else {message.id for message in driver.cut_off}
        has = set(net.oracle.delivered[host])
        first = {origin: min(seq for o, seq in has if o == origin) for origin, _ in has}
        for id in net.oracle.pasts:
            begin = 0 if net.case.is_linked or id[0] == host else first.get(id[0], id[1] + 1)
            if id[1] >= begin and not (
                id in has or id in excused or (id[0], id) in net.reported_lost
            ):
                yield f"host {host} never delivered {id}"
