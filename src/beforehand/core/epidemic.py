"""Epidemic forwarding in an opportunistic network, as a core of its own (OPP section III).

Neighbours announce what they hold, request what they lack, and send what is asked. When a link
comes up each side announces all that it holds, or with `core.marks` all that the other lacks;
afterwards only what is new. Where links lose nothing a node can also push what it says itself,
unasked (`Options.push`). Nothing is asked of two neighbours at once, and nothing is offered to a
neighbour that is known to have it. A link that goes down forgets what was under way: what was asked
there is asked elsewhere. What was evicted is not asked for again until somebody new comes into
contact; without that rule messages would go round and round among neighbours with full caches.

Costs follow links and receptions. A node with nothing new sets no timer and sends nothing, however
long a contact lasts: the announcement period decides when news goes out, it is not a heartbeat.
On top of it stands an `Order` that turns receptions into deliveries."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from beforehand.core.base import Counters, Fate, Message, MessageId, NodeId, Said, Timer
from beforehand.core.cache import Cache, Evicted
from beforehand.core.frames import NONE, Announce, Data, Frame, Push, Request, batches, split_ids
from beforehand.core.marks import Marking, Marks
from beforehand.core.needs import Link, Needs
from beforehand.core.neighbour import THEIRS_MIN, Neighbour
from beforehand.core.options import Options
from beforehand.core.order import LONG_AGO, ORDER_TIMER, OWN, Order
from beforehand.core.outbox import Outbox
from beforehand.core.proof import Proofs
from beforehand.core.tables import Rows, Table
from beforehand.errors import RemoteError

ANNOUNCE_TIMER: Timer = ("announce", None)
RETRY_TIMER: Timer = ("retry", None)
MESSAGES = Table("message", MessageId, Message)


class Epidemic:
    """One node of the opportunistic network."""

    def __init__(
        self,
        node: NodeId,
        order: Order,
        rng: random.Random,
        options: Options | None = None,
        *,
        durable: bool = False,
        proofs: Proofs | None = None,
    ) -> None:
        """durable: save what must survive a crash. proofs: own messages are proven, and others that
        are not are refused."""
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
        self._links: dict[NodeId, Neighbour] = {}
        self._asking: dict[MessageId, NodeId] = {}
        self._evicted = Evicted(order.has_delivered)
        self._marks = Marks(order, self._cache.entries, chosen)
        self._fresh: list[MessageId] = []
        """Stored since the last announcement."""
        self._number = 0
        self._horizon_us = LONG_AGO
        self._phase_us = rng.randrange(chosen.announce_us) if chosen.announce_us else 0
        self._announce_armed = self._retry_armed = False

    @property
    def needs(self) -> Needs:
        contact = Link(reliable=self._options.retry_us is None)
        return Needs({"contact": contact}, self.order.clocks_within_us)

    @property
    def tables(self) -> tuple[Table, ...]:
        return (*self.order.tables, MESSAGES) if self._durable else ()

    # ---- inputs ---------------------------------------------------------------------------------

    def on_broadcast(
        self, now_us: int, payload: bytes, out: Outbox[Frame], lifetime_us: int | None = None
    ) -> MessageId:
        """The id of a new message: delivered, stored, and announced to whoever is in contact."""
        return self.on_broadcasts(now_us, [(payload, lifetime_us)], out)[0]

    def on_broadcasts(
        self, now_us: int, said: Sequence[Said], out: Outbox[Frame]
    ) -> list[MessageId]:
        """Several at once, each after the one before it."""
        # A lifetime begins where deadlines have passed up to, or nobody would be told of it.
        messages = self.order.on_broadcasts(max(now_us, self._horizon_us), said, out)
        self._store(now_us, messages, out)
        if self._options.push:
            self._push(messages, out)
        else:
            self._announce_news(now_us, out, messages)
        return [message.id for message in messages]

    def on_message(self, now_us: int, source: NodeId, frame: Frame, out: Outbox[Frame]) -> None:
        """A frame of a neighbour. From anybody else it was sent before the contact ended."""
        link = self._links.get(source)
        if link is None:
            return  # sent before the link went down here: the neighbour is no longer one
        kind = type(frame)
        if kind is Data or kind is Push:
            self._on_data(now_us, source, link, frame, out)  # type: ignore[arg-type]
        elif kind is Announce:
            self._on_announce(now_us, source, link, frame, out)  # type: ignore[arg-type]
        elif kind is Request:
            self._on_request(now_us, source, link, frame, out)  # type: ignore[arg-type]
        elif isinstance(frame, Marking):
            self._marks.on_message(source, link, frame, self._horizon(now_us), out)
        else:
            where, hint = f"node {self.node}, from {source}", "both ends must speak one version"
            raise RemoteError(f"unknown frame {kind.__name__}", where=where, hint=hint)

    def on_link(self, now_us: int, peer: NodeId, up: bool, out: Outbox[Frame]) -> None:
        """`peer` came into range, or left it."""
        if up:
            assert peer not in self._links, "can't happen: a link goes down before it comes up"
            link = Neighbour(set(), set(), {}, not self._cache.entries, progress_us=now_us)
            self._links[peer] = link
            self._evicted.clear()
            if self._marks.are_on:
                self._marks.greet(peer, self._horizon(now_us), out)
            elif not link.greeted:
                self._announce_news(now_us, out)
            return
        if (gone := self._links.pop(peer, None)) is not None:
            self._ask_elsewhere(now_us, gone.asked, out)
            self._marks.on_gone(peer, self._links, out)

    def on_timer(self, now_us: int, timer: Timer, out: Outbox[Frame]) -> None:
        """News is due, an answer is overdue, or something has expired."""
        if timer == ORDER_TIMER and self.order.expires:
            self.order.on_timer(max(now_us, self._horizon_us), out)
        elif timer == ANNOUNCE_TIMER and self._announce_armed:
            self._announce_armed = False
            self._announce(now_us, out)
        elif timer == RETRY_TIMER and self._retry_armed:
            self._retry_armed = False
            self._retry(now_us, out)

    def restore(self, now_us: int, rows: Rows, out: Outbox[Frame]) -> None:
        """Go on with what an earlier incarnation held."""
        self.order.restore(rows)
        self._horizon_us = rows.get(OWN.name, {}).get("horizon", LONG_AGO)
        held = list(rows.get(MESSAGES.name, {}).values())
        self._cache.add(held)
        self._marks.add(held)
        # What was delivered counts as a duplicate here; what was not, waits or is delivered.
        self.order.on_receive(now_us, held, out)

    # ---- questions ------------------------------------------------------------------------------

    def explain(self, message: MessageId) -> Fate:
        return self.order.explain(message)

    def passed_us(self) -> int:
        """Up to here deadlines have passed, however the clock is set."""
        return max(self._horizon_us, self.order.passed_us())

    def gauges(self, now_us: int) -> dict[str, int]:
        links = self._links.values()
        return {
            "cache": len(self.holds(now_us)),
            **self._cache.gauges(),
            **self.order.gauges(now_us),
            "asking": len(self._asking),
            "evicted": len(self._evicted.ids),
            "fresh": len(self._fresh),
            "theirs": sum(len(link.theirs) for link in links),
            "unheard": sum(len(ids) for link in links for ids in link.unheard.values()),
            **self._marks.gauges(links),
        }

    def holds(self, now_us: int) -> frozenset[MessageId]:
        """What is in the cache and alive."""
        return self._cache.live_ids(self._horizon(now_us))

    # ---- frames ---------------------------------------------------------------------------------

    def _on_announce(
        self, now_us: int, source: NodeId, link: Neighbour, frame: Announce, out: Outbox[Frame]
    ) -> None:
        # The sets keep the hashes of their members: these differences cost little per id.
        lacking = frame.ids.difference(self._cache.entries)
        link.theirs.update(frame.ids)
        if self.order.expires:
            horizon_us = self._horizon(now_us)
            if dead := [id for id in lacking if id[1] <= horizon_us]:
                link.theirs.difference_update(dead)  # nobody would take them out later
                lacking = lacking.difference(dead)
        if lacking:
            lacking = self._evicted.taken_from(lacking.difference(self._asking))
        heard = 0 if self._options.retry_us is None else frame.number
        if lacking or heard:
            self._ask(now_us, source, link, lacking, out, heard)
        if len(link.theirs) > THEIRS_MIN:
            link.trim(self._cache.entries, self._asking)

    def _on_request(
        self, now_us: int, source: NodeId, link: Neighbour, frame: Request, out: Outbox[Frame]
    ) -> None:
        link.unheard.pop(frame.heard, None)
        if not frame.ids:
            return
        link.lacks(frame.ids)
        messages = self._cache.pick(frame.ids, self._horizon(now_us))
        if self._options.transfer == "random":
            self._rng.shuffle(messages)
        elif self._options.transfer == "newest":
            messages.reverse()
        link.theirs.update([message.id for message in messages])
        gone = NONE
        if len(messages) < len(frame.ids):
            gone = frame.ids.difference([message.id for message in messages])
        bytes_max, most = self._options.frame_bytes_max, self._options.frame_messages_max
        out.sends += [(source, Data(batch)) for batch in batches(messages, bytes_max, most)]
        out.sends += [(source, Data((), ids)) for ids in split_ids(gone, bytes_max)]

    def _on_data(
        self, now_us: int, source: NodeId, link: Neighbour, frame: Data | Push, out: Outbox[Frame]
    ) -> None:
        link.progress_us = now_us
        asking, held = self._asking, self._cache.entries
        fresh: Sequence[Message] = [m for m in frame.messages if m.id not in held]
        came, gone = [message.id for message in frame.messages], frame.gone
        if self._proofs is not None and len(proven := self._proofs.proven(fresh)) < len(fresh):
            self.counters.refused += len(fresh) - len(proven)
            forged = {m.id for m in fresh}.difference([m.id for m in proven])
            # As if it had said that it has none of these: somebody else may.
            came, gone, fresh = [id for id in came if id not in forged], gone | forged, proven
        link.theirs.update(came)
        link.asked.difference_update(came)
        for id in came:
            asked_of = asking.pop(id, source)
            if asked_of != source:
                self._links[asked_of].asked.discard(id)
        self.counters.duplicate += len(came) - len(fresh)
        welcome = self.order.screen(now_us, fresh)
        if welcome:
            self.counters.received += len(welcome)
            out.receives += welcome
            self.order.on_receive(now_us, welcome, out)
            self._store(now_us, welcome, out)
            self._announce_news(now_us, out, welcome)
        if gone:
            link.theirs.difference_update(gone)
            gone = gone.intersection(link.asked)  # the rest was asked of others meanwhile
            link.asked.difference_update(gone)
            self._ask_elsewhere(now_us, gone, out)
        if len(link.theirs) > THEIRS_MIN:
            link.trim(held, asking)

    # ---- steps ----------------------------------------------------------------------------------

    def _horizon(self, now_us: int) -> int:
        """Up to where deadlines have passed: a clock that is set back revives nothing."""
        if self.order.expires and now_us > self._horizon_us:
            self._horizon_us = now_us
        return self._horizon_us

    def _store(self, now_us: int, messages: Sequence[Message], out: Outbox[Frame]) -> None:
        self._cache.add(messages)
        self._marks.add(messages)
        if self._durable:
            out.saves += [("message", message.id, message) for message in messages]
        expired = self._cache.purge(self._horizon(now_us)) if self.order.expires else []
        evicted = self._cache.evict(self._horizon(now_us))
        if evicted:
            self.counters.evicted += len(evicted)
            self._evicted.add(evicted)
            self.order.on_evict(now_us, evicted, out)
        if expired:
            self._marks.forget(self._links.values(), self._horizon_us)
        gone = expired + evicted
        if gone:
            for link in self._links.values():
                link.theirs.difference_update(gone)
            if self._durable:
                out.saves += [("message", id, None) for id in gone]

    def _push(self, messages: Sequence[Message], out: Outbox[Frame]) -> None:
        """Who was not greeted yet is told of these with all others."""
        bytes_max, most = self._options.frame_bytes_max, self._options.frame_messages_max
        frames = [Push(batch) for batch in batches(messages, bytes_max, most)]
        for peer, link in self._links.items():
            if link.greeted:
                out.sends += [(peer, frame) for frame in frames]

    def _announce_news(self, now_us: int, out: Outbox[Frame], news: Sequence[Message] = ()) -> None:
        period_us = self._options.announce_us
        if not self._links:
            self._fresh.clear()  # whoever comes will be told everything
            return
        self._fresh += [message.id for message in news]
        if not period_us:
            self._announce(now_us, out)
        elif not self._announce_armed:
            self._announce_armed = True
            wait_us = period_us - (now_us - self._phase_us) % period_us
            out.timers.append((ANNOUNCE_TIMER, now_us + wait_us))

    def _announce(self, now_us: int, out: Outbox[Frame]) -> None:
        """Tell every neighbour what is new here and, as far as is known, new to it."""
        fresh = frozenset(self._fresh)
        if self._cache.is_bounded:
            fresh = frozenset(filter(self._cache.entries.__contains__, fresh))
        self._fresh.clear()
        self._marks.set_news(fresh)
        everything: frozenset[MessageId] = NONE
        for peer, link in self._links.items():
            ids = NONE  # with marks it is told when it has said how far it has come
            if link.greeted:
                ids = self._marks.tell(peer, link, fresh, out)
            elif not self._marks.are_on:
                everything = everything or self._cache.live_ids(self._horizon(now_us))
                ids = everything - link.theirs
                link.greeted = True
            if ids:
                self._tell(now_us, peer, link, ids, out)

    def _tell(
        self,
        now_us: int,
        peer: NodeId,
        link: Neighbour,
        ids: frozenset[MessageId],
        out: Outbox[Frame],
    ) -> None:
        for batch in split_ids(ids, self._options.frame_bytes_max):
            self._number += 1
            out.sends.append((peer, Announce(self._number, batch)))
            if self._options.retry_us is not None:
                link.unheard[self._number] = batch
        if self._options.retry_us is not None:
            self._arm_retry(now_us, out)

    def _ask(
        self,
        now_us: int,
        peer: NodeId,
        link: Neighbour,
        ids: frozenset[MessageId],
        out: Outbox[Frame],
        heard: int = 0,
    ) -> None:
        if ids:
            self._asking.update(dict.fromkeys(ids, peer))
            link.asked.update(ids)
            link.progress_us = now_us
            if self._options.retry_us is not None:
                self._arm_retry(now_us, out)
        for batch in split_ids(ids, self._options.frame_bytes_max) if ids else (ids,):
            out.sends.append((peer, Request(heard, batch)))

    def _ask_elsewhere(self, now_us: int, ids: Iterable[MessageId], out: Outbox[Frame]) -> None:
        """One neighbour will not send these: ask another that has them, if there is one."""
        rest = {id for id in ids if self._asking.pop(id, None) is not None}
        for peer, link in self._links.items():
            if not rest:
                return
            if offered := rest & link.theirs:
                rest -= offered
                self._ask(now_us, peer, link, frozenset(offered), out)

    # ---- links that lose ------------------------------------------------------------------------

    def _arm_retry(self, now_us: int, out: Outbox[Frame]) -> None:
        assert self._options.retry_us is not None
        if not self._retry_armed:
            self._retry_armed = True
            out.timers.append((RETRY_TIMER, now_us + self._options.retry_us))

    def _retry(self, now_us: int, out: Outbox[Frame]) -> None:
        """Announce again what was not acknowledged, ask again for what does not come."""
        assert self._options.retry_us is not None
        for peer, link in self._links.items():
            if link.unheard:
                unheard = frozenset().union(*link.unheard.values())
                link.unheard.clear()
                ids = unheard.intersection(self._cache.live_ids(self._horizon(now_us)))
                if ids - link.theirs:
                    self._tell(now_us, peer, link, ids - link.theirs, out)
            if link.asked:
                # While data keeps coming the rest is on its way: a busy link is not a lossy one.
                # A clock that was set back shows nothing: then it is asked once too often.
                if not 0 <= now_us - link.progress_us < self._options.retry_us:
                    self._ask(now_us, peer, link, frozenset(link.asked), out)
                else:
                    self._arm_retry(now_us, out)
