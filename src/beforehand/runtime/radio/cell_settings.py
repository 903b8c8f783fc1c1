"""The settings shared by stations and hosts: the stations file, the timing, and size limits.

group = "port"

[[station]]
name = "north"
address = "10.0.0.1:7001"    # for the other stations
cell = "239.77.0.1:7700"     # multicast, on the network segment that is its cell
interface = "10.1.0.1"       # its own address there
wires = ["south"]            # name each wire at one of its ends only
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from beforehand.errors import InputError, LocalError
from beforehand.protocols.contract.codec import Codec
from beforehand.protocols.contract.needs import Link, Needs
from beforehand.protocols.mobile.bounds import VERSION_BYTES, message_bytes_max
from beforehand.protocols.mobile.pace import Pace
from beforehand.protocols.mobile.station_tree import routes
from beforehand.protocols.mobile.was.frames import Connect, Frame, Join, Leave, StationAck
from beforehand.runtime.members_file import check_names, decode_file, parse_address
from beforehand.runtime.radio.datagrams import DATAGRAM_BYTES_MAX
from beforehand.runtime.radio.multicast import Segment
from beforehand.runtime.radio.reliable_channel import WIRE_BYTES_MAX
from beforehand.runtime.transport.address import Address

PACE = Pace(retry_us_max=500_000, retry_us_min=500_000, ack_us=100_000, silence_us=60 * 1_000_000)
"""The timing, equal at all stations and hosts. Unlike in the paper, the retransmission rate does
not grow with the number of pending messages: on a busy machine they wait in a queue, and
retransmissions would lengthen it. A host that owes acknowledgements delays its cell for at most one
minute of silence."""
BEACON_SECONDS = 0.25
"""The interval of a station's beacons."""
LOST_SECONDS = 1.5
"""Time without a beacon after which a host has left the cell."""
TICKS_MAX = 40
"""Recent ticks of a station that a host may name: those of the last ten seconds."""
PAYLOAD_BYTES_MAX = 1000
"""Upper limit of a payload, so that most networks carry its datagram unfragmented."""
NAME_BYTES_MAX = 48
FRAME_BYTES_MAX = DATAGRAM_BYTES_MAX - 256
"""Upper limit of an encoded frame; the rest of the datagram is for names and AEAD."""
MESSAGE_BYTES_MAX = message_bytes_max(FRAME_BYTES_MAX, NAME_BYTES_MAX)
"""Upper limit of an encoded message. A station rejects a longer one on receipt: it may fit into the
host's datagram, but not into every datagram in which stations forward it."""
GIVEN = Needs({"cell": Link(), "wire": Link(fifo=True, reliable=True)})
"""The guarantees of multicast and of reliable channels, which the needs of a core are checked
against."""
STATIONS_MAX = 256
HINT = "docs/sockets.md shows such a file"

WIRES: Codec[Frame] = Codec("mobile", Frame, bytes_max=WIRE_BYTES_MAX)
RADIO: Codec[Frame] = Codec("mobile", Frame, bytes_max=FRAME_BYTES_MAX)


class _Station(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    address: str
    cell: str
    interface: str = ""
    wires: tuple[str, ...] = ()


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    group: str
    station: tuple[_Station, ...]


class Stations(msgspec.Struct, frozen=True):
    """The tree of stations, and the cell of each."""

    group: str
    addresses: dict[str, Address]
    segments: dict[str, Segment]
    wires: tuple[tuple[str, str], ...]

    def peers_of(self, name: str) -> list[str]:
        """Return the stations that a wire connects with this one."""
        return [b if a == name else a for a, b in self.wires if name in (a, b)]

    def check(self, name: str) -> None:
        """Raise `InputError` if there is no station of this name."""
        if name not in self.addresses:
            listed = ", ".join(f"`{known}`" for known in [*self.addresses][:20])
            raise InputError(f"no station `{name}`", hint=f"stations are {listed}")


def read_stations(path: Path) -> Stations:
    """Read the stations file; raise `InputError` if it is not valid."""
    found = decode_file(path, _File, HINT)
    names = [station.name for station in found.station]
    check_names(path, "group", [found.group], HINT)
    check_names(path, "station", names, HINT)
    if not 1 <= len(names) <= STATIONS_MAX:
        problem = f"{len(names)} stations; there are 1 to {STATIONS_MAX}"
        raise InputError(problem, where=str(path), hint=HINT)
    for name in names:
        check_name(name, where=str(path))
    wires = tuple((station.name, other) for station in found.station for other in station.wires)
    try:
        routes(names[0], wires)
    except LocalError as error:
        raise InputError(error.problem, where=str(path), hint=error.hint) from error
    if {*names} != {names[0]} | {end for wire in wires for end in wire}:
        problem = "the wires are not those of the stations"
        raise InputError(problem, where=str(path), hint="a tree: n - 1 wires, all connected")
    addresses = {station.name: parse_address(path, station.address) for station in found.station}
    if len({*addresses.values()}) < len(addresses):
        problem = "two stations have the same address"
        raise InputError(problem, where=str(path), hint="each listens at its own")
    return Stations(
        found.group,
        addresses,
        {station.name: _segment(path, station) for station in found.station},
        wires,
    )


def is_short(name: str) -> bool:
    """Return whether a name is short enough for a datagram."""
    return len(name.encode()) <= NAME_BYTES_MAX


def check_name(name: str, *, where: str = "") -> None:
    """Raise `InputError` if a name is too long for a datagram."""
    if not is_short(name):
        problem = f"too long a name by radio: `{name}`"
        raise InputError(problem, where=where, hint=f"at most {NAME_BYTES_MAX} bytes")


def fit(frame: Frame) -> Iterable[Frame]:
    """Return equivalent frames that fit into one datagram each, as far as possible.

    A frame that is too long loses its list of visited cells, and the station then asks all others
    for the host. Acknowledgements for several hosts are sent one by one.
    """
    if isinstance(frame, Join | Connect | Leave) and frame.visits:
        if not _fits(frame):
            frame = msgspec.structs.replace(frame, visits=None)
    elif isinstance(frame, StationAck) and not _fits(frame):
        return [StationAck(frame.cell, (ack,)) for ack in frame.acks]
    return [frame]


def _fits(frame: Frame) -> bool:
    return VERSION_BYTES + len(msgspec.msgpack.encode(frame)) <= FRAME_BYTES_MAX


def _segment(path: Path, station: _Station) -> Segment:
    try:
        return Segment.parse(station.cell, station.interface)
    except InputError as error:
        raise InputError(error.problem, where=str(path), hint=error.hint) from error
