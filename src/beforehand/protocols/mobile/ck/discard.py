"""Central discard (MOB sections 4.1 and 6): the initiating station collects all acknowledgements.

The acknowledgement of every host for every message travels to the station that initiated the
message. Once all hosts have acknowledged it, that station tells all others to discard it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from beforehand.protocols.contract.base import NodeId, Timer
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.mobile.ck.frames import Bundle, Frame, Id, Receipt

FLUSH: Timer = ("ck flush", None)
FLUSH_US = 20_000
"""Small control data waits for one round trip of a wire and is sent together, as TCP does it."""


class Discard:
    """The part of a station that knows all hosts, and which of them lack its own messages."""

    def __init__(
        self,
        site: int,
        sites: Sequence[NodeId],
        via: dict[NodeId, NodeId],
        drop: Callable[[Id], None],
    ) -> None:
        """drop: called with the id of a message that all hosts have."""
        self.count = 0
        """How many messages this station has initiated."""
        self._site = site
        self._sites = sites
        self._via = via
        self._wired = tuple(dict.fromkeys(via.values()))
        self._drop = drop
        self._members: dict[NodeId, int] = {}  # host -> the connection in which it joined
        self._unacknowledged: dict[int, dict[NodeId, None]] = {}
        self._receipts: dict[NodeId, list[Receipt]] = {}
        self._deletes: dict[NodeId, list[Id]] = {}
        self._is_flushing = False

    def initiate(self) -> int:
        """Return the number of a new message of this station."""
        self.count += 1
        self._unacknowledged[self.count] = dict.fromkeys(self._members)
        return self.count

    def on_joined(self, host: NodeId, ses: int) -> bool:
        """Add a host, and return whether it is new here in this connection.

        The station waits for its acknowledgements of later messages only. This also holds for a
        host whose earlier attempt to join failed.
        """
        if self._members.get(host, 0) >= ses:
            return False
        self._members[host] = ses
        for number in list(self._unacknowledged):
            self._acknowledge(number, host)
        return True

    def on_receipt(self, receipt: Receipt) -> None:
        """Count the receipt if this station initiated the message, else queue it for the next hop
        to the station that did."""
        if receipt.site == self._site:
            self._acknowledge(receipt.number, receipt.host)
        else:
            peer = self._via[self._sites[receipt.site]]
            self._receipts.setdefault(peer, []).append(receipt)

    def on_bundle(self, source: NodeId, bundle: Bundle) -> None:
        for receipt in bundle.receipts:
            self.on_receipt(receipt)
        for id in bundle.deletes:
            self._delete(id, source)

    def on_timer(self, out: Outbox[Frame]) -> None:
        """Send the receipts and deletes that were gathered for each wire."""
        if not self._is_flushing:
            return
        self._is_flushing = False
        for peer in self._wired:
            receipts, deletes = self._receipts.pop(peer, []), self._deletes.pop(peer, [])
            if receipts or deletes:
                out.sends.append((peer, Bundle(tuple(receipts), tuple(deletes))))

    def keep_up(self, now_us: int, out: Outbox[Frame]) -> None:
        if (self._receipts or self._deletes) and not self._is_flushing:
            self._is_flushing = True
            out.timers.append((FLUSH, now_us + FLUSH_US))

    def gauges(self) -> dict[str, int]:
        unacknowledged = self._unacknowledged.values()
        return {
            "members": len(self._members),
            "unacknowledged": sum(map(len, unacknowledged)),
            "gathered": sum(map(len, self._receipts.values()))
            + sum(map(len, self._deletes.values())),
        }

    def _acknowledge(self, number: int, host: NodeId) -> None:
        lacking = self._unacknowledged.get(number)
        if lacking is None:
            return
        lacking.pop(host, None)
        if not lacking:
            del self._unacknowledged[number]
            self._delete((self._site, number), None)

    def _delete(self, id: Id, source: NodeId | None) -> None:
        for peer in self._wired:
            if peer != source:
                self._deletes.setdefault(peer, []).append(id)
        self._drop(id)
