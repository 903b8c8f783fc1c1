"""Epidemic forwarding in an opportunistic network, as a core of its own (OPP section III).

Peers announce the messages that they hold, request those that they lack, and serve requests. On
link-up each node announces all that it holds, or with `protocols.epidemic.version_vector` all that
the peer lacks. Afterwards it announces only new messages. On reliable links a node can also push
its own messages without a request (`Options.push`). The rules:

- A node requests a message from one peer at a time.
- It does not announce a message to a peer that is known to have it.
- On link-down it requests the unanswered messages from other peers.
- It requests an evicted message again only after the next link-up. Without this rule messages would
  circulate for ever among peers with full caches.

A `Sender` sends the frames: at once (`protocols.epidemic.sender`), or as flow control allows
(`protocols.epidemic.paced_epidemic`). An `Order` on top turns receptions into deliveries.

The cost is proportional to link-ups and receptions. A node without new messages sets no timer and
sends nothing, however long a contact lasts: the announcement period is not a heartbeat."""

from __future__ import annotations

from collections.abc import Sequence

from beforehand.errors import RemoteError
from beforehand.protocols.contract.base import (
    BroadcastRequest,
    Counters,
    Message,
    MessageId,
    MessageStatus,
    NodeId,
    Timer,
)
from beforehand.protocols.contract.needs import Link, Needs
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.contract.proof import Proofs
from beforehand.protocols.contract.tables import Rows, Table
from beforehand.protocols.epidemic.cache import Cache, Evicted
from beforehand.protocols.epidemic.draws import Draws
from beforehand.protocols.epidemic.frames import (
    NONE,
    Announce,
    Data,
    Frame,
    Push,
    Request,
    SkipFrame,
)
from beforehand.protocols.epidemic.options import Options
from beforehand.protocols.epidemic.peer import KNOWN_TO_PEER_MIN, Peer
from beforehand.protocols.epidemic.requests import EARLY_TIMER, Requests
from beforehand.protocols.epidemic.sender import Direct, Sender
from beforehand.protocols.epidemic.sizes import MESSAGE_BYTES_MAX, fitting, unfitting
from beforehand.protocols.epidemic.skipping import ASK_TIMER, Skipping
from beforehand.protocols.epidemic.version_vector import VectorFrame, VersionVectors
from beforehand.protocols.orders.order import LONG_AGO, ORDER_TIMER, OWN, Order

ANNOUNCE_TIMER: Timer = ("announce", None)
MESSAGES = Table("message", MessageId, Message)


class Epidemic:
    """One node of the opportunistic network."""

    def __init__(
        self,
        node: NodeId,
        order: Order,
        rng: Draws,
        options: Options | None = None,
        *,
        durable: bool = False,
        proofs: Proofs | None = None,
    ) -> None:
        """Make a node.

        durable: save the state that must survive a crash.
        proofs: sign own messages, and refuse messages of other nodes without a valid proof.
        """
        self.node = node
        self.order = order
        self.counters: Counters = order.counters
        self._options = options or Options()
        self._rng = rng
        self._durable = order.durable = durable
        self._proofs = proofs
        order.proofs = proofs
        chosen = self._options
        self._cache = Cache(chosen.capacity, chosen.eviction, rng, chosen.capacity_bytes)
        self._links: dict[NodeId, Peer] = {}
        self._requested_from: dict[MessageId, NodeId] = {}
        self._evicted = Evicted(order.has_delivered)
        self._sender: Sender = self._make_sender()
        self._version_vectors = VersionVectors(order, self._cache.entries, chosen, self._sender)
        self._requests = Requests(
            *(order, self._cache, self._links, self._sender, self._requested_from)
        )
        self._skipping = Skipping(order, self._cache, self._links, self._sender, chosen)
        self._fresh: list[MessageId] = []
        """The messages stored since the last announcement."""
        self._horizon_us = LONG_AGO
        self._announce_armed = False

    @property
    def needs(self) -> Needs:
        contact = Link(reliable=self._options.retry_us is None)
        return Needs({"contact": contact}, self.order.clocks_within_us)

    @property
    def tables(self) -> tuple[Table, ...]:
        if not self._durable:
            return ()
        return (*self.order.tables, Table(MESSAGES.name, MessageId, self.order.message_type))

    # ---- inputs ---------------------------------------------------------------------------------

    def on_broadcast(
        self, now_us: int, payload: bytes, out: Outbox[Frame], lifetime_us: int | None = None
    ) -> MessageId:
        """Broadcast a payload and return the id of the message. The node delivers it, stores it,
        and announces or pushes it to its peers."""
        return self.on_broadcasts(now_us, [(payload, lifetime_us)], out)[0]

    def on_broadcasts(
        self, now_us: int, broadcasts: Sequence[BroadcastRequest], out: Outbox[Frame]
    ) -> list[MessageId]:
        """Broadcast a batch and return the ids. Each message causally follows the one before it."""
        # A lifetime begins at the horizon. Else the message could count as expired at once, and
        # the node would never announce it.
        messages = self.order.on_broadcasts(max(now_us, self._horizon_us), broadcasts, out)
        self._store(now_us, messages, out)
        if self._options.push:
            self._sender.push(messages, self._links, out)
        else:
            self._announce_new(now_us, out, messages)
        return [message.id for message in messages if not message.is_internal]

    def on_message(self, now_us: int, source: NodeId, frame: Frame, out: Outbox[Frame]) -> None:
        """Process a frame of a peer. Ignore a frame from a node without a link."""
        link = self._links.get(source)
        if link is None:
            return  # sent before the link-down
        kind = type(frame)
        if kind is Data or kind is Push:
            self._on_data(now_us, source, link, frame, out)  # type: ignore[arg-type]
        elif kind is Announce:
            self._on_announce(now_us, source, link, frame, out)  # type: ignore[arg-type]
        elif kind is Request:
            self._on_request(now_us, source, link, frame, out)  # type: ignore[arg-type]
        elif isinstance(frame, VectorFrame):
            self._version_vectors.on_message(source, link, frame, self._horizon(now_us), out)
        elif isinstance(frame, SkipFrame) and self.order.has_floor:
            self._skipping.on_message(source, frame)
        else:
            where, hint = f"node {self.node}, from {source}", "both ends must use the same version"
            raise RemoteError(f"unknown frame {kind.__name__}", where=where, hint=hint)
        self._skipping.look(now_us, out)

    def on_link(self, now_us: int, peer: NodeId, up: bool, out: Outbox[Frame]) -> None:
        """Process a link-up or link-down of `peer`."""
        if up:
            assert peer not in self._links, "can't happen: a link goes down before it comes up"
            link = Peer(set(), set(), {}, not self._cache.entries, progress_us=now_us)
            self._links[peer] = link
            self._evicted.clear()
            self._sender.on_link(peer, True)
            if self._version_vectors.are_on:
                self._sender.hello(peer, self._version_vectors.known(self._horizon(now_us)), out)
            elif not link.synced:
                self._announce_new(now_us, out)
        elif (gone := self._links.pop(peer, None)) is not None:
            self._sender.on_link(peer, False)
            self._requests.ask_elsewhere(now_us, gone.requested, self._horizon(now_us), out)
            self._version_vectors.on_gone(peer, self._links, out)
        self._skipping.on_link(peer, up)
        self._skipping.look(now_us, out)

    def on_timer(self, now_us: int, timer: Timer, out: Outbox[Frame]) -> None:
        """Process a timer of this layer, of the order or of the sender."""
        if timer == ORDER_TIMER and self.order.expires:
            self.order.on_timer(max(now_us, self._horizon_us), out)
        elif timer == ANNOUNCE_TIMER and self._announce_armed:
            self._announce_armed = False
            self._announce(now_us, out)
        elif timer == EARLY_TIMER and self._requests.awaits_early():
            self._requests.on_early(now_us, self._horizon(now_us), out)
        elif timer == ASK_TIMER and self._skipping.is_armed:
            self._skipping.on_timer(now_us, self._horizon(now_us), out)
        elif self._sender.awaits(timer):
            self._requests.forget_expired(self._horizon(now_us))
            self._sender.on_timer(now_us, timer, self._links, self._horizon(now_us), out)

    def restore(self, now_us: int, rows: Rows, out: Outbox[Frame]) -> None:
        """Restore the order and the held messages of an earlier incarnation."""
        self.order.restore(rows)
        self._horizon_us = rows.get(OWN.name, {}).get("horizon", LONG_AGO)
        held = list(rows.get(MESSAGES.name, {}).values())
        if unfit := unfitting(held, MESSAGE_BYTES_MAX):
            # An earlier version of the software accepted messages that fit into no frame.
            self.counters.refused += len(unfit)
            out.saves += [("message", message.id, None) for message in unfit]
            held = [message for message in held if message not in unfit]
        self._cache.add(held)
        self._version_vectors.add(held)
        # The order counts delivered messages as duplicates. It delivers the others or keeps them
        # pending.
        self.order.on_receive(now_us, held, out)

    # ---- queries --------------------------------------------------------------------------------

    def explain(self, message: MessageId) -> MessageStatus:
        return self.order.explain(message)

    def horizon_us(self) -> int:
        """Return the horizon: deadlines up to it have passed, however the clock is set."""
        return max(self._horizon_us, self.order.horizon_us())

    def gauges(self, now_us: int) -> dict[str, int]:
        links = self._links.values()
        return {
            "cache": len(self.holds(now_us)),
            **self._cache.gauges(),
            **self.order.gauges(now_us),
            "asking": len(self._requested_from),
            "evicted": len(self._evicted.ids),
            "fresh": len(self._fresh),
            "theirs": sum(len(link.known_to_peer) for link in links),
            "unheard": sum(len(ids) for link in links for ids in link.unacked.values()),
            **self._version_vectors.gauges(links),
            **self._sender.gauges(),
            **self._skipping.gauges(),
        }

    def holds(self, now_us: int) -> frozenset[MessageId]:
        """Return the ids of the held messages that have not expired."""
        is_later = self.order.expires and now_us > self._horizon_us
        return self._cache.live_ids(now_us if is_later else self._horizon_us)

    # ---- frames ---------------------------------------------------------------------------------

    def _on_announce(
        self, now_us: int, source: NodeId, link: Peer, frame: Announce, out: Outbox[Frame]
    ) -> None:
        # Sets keep the hashes of their members, so these differences cost little per id.
        lacking = frame.ids.difference(self._cache.entries)
        link.known_to_peer.update(frame.ids)
        if link.requested:
            # The peer may have evicted these and received them again. Its earlier `gone` can still
            # be in flight, and must not cancel this announcement.
            link.reannounced |= frame.ids & link.requested
        if self.order.expires:
            floor = self.order.id_floor(self._horizon(now_us))
            if dead := [id for id in lacking if id[1] <= floor]:
                link.known_to_peer.difference_update(dead)  # no later purge would remove them
                lacking = lacking.difference(dead)
        if lacking:
            lacking = self._evicted.taken_from(lacking.difference(self._requested_from))
        acknowledged = 0 if self._options.retry_us is None else frame.number
        if lacking or acknowledged:
            self._sender.request(now_us, source, link, lacking, out, acknowledged)
        if len(link.known_to_peer) > KNOWN_TO_PEER_MIN:
            self._trim(source, link)

    def _on_request(
        self, now_us: int, source: NodeId, link: Peer, frame: Request, out: Outbox[Frame]
    ) -> None:
        link.unacked.pop(frame.acknowledged, None)
        if not frame.ids:
            return
        link.lacks(frame.ids)
        self._sender.serve(source, link, frame.ids, self._horizon(now_us), out)

    def _on_data(
        self, now_us: int, source: NodeId, link: Peer, frame: Data | Push, out: Outbox[Frame]
    ) -> None:
        link.progress_us = now_us
        requested_from, held = self._requested_from, self._cache.entries
        horizon_us = self._horizon(now_us)  # an expired copy counts as stale, purged or not
        fresh: Sequence[Message] = [
            m for m in frame.messages if m.id not in held or m.deadline_us <= horizon_us
        ]
        came, gone = [message.id for message in frame.messages], frame.gone
        if self._proofs is not None and len(fine := self._acceptable(fresh)) < len(fresh):
            self.counters.refused += len(fresh) - len(fine)
            refused = {m.id for m in fresh}.difference([m.id for m in fine])
            # Treat these as if the peer did not hold them: another peer may have a valid copy.
            came, gone, fresh = [id for id in came if id not in refused], gone | refused, fine
        link.known_to_peer.update(came)
        owed = len(link.requested)
        link.requested.difference_update(came)
        if link.reannounced:
            link.reannounced.difference_update(came)
        for id in came:
            requested_of = requested_from.pop(id, source)
            if requested_of != source:
                self._links[requested_of].requested.discard(id)
                self._links[requested_of].reannounced.discard(id)
                self._sender.overtaken(requested_of, (id,))
        self.counters.duplicate += len(came) - len(fresh)
        welcome = self.order.screen(horizon_us, fresh)
        if self.order.early:
            self._requests.arm_early(out)
        if welcome:
            received = [message for message in welcome if not message.is_internal]
            self.counters.received += len(received)
            out.receives += received
            self.order.on_receive(now_us, welcome, out)
            self._store(now_us, welcome, out)
            self._announce_new(now_us, out, welcome)
        if gone:
            link.known_to_peer.difference_update(gone - link.reannounced)
            link.reannounced -= gone
            gone = gone.intersection(link.requested)  # the others are requested from another peer
            link.requested.difference_update(gone)
            self._requests.ask_elsewhere(now_us, gone, self._horizon(now_us), out)
        if len(link.requested) < owed:
            self._sender.freed(source)
        if len(link.known_to_peer) > KNOWN_TO_PEER_MIN:
            self._trim(source, link)

    # ---- internals ------------------------------------------------------------------------------

    def _acceptable(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the messages that have a valid proof and fit into a frame."""
        assert self._proofs is not None, "can't happen: without proofs all are taken"
        return self._proofs.proven(fitting(messages, MESSAGE_BYTES_MAX))

    def _trim(self, peer: NodeId, link: Peer) -> None:
        offers, early = self._sender.offers(peer), self.order.early
        link.trim(self._cache.entries, self._requested_from, {*offers, *early} if early else offers)

    def _make_sender(self) -> Sender:
        return Direct(self._options, self._cache, self._requested_from, self._rng)

    def _horizon(self, now_us: int) -> int:
        """Advance the horizon to the clock and return it. A clock that is set back does not lower
        it, so no expired message revives."""
        if self.order.expires and now_us > self._horizon_us:
            self._horizon_us = now_us
        return self._horizon_us

    def _store(self, now_us: int, messages: Sequence[Message], out: Outbox[Frame]) -> None:
        self._cache.add(messages)
        self._version_vectors.add(messages)
        if self._durable:
            out.saves += [("message", message.id, message) for message in messages]
        self._sender.stored(messages)
        expired = self._cache.purge(self._horizon(now_us)) if self.order.expires else []
        evicted = self._cache.evict(self._horizon(now_us))
        if evicted:
            self.counters.evicted += len(evicted)
            self._evicted.add(evicted)
            self.order.on_evict(now_us, evicted, out)
        if expired:
            self._version_vectors.forget(self._links.values(), self._horizon_us)
        gone = expired + evicted
        if gone:
            for link in self._links.values():
                link.known_to_peer.difference_update(gone)
            self._sender.removed(gone)
            if self._durable:
                out.saves += [("message", id, None) for id in gone]

    def _announce_new(self, now_us: int, out: Outbox[Frame], fresh: Sequence[Message] = ()) -> None:
        if not self._links:
            self._fresh.clear()  # on the next link-up the node announces all that it holds
            return
        self._fresh += [message.id for message in fresh]
        if not self._announce_armed:
            due_us = self._sender.announce_due_us(now_us)
            if due_us <= now_us:
                self._announce(now_us, out)
            else:
                self._announce_armed = True
                out.timers.append((ANNOUNCE_TIMER, due_us))

    def _announce(self, now_us: int, out: Outbox[Frame]) -> None:
        """Announce the new messages to every peer that is not known to have them."""
        fresh = frozenset(self._fresh)
        if self._cache.is_bounded:
            fresh = frozenset(filter(self._cache.entries.__contains__, fresh))
        if self.order.expires:
            # Announcing an expired message would make the run depend on when caches are purged.
            horizon_us = self._horizon(now_us)
            fresh = frozenset([id for id in fresh if self._cache.is_live(id, horizon_us)])
        self._fresh.clear()
        self._version_vectors.set_new(fresh)
        everything: frozenset[MessageId] = NONE
        for peer, link in self._links.items():
            ids = NONE  # with version vectors, wait for the peer's SyncHello
            if link.synced:
                ids = self._version_vectors.send_digests(peer, link, fresh, out)
            elif not self._version_vectors.are_on:
                everything = everything or self._cache.live_ids(self._horizon(now_us))
                ids = everything - link.known_to_peer
                link.synced = True
            if ids:
                self._sender.announce(now_us, peer, link, ids, out)
