"""Questions about causes that no peer sends, and the decision to skip them.

A node is *blocked* on a cause if a message waits for it and it was not received. Where stores are
full, it may be that no peer holds it any more. The node asks every peer for it (`Missing`). A peer
that does not hold it answers `NotHeld`: *gone* if it delivered the message or gave it up, *unknown*
if it never had it. A peer answers only when it has announced all that it holds beyond the asker's
version vector. So the answer also says that no announcement is outstanding.

The node gives up the blocked cause with the smallest stamp (`Order.skip`) when all of these hold:

- every connected peer has answered, one of them at least with *gone*;
- nothing with a stamp up to the cause's is offered by a peer or requested from one;
- since the first *gone*, the node waited for `Options.patience_us` of session time, connected;
- the stamp is that much older than the horizon. So no message can raise the floor to the present.

A peer that does not answer within `STALL_TICKS` does not count for an hour, also if it comes back.

None of these conditions matters for the order of deliveries, which the floor keeps whatever peers
say. They matter for what is lost: a peer that lies can cost a node messages, but no order.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from beforehand.protocols.contract.base import MessageId, NodeId, Timer
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.epidemic.cache import Cache
from beforehand.protocols.epidemic.frames import IDS_MAX, Frame, Missing, NotHeld, SkipFrame
from beforehand.protocols.epidemic.options import Options
from beforehand.protocols.epidemic.sender import Links, Sender
from beforehand.protocols.orders.order import Order

ASK_TIMER: Timer = ("ask", None)
TICK_US = 1_000_000
STALL_TICKS = 30
NEWCOMER_US = 10_000_000
"""The patience of a node that has not delivered anything yet."""
MUTE_US = 3_600_000_000
"""For how long a peer that did not answer does not count."""


class Asked(msgspec.Struct):
    """The questions to one connected peer."""

    sent: dict[MessageId, int] = {}
    """How many ticks ago each question was sent."""
    answers: dict[MessageId, bool] = {}
    """Whether the peer had settled the message; False if it never had it."""


class Skipping:
    """The questions of one node, and its answers."""

    def __init__(
        self, order: Order, cache: Cache, links: Links, sender: Sender, options: Options
    ) -> None:
        self._order = order
        self._cache = cache
        self._links = links
        self._sender = sender
        self._patience_us = options.patience_us
        self._asked: dict[NodeId, Asked] = {}
        self._waited: dict[MessageId, int] = {}
        """How many ticks the node has waited since the first `gone`."""
        self._questions: dict[NodeId, dict[MessageId, None]] = {}
        """By peer, what it asked and this node has not answered."""
        self._mute: dict[NodeId, int] = {}
        """Peers that do not count, and the horizon until which."""
        self.is_armed = False

    def on_link(self, peer: NodeId, up: bool) -> None:
        self._questions.pop(peer, None)
        self._asked.pop(peer, None)
        if up and self._order.has_floor:
            self._asked[peer] = Asked()

    def on_message(self, source: NodeId, frame: SkipFrame) -> None:
        if isinstance(frame, Missing):
            questions = self._questions.setdefault(source, {})
            # A correct peer asks again later, so what does not fit is not lost.
            room = max(0, IDS_MAX - len(questions))
            questions.update(dict.fromkeys(sorted(frame.ids, key=_by_stamp)[:room]))
            return
        asked = self._asked[source]
        for ids, is_gone in ((frame.gone, True), (frame.unknown, False)):
            asked.answers.update({id: is_gone for id in ids if id in asked.sent})

    def look(self, now_us: int, out: Outbox[Frame]) -> None:
        """Set the timer, if there is something to ask or to answer. Call it after each input that
        may have changed that."""
        if not self.is_armed and self._asked and (self._questions or self._order.is_blocked()):
            self.is_armed = True
            out.timers.append((ASK_TIMER, now_us + TICK_US))

    def on_timer(self, now_us: int, horizon_us: int, out: Outbox[Frame]) -> None:
        """Answer, ask, and give up what can be given up. Set the timer again if that is not all."""
        self.is_armed = False
        self._answer(horizon_us, out)
        if self._patience_us is None:
            if self._questions:
                self.look(now_us, out)
            return
        blocked = sorted(self._order.blocked(), key=_by_stamp)[:IDS_MAX]
        self._forget(blocked)
        for peer in self._asked:
            self._ask(peer, blocked, horizon_us, out)
        for id in blocked:
            if any(asked.answers.get(id) for asked in self._asked.values()):
                most = self._patience_us // TICK_US + 1  # more need not be told apart
                self._waited[id] = min(self._waited.get(id, 0) + 1, most)
        skipped = self._skip(now_us, horizon_us, blocked, out)
        if skipped or self._is_awaiting(blocked, horizon_us) or self._questions:
            self.look(now_us, out)

    def gauges(self) -> dict[str, int]:
        return {
            "asked": sum(len(asked.sent) for asked in self._asked.values()),
            "questions": sum(map(len, self._questions.values())),
            "mute": len(self._mute),
        }

    def _answer(self, horizon_us: int, out: Outbox[Frame]) -> None:
        for peer, ids in list(self._questions.items()):
            link = self._links[peer]
            if not self._sender.has_announced_all(peer, link):
                continue
            del self._questions[peer]
            held = [id for id in ids if self._cache.is_live(id, horizon_us)]
            rest = frozenset(ids).difference(held)
            gone = frozenset(filter(self._order.has_settled, rest))
            if rest:
                self._sender.note(peer, NotHeld(gone, rest - gone), out)
            if held:  # the peer may have missed the announcement
                self._sender.announce(horizon_us, peer, link, held, out)

    def _forget(self, blocked: list[MessageId]) -> None:
        still = set(blocked)
        self._waited = {id: ticks for id, ticks in self._waited.items() if id in still}
        for asked in self._asked.values():
            asked.sent = {id: ticks for id, ticks in asked.sent.items() if id in still}
            asked.answers = {id: gone for id, gone in asked.answers.items() if id in still}

    def _ask(
        self, peer: NodeId, blocked: list[MessageId], horizon_us: int, out: Outbox[Frame]
    ) -> None:
        asked = self._asked[peer]
        for id in asked.sent:
            if id not in asked.answers:
                asked.sent[id] += 1
        if any(ticks > STALL_TICKS for ticks in asked.sent.values()):
            self._mute[peer] = horizon_us + MUTE_US
            for id in asked.sent:
                asked.sent[id] = 0
            out.cuts.append((peer, "stalled"))
        # Where frames get lost, a question is asked again.
        again = [id for id, ticks in asked.sent.items() if ticks and not ticks % 10]
        if new := [id for id in blocked if id not in asked.sent]:
            asked.sent.update(dict.fromkeys(new, 0))
        self._sender.ask(peer, [*new, *again], out)

    def _counting(self, horizon_us: int) -> list[Asked]:
        """Return the peers that count."""
        self._mute = {peer: end_us for peer, end_us in self._mute.items() if end_us > horizon_us}
        return [asked for peer, asked in self._asked.items() if peer not in self._mute]

    def _is_awaiting(self, blocked: list[MessageId], horizon_us: int) -> bool:
        """Return whether time alone can change the decision about a blocked cause."""
        peers = self._counting(horizon_us)
        return any(id not in asked.answers for id in blocked for asked in peers) or any(
            asked.answers.get(id) for id in blocked for asked in peers
        )

    def _skip(
        self, now_us: int, horizon_us: int, blocked: list[MessageId], out: Outbox[Frame]
    ) -> bool:
        """Give up the first blocked cause that can be given up. Return whether there is one."""
        assert self._patience_us is not None
        is_new = self._order.is_new()
        patience_us = min(self._patience_us, NEWCOMER_US) if is_new else self._patience_us
        peers = self._counting(horizon_us)
        for id in blocked:
            answers = [asked.answers.get(id) for asked in peers]
            if (
                True in answers
                and None not in answers
                and self._waited.get(id, 0) * TICK_US >= patience_us
                and id[1] <= horizon_us - patience_us
                and self._is_drained(id[1])
            ):
                self._order.skip(now_us, id, out)
                return True
        return False

    def _is_drained(self, stamp: int) -> bool:
        """Return whether no message up to the stamp is on its way here."""
        for peer, link in self._links.items():
            offers: Iterable[MessageId] = (*link.requested, *self._sender.offers(peer))
            if self._sender.has_dropped_offers(peer) or any(id[1] <= stamp for id in offers):
                return False
        return True


def _by_stamp(id: MessageId) -> tuple[int, str]:
    return id[1], str(id[0])
