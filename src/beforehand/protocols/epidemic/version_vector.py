"""Version vectors and digests, sent in place of single ids.

With causal order, a node that has delivered a message of an origin has delivered all earlier
messages of that origin, or never will. So one (origin, seq), an *entry* of a version vector, stands
for any number of messages. A digest is a set of entries.

*On link-up* peers exchange version vectors, and each announces what it holds beyond the other's.
The cost is O(origins + missing messages), not O(held messages).

*New messages.* In a full mesh, announcements would cost each pair of peers one id per message, only
to find out that both have it. A digest costs one id for many messages. A node that is behind an
entry answers with its own entry (`Want`), and the peer announces what it holds beyond, id by id.

A digest takes one transit more than an announcement. So a node sends digests only to peers that
requested none of the last announced messages of an origin (`Options.digest_after`): those peers get
the origin's messages from others. A peer waits for a digest only if it has just lost its other
paths to the origin, so digests have low priority and may be delayed.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence

from beforehand.protocols.contract.base import Message, MessageId, NodeId
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.epidemic.frames import Digest, Frame, SyncHello, Want
from beforehand.protocols.epidemic.options import Options
from beforehand.protocols.epidemic.peer import Peer
from beforehand.protocols.epidemic.sender import Sender
from beforehand.protocols.orders.order import LONG_AGO, Order

VectorFrame = Digest | Want | SyncHello
NOWHERE = 1 - (1 << 62)
"""The least seq that a frame can carry. As an entry: no message of the origin was delivered."""
STALE_MIN = 1024


class VersionVectors:
    """The version vector of one node, and the seqs that it holds of each origin."""

    def __init__(
        self,
        order: Order,
        held: Mapping[MessageId, tuple[int, Message]],
        options: Options,
        sender: Sender,
    ) -> None:
        self._order = order
        self._held = held
        self._sender = sender
        self.are_on = options.digest_after is not None
        self._after = options.digest_after
        self._sent: dict[NodeId, int] = {}
        """By origin, the seq of the last digest sent."""
        self._seqs: dict[NodeId, list[int]] = {}
        """By origin, the sorted seqs of the held messages, and of some that are not held any
        more."""
        self._count = 0
        """The number of seqs in `_seqs`."""
        self._new_entries: dict[NodeId, tuple[int, list[MessageId]]] = {}
        """By origin, the entry for the new messages, and the messages that it stands for."""
        self._rest: frozenset[MessageId] = frozenset()
        """The new messages that no entry stands for."""

    # ---- sending --------------------------------------------------------------------------------

    def add(self, messages: Iterable[Message]) -> None:
        """Add messages that the node holds from now on."""
        if self._after is None:
            return
        for message in messages:
            self._insert(message.id)
        if self._count > STALE_MIN + 2 * len(self._held):
            self._seqs.clear()
            self._count = 0
            for id in self._held:
                self._insert(id)

    def set_new(self, fresh: frozenset[MessageId]) -> None:
        """Divide the new messages into those for which an entry can stand and the rest: messages
        that are pending, or that were evicted and received again."""
        if self._after is None:
            return
        sent, entry_of = self._sent, self._order.entry_of
        entries: dict[NodeId, tuple[int, list[MessageId]]] = {}
        rest = []
        for id in fresh:
            origin, seq = id
            if sent.get(origin, LONG_AGO) < seq <= entry_of(origin):
                entry, ids = entries.get(origin, (seq, []))
                ids.append(id)
                entries[origin] = (max(seq, entry), ids)
            else:
                rest.append(id)
        sent.update({origin: entry for origin, (entry, _) in entries.items()})
        self._new_entries, self._rest = entries, frozenset(rest)

    def send_digests(
        self, peer: NodeId, link: Peer, fresh: frozenset[MessageId], out: Outbox[Frame]
    ) -> frozenset[MessageId]:
        """Send the peer entries for those origins for which it gets digests. Return the new
        messages that have to be announced to it."""
        if self._after is None:
            return fresh - link.known_to_peer
        entries: list[MessageId] = []
        single: list[MessageId] = []
        for origin, (entry, ids) in self._new_entries.items():
            if link.unasked.get(origin, 0) < self._after:
                single += ids
            elif origin != peer:
                entries.append((origin, entry))
                # The node announced all messages up to `unfolded` to the peer. A message that was
                # evicted and received again lies below it, so a digest would not bring it to the
                # peer.
                unfolded = link.unfolded.get(origin, LONG_AGO)
                single += [id for id in ids if id[1] <= unfolded]
        if entries:
            self._sender.digest(peer, entries, out)
        left = self._rest.union(single) - link.known_to_peer
        for origin, _ in left:
            link.unasked[origin] = link.unasked.get(origin, 0) + 1
        return left

    def known(self, horizon_us: int) -> list[MessageId]:
        """Return this node's version vector, the origins with most messages first.

        A frame may not have room for all origins. The peer announces all that it holds of the
        origins left out.
        """
        entry_of = self._order.entry_of
        least = max(NOWHERE, self._order.id_floor(horizon_us))
        origins = sorted(self._seqs, key=lambda origin: len(self._seqs[origin]), reverse=True)
        return [(origin, entry_of(origin)) for origin in origins if entry_of(origin) > least]

    # ---- receiving ------------------------------------------------------------------------------

    def on_message(
        self, source: NodeId, link: Peer, frame: VectorFrame, horizon_us: int, out: Outbox[Frame]
    ) -> None:
        """Process a frame of a peer. horizon_us: deadlines up to it have passed."""
        if isinstance(frame, Digest):
            self._on_digest(source, frame, horizon_us, out)
        elif isinstance(frame, Want):
            link.lacks(frame.ids)
            self._unfold(source, link, frame.ids, horizon_us, out)
        elif not link.synced:  # a node may hold much: it announces all of it once per link-up
            link.synced = True
            self.unfold_all(source, link, frame.ids, horizon_us, out)

    def unfold_all(
        self,
        peer: NodeId,
        link: Peer,
        known: Iterable[MessageId],
        horizon_us: int,
        out: Outbox[Frame],
    ) -> None:
        """Announce all held messages beyond a peer's version vector."""
        come = dict(known)
        ids = [(origin, come.get(origin, NOWHERE)) for origin in self._seqs]
        self._unfold(peer, link, ids, horizon_us, out)

    def _on_digest(
        self, source: NodeId, frame: Digest, horizon_us: int, out: Outbox[Frame]
    ) -> None:
        own, entry_of = self._order.node, self._order.entry_of
        floor = self._order.id_floor(horizon_us)
        lacking = [
            (origin, max(NOWHERE, entry_of(origin)))
            for origin, seq in frame.ids
            if seq > floor and origin != own and seq > entry_of(origin)
        ]
        if lacking:
            self._sender.want(source, lacking, out)

    def _unfold(
        self,
        source: NodeId,
        link: Peer,
        entries: Iterable[MessageId],
        horizon_us: int,
        out: Outbox[Frame],
    ) -> None:
        """Announce the held messages beyond these entries of a peer, id by id. Each is announced
        only once: the peer may send the entries again before it has received the messages."""
        found: list[MessageId] = []
        least = LONG_AGO if self._order.has_floor else horizon_us
        for origin, seq in entries:
            start = max(seq, least, link.unfolded.get(origin, LONG_AGO))
            seqs: Sequence[int] = self._seqs.get(origin, ())
            found += [(origin, s) for s in seqs[bisect_right(seqs, start) :]]
            # Up to this node's own entry. A message that it stores later with a smaller seq is
            # announced by its id.
            if (known := self._order.entry_of(origin)) > start:
                link.unfolded[origin] = known
        held, known_to_peer = self._held, link.known_to_peer
        ids = [id for id in found if id in held and id not in known_to_peer]
        if self._order.has_floor:  # else the seq is the deadline
            ids = [id for id in ids if held[id][1].deadline_us > horizon_us]
        if ids:
            self._sender.announce(horizon_us, source, link, ids, out)

    def on_gone(self, peer: NodeId, links: Mapping[NodeId, Peer], out: Outbox[Frame]) -> None:
        """After a link-down, send the other peers this node's entries of origins that are no peers.

        The messages of the lost peer, and those that it forwarded, must now come from other peers.
        The entries make those announce at once what the node lacks, not only after their next
        digest.
        """
        if self._after is None:
            return
        own, entry_of = self._order.node, self._order.entry_of
        origins = [o for o in dict.fromkeys((peer, *self._sent)) if o not in links and o != own]
        known = [(origin, max(NOWHERE, entry_of(origin))) for origin in origins]
        for other in links if known else ():
            self._sender.want(other, known, out)

    # ---- bookkeeping ----------------------------------------------------------------------------

    def forget(self, links: Iterable[Peer], horizon_us: int) -> None:
        """Remove the state for entries whose messages have expired."""
        self._sent = self._alive(self._sent, horizon_us)
        for link in links:
            link.unfolded = self._alive(link.unfolded, horizon_us)
            link.unasked = {origin: n for origin, n in link.unasked.items() if origin in self._sent}

    def _alive(self, entries: Mapping[NodeId, int], horizon_us: int) -> dict[NodeId, int]:
        if self._order.has_floor:  # the order forgets an origin when all its messages have expired
            entry_of = self._order.entry_of
            return {origin: seq for origin, seq in entries.items() if entry_of(origin) >= seq}
        return {origin: seq for origin, seq in entries.items() if seq > horizon_us}

    def gauges(self, links: Iterable[Peer]) -> dict[str, int]:
        unfolded = unasked = 0
        for link in links:
            unfolded += len(link.unfolded)
            unasked += len(link.unasked)
        by_origin = {"by_origin": self._count, "unfolded": unfolded, "unasked": unasked}
        return {"marks": len(self._sent), **by_origin}

    def _insert(self, id: MessageId) -> None:
        origin, seq = id
        seqs = self._seqs.setdefault(origin, [])
        if seqs and seq < seqs[-1]:
            insort(seqs, seq)
        else:
            seqs.append(seq)
        self._count += 1
