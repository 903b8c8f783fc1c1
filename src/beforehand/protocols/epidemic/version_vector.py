"""How far a node has come with each origin, told in place of single messages.

Where order is causal, who has delivered a message of an origin has delivered all that this origin
said before, or never will: so one id, a *mark*, stands for any number of them. Where everybody
hears everybody, a message would else cost each pair of neighbours an id, only to find out that both
have it. Who is behind a mark says how far it has come, and is told what is held beyond that,
message by message.

When two come into contact each says how far it has come, and is told what the other holds beyond:
what that takes follows the origins and what is lacking, not all that is held.

To tell of news, a mark takes a way more than telling of the messages at once. So such marks are for
neighbours that were told of some messages of an origin and asked for none (`Options.marks_after`):
they hear this origin from others. Nobody waits for such a mark but who has just lost sight of the
origin; so whoever carries frames may take its time with it.
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
"""The least that a frame can carry: nothing of an origin was delivered."""
STALE_MIN = 1024


class VersionVectors:
    """Of one node: what it told as marks, and what it holds by origin."""

    def __init__(
        self,
        order: Order,
        held: Mapping[MessageId, object],
        options: Options,
        sender: Sender,
    ) -> None:
        self._order = order
        self._held = held
        self._sender = sender
        self.are_on = options.marks_after is not None
        self._after = options.marks_after
        self._told: dict[NodeId, int] = {}
        self._seqs: dict[NodeId, list[int]] = {}
        """Of what is held, in order; some of it may be gone."""
        self._count = 0
        self._news: dict[NodeId, tuple[int, list[MessageId]]] = {}
        """By origin, how far we have come, and what a mark for that stands for."""
        self._rest: frozenset[MessageId] = frozenset()

    # ---- what is told ---------------------------------------------------------------------------

    def add(self, messages: Iterable[Message]) -> None:
        """These are held from now on."""
        if self._after is None:
            return
        for message in messages:
            self._insert(message.id)
        if self._count > STALE_MIN + 2 * len(self._held):
            self._seqs.clear()
            self._count = 0
            for id in self._held:
                self._insert(id)

    def set_news(self, fresh: frozenset[MessageId]) -> None:
        """These are to be told: how far they have brought us, and which of them no mark stands for,
        because they wait for something, or came again."""
        if self._after is None:
            return
        told, reached = self._told, self._order.reached
        news: dict[NodeId, tuple[int, list[MessageId]]] = {}
        rest = []
        for id in fresh:
            origin, seq = id
            if told.get(origin, LONG_AGO) < seq <= reached(origin):
                mark, ids = news.get(origin, (seq, []))
                ids.append(id)
                news[origin] = (max(seq, mark), ids)
            else:
                rest.append(id)
        told.update({origin: mark for origin, (mark, _) in news.items()})
        self._news, self._rest = news, frozenset(rest)

    def tell(
        self, peer: NodeId, link: Peer, fresh: frozenset[MessageId], out: Outbox[Frame]
    ) -> frozenset[MessageId]:
        """Tell a neighbour of the news by marks, of the origins for which it gets those; what is
        left to be told."""
        if self._after is None:
            return fresh - link.known_to_peer
        marks: list[MessageId] = []
        single: list[MessageId] = []
        for origin, (mark, ids) in self._news.items():
            if link.unasked.get(origin, 0) < self._after:
                single += ids
            elif origin != peer:
                marks.append((origin, mark))
                # The peer was told all up to `unfolded`. An evicted message that came again lies
                # below it, and a digest would not bring it to the peer.
                unfolded = link.unfolded.get(origin, LONG_AGO)
                single += [id for id in ids if id[1] <= unfolded]
        if marks:
            self._sender.digest(peer, marks, out)
        left = self._rest.union(single) - link.known_to_peer
        for origin, _ in left:
            link.unasked[origin] = link.unasked.get(origin, 0) + 1
        return left

    def known(self, horizon_us: int) -> list[MessageId]:
        """This node's version vector, the origins with most messages first: a frame may not take
        all of them, and of origins that it does not name the peer announces all that it holds."""
        reached, least = self._order.reached, max(NOWHERE, horizon_us)
        origins = sorted(self._seqs, key=lambda origin: len(self._seqs[origin]), reverse=True)
        return [(origin, reached(origin)) for origin in origins if reached(origin) > least]

    # ---- what comes -----------------------------------------------------------------------------

    def on_message(
        self, source: NodeId, link: Peer, frame: VectorFrame, horizon_us: int, out: Outbox[Frame]
    ) -> None:
        """From a neighbour. horizon_us: up to where deadlines have passed."""
        if isinstance(frame, Digest):
            self._on_digest(source, frame, horizon_us, out)
        elif isinstance(frame, Want):
            link.lacks(frame.ids)
            self._unfold(source, link, frame.ids, horizon_us, out)
        elif not link.greeted:  # what is held is much: it is told once in a contact
            link.greeted = True
            self.unfold_all(source, link, frame.ids, horizon_us, out)

    def unfold_all(
        self,
        peer: NodeId,
        link: Peer,
        known: Iterable[MessageId],
        horizon_us: int,
        out: Outbox[Frame],
    ) -> None:
        """Announce all that is held beyond a peer's version vector."""
        come = dict(known)
        ids = [(origin, come.get(origin, NOWHERE)) for origin in self._seqs]
        self._unfold(peer, link, ids, horizon_us, out)

    def _on_digest(
        self, source: NodeId, frame: Digest, horizon_us: int, out: Outbox[Frame]
    ) -> None:
        own, reached = self._order.node, self._order.reached
        behind = [
            (origin, max(NOWHERE, reached(origin)))
            for origin, seq in frame.ids
            if seq > horizon_us and origin != own and seq > reached(origin)
        ]
        if behind:
            self._sender.want(source, behind, out)

    def _unfold(
        self,
        source: NodeId,
        link: Peer,
        marks: Iterable[MessageId],
        horizon_us: int,
        out: Outbox[Frame],
    ) -> None:
        """Tell a neighbour that has come so far of what is held beyond, message by message. Each is
        told only once: it may say so again before it has got them."""
        found: list[MessageId] = []
        for origin, seq in marks:
            start = max(seq, horizon_us, link.unfolded.get(origin, LONG_AGO))
            seqs: Sequence[int] = self._seqs.get(origin, ())
            found += [(origin, s) for s in seqs[bisect_right(seqs, start) :]]
            # Up to where this node has come itself. What turns up below is announced one by one.
            if (reached := self._order.reached(origin)) > start:
                link.unfolded[origin] = reached
        held, known_to_peer = self._held, link.known_to_peer
        if ids := [id for id in found if id in held and id not in known_to_peer]:
            self._sender.announce(horizon_us, source, link, ids, out)

    def on_gone(self, peer: NodeId, links: Mapping[NodeId, Peer], out: Outbox[Frame]) -> None:
        """The link to this neighbour is down. What it said, and whatever came by way of it, has to
        come from others now: they are told how far we have come with whom we have no link to,
        before they find out by a mark."""
        if self._after is None:
            return
        own, reached = self._order.node, self._order.reached
        origins = [o for o in dict.fromkeys((peer, *self._told)) if o not in links and o != own]
        known = [(origin, max(NOWHERE, reached(origin))) for origin in origins]
        for other in links if known else ():
            self._sender.want(other, known, out)

    # ---- what is kept ---------------------------------------------------------------------------

    def forget(self, links: Iterable[Peer], horizon_us: int) -> None:
        """Marks up to here are of no use any more."""
        self._told = {origin: seq for origin, seq in self._told.items() if seq > horizon_us}
        for link in links:
            alive = {origin: seq for origin, seq in link.unfolded.items() if seq > horizon_us}
            link.unfolded = alive
            link.unasked = {origin: n for origin, n in link.unasked.items() if origin in self._told}

    def gauges(self, links: Iterable[Peer]) -> dict[str, int]:
        unfolded = unasked = 0
        for link in links:
            unfolded += len(link.unfolded)
            unasked += len(link.unasked)
        by_origin = {"by_origin": self._count, "unfolded": unfolded, "unasked": unasked}
        return {"marks": len(self._told), **by_origin}

    def _insert(self, id: MessageId) -> None:
        origin, seq = id
        seqs = self._seqs.setdefault(origin, [])
        if seqs and seq < seqs[-1]:
            insort(seqs, seq)
        else:
            seqs.append(seq)
        self._count += 1
