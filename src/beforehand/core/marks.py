"""How far a node has come with each origin, told in place of single messages.

Where order is causal, who has delivered a message of an origin has delivered all that this origin
said before, or never will: so one id, a *mark*, stands for any number of them. Where everybody
hears everybody, a message would else cost each pair of neighbours an id, only to find out that both
have it. Who is behind a mark says how far it has come, and is told what is held beyond that,
message by message.

That takes a way more than telling of messages at once. So marks are for neighbours that were told
of many messages and asked for none (`Options.marks_after`): they hear them from others.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence

from beforehand.core.base import Message, MessageId, NodeId
from beforehand.core.frames import Announce, Behind, Frame, Reached, split_ids
from beforehand.core.neighbour import Neighbour
from beforehand.core.options import Options
from beforehand.core.order import LONG_AGO, Order
from beforehand.core.outbox import Outbox

Marking = Reached | Behind
NOWHERE = 1 - (1 << 62)
"""The least that a frame can carry: nothing of an origin was delivered."""
STALE_MIN = 1024


class Marks:
    """Of one node: what it told as marks, and what it holds by origin."""

    def __init__(self, order: Order, held: Mapping[MessageId, object], options: Options) -> None:
        self._order = order
        self._held = held
        self._after = options.marks_after
        self._bytes_max = options.frame_bytes_max
        self._told: dict[NodeId, int] = {}
        self._seqs: dict[NodeId, list[int]] = {}
        """Of what is held, in order; some of it may be gone."""
        self._count = 0
        self._news: list[MessageId] = []
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
        marks: dict[NodeId, int] = {}
        rest = []
        for id in fresh:
            origin, seq = id
            if told.get(origin, LONG_AGO) < seq <= reached(origin):
                marks[origin] = max(seq, marks.get(origin, LONG_AGO))
            else:
                rest.append(id)
        told.update(marks)
        self._news, self._rest = list(marks.items()), frozenset(rest)

    def tell(
        self, peer: NodeId, link: Neighbour, fresh: frozenset[MessageId], out: Outbox[Frame]
    ) -> frozenset[MessageId]:
        """Tell a neighbour of the news by marks, if they are for it; what is left to be told."""
        if self._after is None or link.unasked < self._after:
            return fresh
        marks = [mark for mark in self._news if mark[0] != peer]
        out.sends += [(peer, Reached(ids)) for ids in split_ids(marks, self._bytes_max)]
        return self._rest

    # ---- what comes -----------------------------------------------------------------------------

    def on_message(
        self, source: NodeId, link: Neighbour, frame: Marking, horizon_us: int, out: Outbox[Frame]
    ) -> None:
        """From a neighbour. horizon_us: up to where deadlines have passed."""
        if isinstance(frame, Reached):
            self._on_reached(source, frame, horizon_us, out)
        else:
            self._on_behind(source, link, frame, horizon_us, out)

    def _on_reached(
        self, source: NodeId, frame: Reached, horizon_us: int, out: Outbox[Frame]
    ) -> None:
        own, reached = self._order.node, self._order.reached
        behind = [
            (origin, max(NOWHERE, reached(origin)))
            for origin, seq in frame.ids
            if seq > horizon_us and origin != own and seq > reached(origin)
        ]
        if behind:
            out.sends.append((source, Behind(frozenset(behind))))

    def _on_behind(
        self, source: NodeId, link: Neighbour, frame: Behind, horizon_us: int, out: Outbox[Frame]
    ) -> None:
        """Each message is told only once: it may say so again before it has got them."""
        link.unasked = 0
        found: list[MessageId] = []
        for origin, seq in frame.ids:
            start = max(seq, horizon_us, link.unfolded.get(origin, LONG_AGO))
            seqs: Sequence[int] = self._seqs.get(origin, ())
            found += [(origin, s) for s in seqs[bisect_right(seqs, start) :]]
            # Up to where we have come ourselves: below it nothing new can turn up here.
            if (reached := self._order.reached(origin)) > start:
                link.unfolded[origin] = reached
        ids = frozenset(filter(self._held.__contains__, found)) - link.theirs
        out.sends += [(source, Announce(0, batch)) for batch in split_ids(ids, self._bytes_max)]

    # ---- what is kept ---------------------------------------------------------------------------

    def forget(self, links: Iterable[Neighbour], horizon_us: int) -> None:
        """Marks up to here are of no use any more."""
        self._told = {origin: seq for origin, seq in self._told.items() if seq > horizon_us}
        for link in links:
            alive = {origin: seq for origin, seq in link.unfolded.items() if seq > horizon_us}
            link.unfolded = alive

    def gauges(self, links: Iterable[Neighbour]) -> dict[str, int]:
        unfolded = sum(len(link.unfolded) for link in links)
        return {"marks": len(self._told), "by_origin": self._count, "unfolded": unfolded}

    def _insert(self, id: MessageId) -> None:
        origin, seq = id
        seqs = self._seqs.setdefault(origin, [])
        if seqs and seq < seqs[-1]:
            insort(seqs, seq)
        else:
            seqs.append(seq)
        self._count += 1
