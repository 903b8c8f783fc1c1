"""The state that a node of the opportunistic network keeps about a peer while their link is up."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from beforehand.protocols.contract.base import MessageId, NodeId

KNOWN_TO_PEER_MIN = 1024
"""The least size of `Peer.known_to_peer` at which it is trimmed."""


class Peer(msgspec.Struct):
    """The state of one link."""

    known_to_peer: set[MessageId]
    """Messages that the peer has: it announced or sent them, or this node sent them to it."""
    requested: set[MessageId]
    """Messages requested from the peer and not received yet."""
    unacked: dict[int, frozenset[MessageId]]
    """Announcements that the peer has not acknowledged, by number. Empty on reliable links."""
    synced: bool = False
    """Whether this node has announced to the peer all that it held on link-up."""
    progress_us: int = 0
    """When the peer last sent data, or this node last requested some."""
    unasked: dict[NodeId, int] = {}
    """By origin, how many messages were announced to the peer since its last request for one."""
    unfolded: dict[NodeId, int] = {}
    """By origin, the seq up to which this node announced messages one by one, because the peer was
    behind."""
    reannounced: set[MessageId] = set()
    """Messages that the peer announced again while they were requested from it. A `gone` that
    arrives later may be older than that announcement."""

    def lacks(self, ids: Iterable[MessageId]) -> None:
        """Reset `unasked` for these origins, so that the peer gets announcements and not digests:
        it does not receive their messages from other peers."""
        for origin, _ in ids:
            self.unasked.pop(origin, None)

    def trim(
        self,
        held: Mapping[MessageId, object],
        requested_from: Mapping[MessageId, object],
        offers: Collection[MessageId] = (),
    ) -> None:
        """Trim `known_to_peer`, if most of its entries are not needed. An entry is needed if:

        - this node holds the message, and must not announce it to the peer;
        - it is requested from another peer, and could be requested from this one instead;
        - it is one of `offers`, which wait to be requested from this peer.
        """
        if len(self.known_to_peer) > KNOWN_TO_PEER_MIN + 2 * (
            len(held) + len(requested_from) + len(offers)
        ):
            self.known_to_peer = {
                id
                for id in self.known_to_peer
                if id in held or id in requested_from or id in offers
            }
