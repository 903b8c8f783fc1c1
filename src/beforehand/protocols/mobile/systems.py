"""The systems of the mobile papers by name. Only this file makes their station and host cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from beforehand.protocols.contract.base import Broadcaster, Core, NodeId
from beforehand.protocols.mobile.ck.host import CkHost
from beforehand.protocols.mobile.ck.station import CkStation
from beforehand.protocols.mobile.pace import Pace
from beforehand.protocols.mobile.tcp_flooding.flooding import TcpHost, TcpStation
from beforehand.protocols.mobile.was.host import Host
from beforehand.protocols.mobile.was.station import Station

Wires = Sequence[tuple[NodeId, NodeId]]


class System(NamedTuple):
    make_station: Callable[..., Core[Any]]
    """Takes the node, the wires and the pace, and options of its class by name."""
    make_host: Callable[..., Broadcaster[Any]]
    """Takes the node and the pace, and options of its class by name."""
    is_mobile: bool = True
    """Whether hosts may change their cell."""
    survives_crashes: bool = True
    """Whether hosts are durable, and may crash and recover."""
    may_leave: bool = True
    """Whether hosts may leave for good: `Leaver`."""
    radio_header_bytes: int = 48
    """Bytes of the UDP, IPv4 and MAC headers of a radio frame (MOB section 5)."""


def _was_host(node: NodeId, pace: Pace, *, durable: bool = True, **options: Any) -> Host:
    return Host(node, pace, durable=durable, **options)


def _was_flood_station(node: NodeId, wires: Wires, pace: Pace) -> Station:
    return Station(node, wires, pace, floods=True)


def _was_flood_host(node: NodeId, pace: Pace, **options: Any) -> Host:
    return _was_host(node, pace, names_stations=False, **options)


SYSTEMS = {
    "was": System(Station, _was_host),
    "was_flood": System(_was_flood_station, _was_flood_host),
    "ck": System(CkStation, CkHost, survives_crashes=False, may_leave=False),
    "tcp_flooding": System(
        *(TcpStation, TcpHost),
        is_mobile=False,
        survives_crashes=False,
        may_leave=False,
        # IPv4 and MAC; the fields of `Segment` stand for the 20 bytes of the TCP header.
        radio_header_bytes=40,
    ),
}
