"""Flow control of the epidemic layer on real links: back-pressure of wire, disk and application.

For each link the node keeps queues of what it has to send (`protocols.epidemic.link_flow`). It
sends frames while the wire has room. The inputs `on_room`, `on_open` and `on_saved` tell it what
the wire, the application and the disk allow. The invariants, which `check.rules.flow_rules` checks
after every step:

I1  Request window: at most `Flow.window` requests to a peer are unanswered at a time. A request
    counts until its answer, even if the message arrives another way. A node cuts the link to a peer
    that requests more.
I2  A node requests a message from one peer at a time.
I3  No announcement is lost. A message that the node holds and the peer may lack was announced, or
    waits in `to_announce` or `pushes`, or is covered by a digest. A node drops offers that do not
    fit only together with a note to send its version vector again.
I4  A node sends a frame only while there is room. The last frame may exceed the room, by less than
    one frame.
I5  While the application does not read, the node requests nothing. A message that a peer pushes
    meanwhile counts as an offer.
I6  Disk before wire: a node announces, digests, pushes or serves an id only when the step that
    stored it is saved. Requests, wants and version vectors claim no stored message.
I7  Progress: a node requests an offer as soon as there is room. The conditions are that the
    application reads, less than half of the window is in use, and the offer is requested from no
    peer.

Requests are sent first. If data could hold requests back, two nodes could wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from operator import itemgetter

from beforehand.protocols.contract.base import Message, MessageId, NodeId, Timer
from beforehand.protocols.contract.codec import in_order
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.epidemic.cache import Cache
from beforehand.protocols.epidemic.draws import Draws
from beforehand.protocols.epidemic.frames import Frame, Request, SkipFrame
from beforehand.protocols.epidemic.link_flow import LinkFlow, pushes_of
from beforehand.protocols.epidemic.options import Options
from beforehand.protocols.epidemic.peer import Peer
from beforehand.protocols.epidemic.sender import Links, Sender
from beforehand.protocols.epidemic.sizes import cut_ids

DIGEST_TIMER: Timer = ("digest", None)
STALL_TIMER: Timer = ("stall", None)
STALL_TICKS = 4
"""How often the stall timer fires within `Flow.stall_us`."""


class FlowControl(Sender):
    """The sender for real links: it keeps frames back as the invariants above require."""

    def __init__(
        self,
        options: Options,
        cache: Cache,
        requested_from: dict[MessageId, NodeId],
        rng: Draws,
        *,
        links: Links,
        is_durable: bool,
    ) -> None:
        super().__init__(options, cache, requested_from, rng)
        assert options.flow is not None, "can't happen: else the layer sends directly"
        self._limits = options.flow
        self._links = links
        self._is_durable = is_durable
        self.flows: dict[NodeId, LinkFlow] = {}
        self.is_open = True
        self.step = 0
        """The number of the last step that stored a message."""
        self._saved = 0
        """The last step that is on the disk together with all earlier steps."""
        self.unsaved: dict[MessageId, int] = {}
        """Messages whose storing step is not on the disk yet: id -> step."""
        self._touched: dict[NodeId, None] = {}
        """Peers whose queues `flush` must examine."""
        self._has_digest = self._is_digest_armed = self._is_stall_armed = False

    # ---- inputs ---------------------------------------------------------------------------------

    def on_link(self, peer: NodeId, up: bool) -> None:
        if up:
            self.flows[peer] = LinkFlow(peer, self._options.frame_bytes_max)
        else:
            self.flows.pop(peer, None)
            self._touched.pop(peer, None)

    def on_room(self, peer: NodeId, room: int) -> None:
        if peer in self.flows:
            self.flows[peer].room = room
            self._touched[peer] = None

    def on_open(self, is_open: bool) -> None:
        self.is_open = is_open
        if is_open:
            self._touched.update(dict.fromkeys(self.flows))

    def on_saved(self, step: int) -> None:
        self._saved = max(self._saved, step)
        for id in [id for id, stored in self.unsaved.items() if stored <= step]:
            del self.unsaved[id]
        for peer, flow in self.flows.items():
            if flow.waits_for_disk():
                self._touched[peer] = None

    def on_progress(self, peer: NodeId) -> None:
        if peer in self.flows:
            self.flows[peer].silent = 0

    def awaits(self, timer: Timer) -> bool:
        return (timer == DIGEST_TIMER and self._is_digest_armed) or (
            timer == STALL_TIMER and self._is_stall_armed
        )

    def on_timer(
        self, now_us: int, timer: Timer, links: Links, horizon_us: int, out: Outbox[Frame]
    ) -> None:
        if timer == DIGEST_TIMER:
            self._is_digest_armed = False
            for peer, flow in self.flows.items():
                if flow.digest:
                    flow.is_digest_due = True
                    self._touched[peer] = None
        else:
            self._is_stall_armed = False
            self._look_for_stalled(now_us, out)

    def on_hello(self, peer: NodeId, link: Peer, ids: frozenset[MessageId]) -> bool:
        """Take a peer's version vector. Return False if no correct peer would have sent it."""
        flow = self.flows[peer]
        flow.hellos += 1
        if flow.hellos == 1:
            if link.synced:  # this node held no messages on link-up
                return True
        elif flow.announced < (flow.hellos - 1) * (self._limits.offers_max // 2):
            # A correct peer sends another version vector only after it dropped offers and then
            # processed half of its queue. To drop offers again, it must get as many new ones.
            return False
        flow.next_hello = ids
        self._touched[peer] = None
        return True

    # ---- queueing -------------------------------------------------------------------------------

    def hello(self, peer: NodeId, known: Sequence[MessageId], out: Outbox[Frame]) -> None:
        self.flows[peer].hello = tuple(known)
        self._touched[peer] = None

    def want(self, peer: NodeId, ids: Collection[MessageId], out: Outbox[Frame]) -> None:
        self.flows[peer].wants.update(ids)
        self._touched[peer] = None

    def digest(self, peer: NodeId, ids: Collection[MessageId], out: Outbox[Frame]) -> None:
        self.flows[peer].digest.update(ids)
        self._has_digest = True

    def announce(
        self,
        now_us: int,
        peer: NodeId,
        link: Peer,
        ids: Collection[MessageId],
        out: Outbox[Frame],
    ) -> None:
        # Sorted, so that a run does not depend on the hashes of strings.
        ordered = ids if isinstance(ids, list) else in_order(ids)
        self.flows[peer].to_announce.update(dict.fromkeys(ordered))
        self._touched[peer] = None

    def request(
        self,
        now_us: int,
        peer: NodeId,
        link: Peer,
        ids: frozenset[MessageId],
        out: Outbox[Frame],
        acknowledged: int = 0,
    ) -> None:
        """Queue the ids as offers, which wait for the request window. Drop those beyond
        `Flow.offers_max`: the next version vector makes the peer announce them again."""
        flow = self.flows[peer]
        ids = ids.difference(flow.offers) if flow.offers else ids
        room = self._limits.offers_max - len(flow.offers)
        fits = flow.unanswered(link) + len(flow.offers) + len(ids) <= self._limits.window
        ordered = ids if fits else in_order(ids)  # ids that all fit into one request need no order
        if len(ids) > room:
            flow.has_dropped_offers = True
            ordered = in_order(ids)[: max(0, room)]
        flow.offers.update(dict.fromkeys(ordered))
        self._touched[peer] = None

    def serve(
        self,
        peer: NodeId,
        link: Peer,
        ids: frozenset[MessageId],
        horizon_us: int,
        out: Outbox[Frame],
    ) -> None:
        flow, entries = self.flows[peer], self._cache.entries
        if len(flow.serve) + len(ids) > self._limits.window:
            out.cuts.append((peer, "slow"))
            return
        held = sorted([(entries[id][0], id) for id in ids if id in entries], key=itemgetter(0))
        flow.serve.extend([id for _, id in held])
        if len(held) < len(ids):
            flow.serve.extend([id for id in in_order(ids) if id not in entries])
        self._touched[peer] = None

    def push(self, messages: Sequence[Message], links: Links, out: Outbox[Frame]) -> None:
        """Queue own messages for all synced peers. They share one frame object, so that it is
        encoded once."""
        # A peer that is not synced yet gets these ids with the first announcement.
        synced = [peer for peer, link in links.items() if link.synced]
        if not synced:
            return
        pushes = pushes_of(messages, self.step, self._options.frame_bytes_max)
        for peer in synced:
            flow = self.flows[peer]
            if len(flow.pushes) + len(pushes) <= self._limits.pushes_max:
                flow.pushes.extend(pushes)
            else:
                ids = [message.id for message in messages]
                flow.to_announce.update(dict.fromkeys(ids))
            self._touched[peer] = None

    # ---- notifications from the epidemic layer --------------------------------------------------

    def stored(self, messages: Sequence[Message]) -> None:
        if self._is_durable:
            self.step += 1
            self.unsaved.update(dict.fromkeys([message.id for message in messages], self.step))

    def removed(self, ids: Collection[MessageId]) -> None:
        for flow in self.flows.values():
            for id in ids if flow.to_announce else ():
                flow.to_announce.pop(id, None)

    def note_known(self, peer: NodeId, ids: Iterable[MessageId]) -> None:
        """Do not announce these ids to the peer: it has them."""
        if to_announce := self.flows[peer].to_announce:
            for id in ids:
                to_announce.pop(id, None)

    def note_digest(self, peer: NodeId, ids: Iterable[MessageId]) -> None:
        """Remove digest entries that the peer's own digest covers."""
        digest = self.flows[peer].digest
        for origin, seq in ids:
            if digest.get(origin, seq + 1) <= seq:
                del digest[origin]

    def freed(self, peer: NodeId) -> None:
        if (flow := self.flows.get(peer)) is not None:
            flow.silent = 0
            if flow.offers:
                self._touched[peer] = None

    def overtaken(self, peer: NodeId, ids: Iterable[MessageId]) -> None:
        self.flows[peer].overtaken.update(ids)

    def answered(self, peer: NodeId, ids: Iterable[MessageId]) -> None:
        """Note that the peer answered a request for these ids."""
        if overtaken := self.flows[peer].overtaken:
            count = len(overtaken)
            overtaken.difference_update(ids)
            if len(overtaken) < count:
                self.freed(peer)

    def note(self, peer: NodeId, frame: SkipFrame, out: Outbox[Frame]) -> None:
        self.flows[peer].notes.append(frame)
        self._touched[peer] = None

    def has_announced_all(self, peer: NodeId, link: Peer) -> bool:
        flow = self.flows[peer]
        waits = flow.to_announce or flow.pushes or flow.next_hello is not None
        return link.synced and not waits

    def has_dropped_offers(self, peer: NodeId) -> bool:
        return self.flows[peer].has_dropped_offers

    def offers(self, peer: NodeId) -> Collection[MessageId]:
        return self.flows[peer].offers

    def announce_due_us(self, now_us: int) -> int:
        return now_us + self._rng.randint(*self._limits.announce_us)

    def gauges(self) -> dict[str, int]:
        flows = self.flows.values()
        return {
            "unsaved": len(self.unsaved),
            "offers": sum(len(flow.offers) for flow in flows),
            "serve": sum(len(flow.serve) for flow in flows),
            "overtaken": sum(len(flow.overtaken) for flow in flows),
            "tell": sum(len(flow.to_announce) for flow in flows),
            "pushes": sum(len(flow.pushes) for flow in flows),
            "digest": sum(len(flow.digest) + len(flow.wants) for flow in flows),
            "notes": sum(len(flow.notes) for flow in flows),
        }

    # ---- frames ---------------------------------------------------------------------------------

    @property
    def has_work(self) -> bool:
        """Whether `flush` could emit a frame or set a timer."""
        return bool(self._touched) or (self._has_digest and not self._is_digest_armed)

    def flush(
        self,
        now_us: int,
        horizon_us: int,
        out: Outbox[Frame],
        known: Callable[[int], list[MessageId]],
        unfold: Callable[[NodeId, Peer, Iterable[MessageId]], None],
        is_wanted: Callable[[MessageId], bool],
    ) -> None:
        """Send what the invariants allow, at the end of every step. known: this node's version
        vector. unfold: announce what a peer's vector lacks. is_wanted: whether to request an id."""
        while self._touched:
            peer, _ = self._touched.popitem()
            flow, link = self.flows[peer], self._links[peer]
            if flow.has_dropped_offers and len(flow.offers) <= self._limits.offers_max // 2:
                flow.has_dropped_offers = False
                flow.hello = tuple(known(horizon_us))
            # Requests come first: else version vectors could use up the room again and again.
            if flow.offers and self.is_open and flow.room > 0:
                self._request(now_us, link, flow, is_wanted, out)
            flow.send_hello(out)
            flow.send_wants(out)
            flow.send_notes(out)
            if flow.serve:
                sent = flow.send_data(self._cache.entries, self.unsaved, horizon_us, out)
                link.known_to_peer.update(sent)
            flow.send_pushes(self._saved if self._is_durable else self.step, out)
            if flow.next_hello is not None and not flow.to_announce:
                ids, flow.next_hello = flow.next_hello, None
                link.unfolded.clear()
                link.synced = True
                unfold(peer, link, ids)
            flow.send_announcements(self.unsaved, out)
            flow.send_digest(self.unsaved, out)
        if self._has_digest and not self._is_digest_armed:
            self._has_digest, self._is_digest_armed = False, True
            wait_us = self._rng.randint(*self._limits.digest_us)
            out.timers.append((DIGEST_TIMER, now_us + wait_us))

    def _request(
        self,
        now_us: int,
        link: Peer,
        flow: LinkFlow,
        is_wanted: Callable[[MessageId], bool],
        out: Outbox[Frame],
    ) -> None:
        most = self._limits.window - flow.unanswered(link)
        if flow.unanswered(link) > self._limits.window // 2:
            return
        requested_from = self._requested_from
        chosen: list[MessageId] = []
        while flow.offers and len(chosen) < most:
            offers = flow.take_offers(most - len(chosen))
            chosen += [id for id in offers if id not in requested_from and is_wanted(id)]
        if flow.overtaken and (again := flow.overtaken.intersection(chosen)):
            # The messages came another way and were evicted since. The peer still has to answer the
            # first request for them, so do not send a second one.
            flow.overtaken -= again
            chosen = [id for id in chosen if id not in again]
            self._note_requested(now_us, flow.peer, link, frozenset(again))
        for ids, size in cut_ids(chosen, flow.bytes_max):
            if flow.room > 0:
                self._note_requested(now_us, flow.peer, link, ids)
                flow.send(Request(0, ids), size, out)
            else:
                flow.offers.update(dict.fromkeys(ids))
        if flow.has_dropped_offers and len(flow.offers) <= self._limits.offers_max // 2:
            self._touched[flow.peer] = None  # `flush` then sends the version vector in this step
        if flow.unanswered(link) and not self._is_stall_armed:
            self._arm_stall(now_us, out)

    # ---- stalled peers --------------------------------------------------------------------------

    def _arm_stall(self, now_us: int, out: Outbox[Frame]) -> None:
        self._is_stall_armed = True
        out.timers.append((STALL_TIMER, now_us + self._limits.stall_us // STALL_TICKS))

    def _look_for_stalled(self, now_us: int, out: Outbox[Frame]) -> None:
        """Cut the links to peers that owe answers and sent nothing for STALL_TICKS ticks. Ticks are
        counted, because the clock may be set."""
        flows = self.flows
        owing = [peer for peer, link in self._links.items() if flows[peer].unanswered(link)]
        for peer in owing:
            flow = flows[peer]
            flow.silent += 1
            if flow.silent > STALL_TICKS:
                out.cuts.append((peer, "stalled"))
        if owing:
            self._arm_stall(now_us, out)
