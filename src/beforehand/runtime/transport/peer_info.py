"""A snapshot of one link, for applications."""

from __future__ import annotations

import msgspec

from beforehand.runtime.transport.address import Address
from beforehand.runtime.transport.connection.link import Link


class PeerInfo(msgspec.Struct, frozen=True):
    """A snapshot of one link."""

    name: str
    key: str
    """Its public key, in hexadecimal."""
    address: Address
    """The remote end of the TCP connection."""
    is_dialed: bool
    """Whether this node dialed."""
    since_us: int
    """Time of link-up in microseconds, on the system's clock."""
    bytes_in: int
    bytes_out: int
    frames_in: int
    frames_out: int
    queued_bytes: int
    """Bytes in the send queue."""


def peer_info(link: Link, public: bytes | None) -> PeerInfo:
    """Return the snapshot of a link that is up.

    public: the key to which the name of the peer is bound."""
    return PeerInfo(
        name=link.name,
        key=(public or b"").hex(),
        address=link.address,
        is_dialed=link.is_dialed,
        since_us=link.since_us,
        bytes_in=link.bytes_in,
        bytes_out=link.bytes_out,
        frames_in=link.frames_in,
        frames_out=link.frames_out,
        queued_bytes=link.queued_bytes,
    )
