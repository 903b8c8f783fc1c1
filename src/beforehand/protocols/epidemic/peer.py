"""What a node of the opportunistic network knows of another during one contact."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from beforehand.protocols.contract.base import MessageId, NodeId

KNOWN_TO_PEER_MIN = 1024
"""What a neighbour has is not looked through below this size."""


class Peer(msgspec.Struct):
    """One of those in contact."""

    known_to_peer: set[MessageId]
    """It has these: it announced or sent them, or was sent them."""
    requested: set[MessageId]
    """Asked of it, not come yet."""
    unacked: dict[int, frozenset[MessageId]]
    """Announcements that it has not acknowledged, by number. Empty on reliable links."""
    greeted: bool = False
    """Was it told all that is here?"""
    progress_us: int = 0
    """When it last sent data, or was asked for some."""
    unasked: dict[NodeId, int] = {}
    """How many messages of an origin it was told of since it last asked for one of that origin."""
    unfolded: dict[NodeId, int] = {}
    """Up to where it was told of single messages of an origin, because it was behind."""
    reannounced: set[MessageId] = set()
    """Announced again while requested from it: a `gone` that arrives later may be older."""

    def lacks(self, ids: Iterable[MessageId]) -> None:
        """It does not hear of these origins from others."""
        for origin, _ in ids:
            self.unasked.pop(origin, None)

    def trim(
        self,
        held: Mapping[MessageId, object],
        requested_from: Mapping[MessageId, object],
        offers: Collection[MessageId] = (),
    ) -> None:
        """Forget what it has, if that is much more than matters here: what is held here need not
        be announced to it, what is asked of another could be asked of it, what it offers waits for
        the window."""
        if len(self.known_to_peer) > KNOWN_TO_PEER_MIN + 2 * (
            len(held) + len(requested_from) + len(offers)
        ):
            self.known_to_peer = {
                id
                for id in self.known_to_peer
                if id in held or id in requested_from or id in offers
            }
