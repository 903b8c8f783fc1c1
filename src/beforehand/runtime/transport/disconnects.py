"""Why links are refused and end: one counter for each reason, and the last few in words."""

from __future__ import annotations

import msgspec

from beforehand.errors import RemoteError


class LinkCounters(msgspec.Struct):
    """What happened to the connections of one node since it started, by kind."""

    links: int = 0
    """That came up."""
    no_key: int = 0
    """Came in and was no greeting of ours: another program, or a stranger who tries."""
    wrong_key: int = 0
    """A greeting made with another secret: another group, or one that was rotated away."""
    another_version: int = 0
    """A greeting of another version of this protocol."""
    replayed: int = 0
    """A greeting that was heard before."""
    altered: int = 0
    """A record that does not open: changed, left out, doubled or out of order."""
    malformed: int = 0
    """A record that opens, and holds what no member would write."""
    truncated: int = 0
    """The connection ended in the middle of a record."""
    forged: int = 0
    """An introduction whose signature is not that of its key."""
    wrong_name: int = 0
    """A name that is bound to another key."""
    too_large: int = 0
    flood: int = 0
    too_many_connections: int = 0
    silent: int = 0
    slow_handshake: int = 0
    """Connected, and then took too long to prove who it is."""
    overflow: int = 0
    """Read so slowly that its queue was full."""
    redundant: int = 0
    """A second connection between the same two; no fault of anybody's."""
    replaced: int = 0
    """A link that was still there when its neighbour came with a new one."""
    broken: int = 0
    """Ended by the network, or by a neighbour that did not say goodbye."""
    unwanted: int = 0
    """Cut by the node above, because of what a frame held."""
    shunned: int = 0
    """Came back too soon after it had lost its link for a fault of its own."""
    turned_away: int = 0
    """The other end refused us. It said why, or hung up on our greeting without a word: then it
    holds another secret or version, or has no place."""
    unreachable: int = 0
    """We dialed, and nobody took the call."""
    own_address: int = 0
    """We dialed, and it was us."""
    no_discovery: int = 0
    """Multicast DNS did not work, and is tried again."""

    def count(self, kind: str) -> None:
        setattr(self, kind, getattr(self, kind) + 1)


class Refused(RemoteError):
    """A connection must end; `kind` is the counter."""

    def __init__(self, kind: str, problem: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(problem, where=where, hint=hint)
        self.kind = kind


class Disconnect(msgspec.Struct, frozen=True):
    """One connection that was refused or ended otherwise than by a goodbye of ours."""

    kind: str
    """The counter that it went to."""
    problem: str
    address: str
    name: str
    """As far as it was proven; else empty."""
    at_us: int
    """On the system's clock."""
