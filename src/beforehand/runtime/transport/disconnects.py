"""Why connections are refused or end: one counter per reason, and the most recent ones in words."""

from __future__ import annotations

import msgspec

from beforehand.errors import RemoteError


class LinkCounters(msgspec.Struct):
    """Connections of one node since it started, by what happened to them."""

    links: int = 0
    """Links that came up."""
    no_key: int = 0
    """Incoming connections that ended before their hello: another program, or a probe."""
    wrong_key: int = 0
    """Hellos that no secret of this node opens: another group, a secret that was rotated, another
    program, or a hello that was recorded on another connection. Also such answers of a listener."""
    another_version: int = 0
    """Hellos of version 1 of this protocol."""
    late_members: int = 0
    """Dialers and announcements with a secret that has ended. Such a dialer is told so."""
    rotated: int = 0
    """Links that were cut because their secret ended, and listeners that said so of ours."""
    bad_key_file: int = 0
    """Changes of the key file that could not be used: the node keeps the secrets that it had."""
    altered: int = 0
    """Records that failed to decrypt: altered, dropped, duplicated or reordered."""
    malformed: int = 0
    """Records that decrypted, but have invalid content."""
    truncated: int = 0
    """Connections that ended in the middle of a record."""
    forged: int = 0
    """Introductions whose signature is invalid."""
    wrong_name: int = 0
    """Introductions with a name that is bound to another key."""
    blocked: int = 0
    """Links of members whose key the application has blocked."""
    too_large: int = 0
    """Records or frames longer than the limit."""
    flood: int = 0
    """Peers that exceeded `frames_per_second_max`."""
    too_many_connections: int = 0
    """Connections refused because a limit on connections was reached."""
    silent: int = 0
    """Links cut because nothing arrived for `silence_seconds`."""
    slow_handshake: int = 0
    """Connections that did not finish the handshake within `handshake_seconds`."""
    overflow: int = 0
    """Links cut because the peer read so slowly that its send queue exceeded its limit."""
    redundant: int = 0
    """Second connections between the same two nodes, which are no error."""
    replaced: int = 0
    """Links replaced by a new connection of the same peer."""
    broken: int = 0
    """Links that the network ended, or the peer without a goodbye."""
    unwanted: int = 0
    """Links that the node cut because of the content of a frame."""
    shunned: int = 0
    """Peers that reconnected too soon after losing their link for misbehaviour."""
    turned_away: int = 0
    """Connections that the other end refused. It gave the reason, or closed the connection after
    our hello. In the latter case it has another secret or version, or no free place."""
    unreachable: int = 0
    """Addresses that were dialed and did not answer."""
    own_address: int = 0
    """Addresses that were dialed and turned out to be our own."""
    not_announced: int = 0
    """Networks in which this node announces nothing, because it listens at no address of them."""
    no_discovery: int = 0
    """Failures of multicast DNS, which is tried again."""

    def count(self, kind: str) -> None:
        """Increment the counter of this name."""
        setattr(self, kind, getattr(self, kind) + 1)


class Refused(RemoteError):
    """The connection must end. `kind` is the name of the counter."""

    def __init__(self, kind: str, problem: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(problem, where=where, hint=hint)
        self.kind = kind


class Disconnect(msgspec.Struct, frozen=True):
    """A connection that was refused, or that ended other than by our own close."""

    kind: str
    """The name of the counter that was incremented."""
    problem: str
    address: str
    name: str
    """The peer's name if it was proven, otherwise empty."""
    at_us: int
    """Time in microseconds, on the system's clock."""
