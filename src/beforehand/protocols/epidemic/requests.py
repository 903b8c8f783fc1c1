"""Which peer a node requests a message from, when another one did not send it or it came early."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from beforehand.protocols.contract.base import MessageId, NodeId, Timer
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.epidemic.cache import Cache
from beforehand.protocols.epidemic.sender import Links, Sender
from beforehand.protocols.orders.order import Order

EARLY_TIMER: Timer = ("early", None)
"""Due when the node can accept a message whose stamp was too far ahead: request it again."""


class Requests:
    """The further requests of one node."""

    def __init__(
        self,
        order: Order,
        cache: Cache,
        links: Links,
        sender: Sender,
        requested_from: dict[MessageId, NodeId],
    ) -> None:
        self._order = order
        self._cache = cache
        self._links = links
        self._sender = sender
        self._requested_from = requested_from
        self._early_us: int | None = None
        """When EARLY_TIMER is due, if it is set."""

    def ask_elsewhere(
        self, now_us: int, ids: Iterable[MessageId], horizon_us: int, out: Outbox[Any]
    ) -> None:
        """Request messages that a peer will not send from other peers that offer them."""
        rest = [id for id in ids if self._requested_from.pop(id, None) is not None]
        if self._order.expires:
            floor = self._order.id_floor(horizon_us)
            rest = [id for id in rest if id[1] > floor]
        self._request_offered(now_us, rest, out)

    def forget_expired(self, horizon_us: int) -> None:
        """Forget requests for expired messages: no answer can be used any more. They count against
        the request window until they are answered, because they wait at the peer."""
        if self._order.expires:
            floor = self._order.id_floor(horizon_us)
            for peer, link in self._links.items():
                expired = [id for id in link.requested if id[1] <= floor]
                for id in expired:
                    link.requested.discard(id)
                    del self._requested_from[id]
                if expired:
                    self._sender.overtaken(peer, expired)

    def arm_early(self, out: Outbox[Any]) -> None:
        due_us = self._order.next_early_us()
        if due_us is not None and (self._early_us is None or due_us < self._early_us):
            self._early_us = due_us
            out.timers.append((EARLY_TIMER, due_us))

    def awaits_early(self) -> bool:
        return self._early_us is not None

    def on_early(self, now_us: int, horizon_us: int, out: Outbox[Any]) -> None:
        """Request again what the node accepts now."""
        self._early_us = None
        self._request_offered(now_us, self._order.take_early(horizon_us), out)
        self.arm_early(out)

    def _request_offered(self, now_us: int, ids: Collection[MessageId], out: Outbox[Any]) -> None:
        """Request these from the peers that offer them."""
        rest = set(ids).difference(self._cache.entries, self._requested_from)
        for peer, link in self._links.items():
            if not rest:
                return
            if offered := rest & link.known_to_peer:
                self._sender.request(now_us, peer, link, frozenset(offered), out)
                rest.difference_update(self._requested_from)
