"""A cell on a real network: UDP multicast on one network segment, heard by every node there."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable

import msgspec

from beforehand.errors import InputError
from beforehand.runtime.radio.datagrams import (
    DATAGRAM_BYTES_MAX,
    AirCounters,
    Datagram,
    DatagramOpener,
    DatagramSealer,
    Kind,
)
from beforehand.runtime.transport.address import Address

BUFFER_BYTES = 1 << 20
"""Receive buffer: holds a burst of a whole window of messages."""
HINT = "a cell is an IPv4 multicast address and a port: `239.77.0.1:7700`"


class Segment(msgspec.Struct, frozen=True):
    """The location of a cell."""

    cell: Address
    interface: str = "0.0.0.0"
    """Our own address on that network segment; the default lets the system choose."""

    @classmethod
    def parse(cls, cell: str, interface: str = "") -> Segment:
        """Parse a multicast address; raise `InputError` if it or the interface is not valid."""
        address = Address.parse(cell)
        try:
            is_multicast = ipaddress.IPv4Address(address.host).is_multicast
            local = ipaddress.IPv4Address(interface or "0.0.0.0")
        except ValueError as error:
            raise InputError(f"not a cell: `{cell}`, `{interface}`", hint=HINT) from error
        if not is_multicast or not address.port:
            raise InputError(f"not a cell: `{cell}`", hint=HINT)
        return cls(address, str(local))


class Multicast(asyncio.DatagramProtocol):
    """One end of a cell: encrypts and sends datagrams, receives and decrypts them."""

    def __init__(
        self,
        segment: Segment,
        sealer: DatagramSealer,
        opener: DatagramOpener,
        counters: AirCounters,
        on_datagram: Callable[[Datagram], None],
    ) -> None:
        self._segment, self._sealer, self._opener, self._counters = (
            segment,
            sealer,
            opener,
            counters,
        )
        self._on_datagram = on_datagram
        self._transport: asyncio.DatagramTransport | None = None

    async def start(self) -> None:
        """Join the multicast group; raise `InputError` if the segment cannot be used."""
        loop = asyncio.get_running_loop()
        opened = _open(self._segment)
        transport, _ = await loop.create_datagram_endpoint(lambda: self, sock=opened)
        self._transport = transport

    def send(self, kind: Kind, tick: int, frame: bytes) -> None:
        """Send a frame to all nodes in the cell, without any guarantee of delivery."""
        datagram = self._sealer.seal(kind, tick, frame)
        if len(datagram) > DATAGRAM_BYTES_MAX:
            self._counters.too_large += 1
        elif self._transport is not None:
            self._counters.sent += 1
            self._transport.sendto(datagram, (self._segment.cell.host, self._segment.cell.port))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    def datagram_received(self, data: bytes, addr: object) -> None:
        if self._transport is not None and (datagram := self._opener.open(data)) is not None:
            self._on_datagram(datagram)

    def error_received(self, exc: Exception) -> None:
        self._counters.unsent += 1


def _open(segment: Segment) -> socket.socket:
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        opened.setblocking(False)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        host, port = segment.cell.host, segment.cell.port
        opened.bind((host, port))
        ours = socket.inet_aton(segment.interface)
        joined = socket.inet_aton(host) + ours
        opened.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, joined)
        opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, ours)
        opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)  # this segment only
        opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
    except OSError as error:
        opened.close()
        problem = f"no cell there: {error.strerror or error}"
        hint = "give an address of this machine as the interface"
        where = f"{segment.cell} on {segment.interface}"
        raise InputError(problem, where=where, hint=hint) from error
    return opened
