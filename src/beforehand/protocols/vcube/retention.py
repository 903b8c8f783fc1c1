"""Beyond the paper: the messages that a VCube node keeps, evicts, asks for and skips.

A node keeps every message for the retention time after its delivery. On link-up both peers ask:
`Ask` holds the version vector, packets return the missing messages that the peer still keeps, and
`Answer` names those that it evicted. The node skips these: it reports each skip, and never delivers
a cause after its effect. Call a set of messages *closed* if it contains all causes of its members.

1. The messages that a node has delivered or skipped (`_clock`) are closed: it delivers a message
   after its causes and skips closed sets only. So no message that it delivers later, being outside
   the set, is a cause of one inside.
2. The messages that a node has evicted (`_gone`) are closed: it evicts in order of delivery, causes
   first. It never held the messages that it skipped, so it adds the whole set that it has to
   skip. The union of two closed sets is closed.
3. Messages in the clock that are not evicted are kept. So a node that skips what a peer evicted,
   and receives what the peer keeps, lacks nothing that the peer delivered.

Messages sent in reply to an `Ask` have height 0. They make no node responsible for a cluster, so
the rule for forwarding down the trees does not change.

A node asks one peer at a time, so that the first peer sends the missing messages and the others
have nothing to add. The first answer counts: the node skips the messages that this peer has
evicted, even if another peer still keeps them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import gt

from beforehand.protocols.contract.base import Timer
from beforehand.protocols.contract.proof import Proofs
from beforehand.protocols.contract.tables import Rows, Table
from beforehand.protocols.vcube import frames, state
from beforehand.protocols.vcube.dissemination import Copy, Dissemination
from beforehand.protocols.vcube.frames import Entry, VCubeMessage, VCubeOutbox
from beforehand.protocols.vcube.topology import NO_NODE

ASK: Timer = ("ask", None)
"""A peer did not answer, or a message has waited longer than a dissemination takes."""

SPANS_MAX = 8
"""How many spans of missed messages a node remembers per origin. This bounds the memory of a node
that is often offline."""

NAMED_MAX = 1024
"""How many of the missed messages of one origin are reported by id, the last ones; all are counted.
A bound is needed because a peer may claim to have evicted any number of messages."""


class Retention(Dissemination):
    """The part of a node that is active only if `keep_us` is not 0."""

    def __init__(
        self,
        node: int,
        nodes: int,
        *,
        aggregates: bool,
        root: int | None,
        keep_us: int,
        mtu_bytes: int,
        durable: bool,
        proofs: Proofs | None,
    ) -> None:
        super().__init__(
            node, nodes, aggregates=aggregates, root=root, keep_us=keep_us, mtu_bytes=mtu_bytes
        )
        self._durable = durable
        self._proofs = proofs
        self._state = state.VCubeState(gone=[0] * nodes, proven=[0] * nodes)

    def _save(self, table: Table, key: object, value: object, out: VCubeOutbox) -> None:
        if self._durable:
            out.saves.append((table.name, key, value))

    # ---- retention and eviction -----------------------------------------------------------------

    def _pass_time(self, now_us: int, out: VCubeOutbox) -> None:
        """Advance the age clock by the elapsed time, or by 0 if the system clock was set back."""
        if now_us >= self._state.now_us:
            self._state.age_us += now_us - self._state.now_us
        elif self._state.is_watching:
            out.timers.append((ASK, now_us + self._keep_us))
        self._state.now_us = now_us
        self._forget(out)

    def _forget(self, out: VCubeOutbox) -> None:
        gone, last_us = self._state.gone, self._state.age_us - self._keep_us
        last: dict[int, VCubeMessage] = {}
        while self._state.ages and self._state.ages[0][0] <= last_us:
            id = self._state.ages.popleft()[1]
            message = self._kept.pop(id).message
            self._save(state.MESSAGES, id, None, out)
            self._save(state.HEIGHTS, id, None, out)
            origin, seq = id
            if seq > gone[origin]:
                gone[origin] = seq
                self._save(state.GONE, origin, seq, out)
            if seq == self._state.proven[origin]:
                last[origin] = message
        if last and self._proofs is not None:
            self._state.last |= last
            for origin, message in last.items():
                self._save(state.LAST, origin, message, out)

    def _on_kept(self, copy: Copy, out: VCubeOutbox) -> None:
        origin, seq = id = copy.message.id
        self._state.proven[origin] = max(seq, self._state.proven[origin])
        self._kept[id] = copy
        self._save(state.MESSAGES, id, copy.message, out)
        self._save(state.HEIGHTS, id, copy.height, out)

    def _keep_late(self, now_us: int, message: VCubeMessage, out: VCubeOutbox) -> Copy:
        self._date([message.id])
        return super()._keep_late(now_us, message, out)

    def _raise(self, copy: Copy, height: int, out: VCubeOutbox) -> None:
        super()._raise(copy, height, out)
        if self._keep_us:
            self._save(state.HEIGHTS, copy.message.id, height, out)

    def _on_delivered(self, messages: Sequence[VCubeMessage], out: VCubeOutbox) -> None:
        self._date(message.id for message in messages)
        if self._durable:
            for message in messages:
                origin, seq = message.id
                out.saves += [(state.CLOCK.name, origin, seq), (state.NEW_CAUSES.name, origin, seq)]

    def _on_own_broadcast(self, message: VCubeMessage, out: VCubeOutbox) -> None:
        me, seq = message.id
        self._date([message.id])
        self._save(state.CLOCK, me, seq, out)
        for origin, _ in message.past:
            self._save(state.NEW_CAUSES, origin, None, out)

    def _date(self, ids: Iterable[Entry]) -> None:
        if self._keep_us:
            self._state.ages.extend((self._state.age_us, id) for id in ids)

    # ---- asking and answering -------------------------------------------------------------------

    def _ask(self, peer: int, out: VCubeOutbox) -> None:
        if peer != self._state.asked:
            self._state.to_ask[peer] = None
        if self._state.asked == NO_NODE:
            self._ask_next(out)

    def _ask_next(self, out: VCubeOutbox) -> None:
        self._state.asked = next(iter(self._state.to_ask), NO_NODE)
        if self._state.asked != NO_NODE:
            del self._state.to_ask[self._state.asked]
            self._state.has_asked.add(self._state.asked)
            self._state.awaited.add(self._state.asked)
            out.sends.append((self._state.asked, frames.Ask(tuple(self._clock[: self._nodes]))))

    def _ask_no_more(self, peer: int, out: VCubeOutbox) -> None:
        self._state.to_ask.pop(peer, None)
        self._state.has_asked.discard(peer)
        self._state.awaited.discard(peer)
        if peer == self._state.asked:
            self._ask_next(out)

    def _on_ask(self, source: int, ask: frames.Ask, out: VCubeOutbox) -> None:
        clock, peer_clock = self._clock, ask.clock
        lacking = [copy.message for id, copy in self._kept.items() if id[1] > peer_clock[id[0]]]
        if self._proofs is not None:
            lacking = self._evidence(source, peer_clock, lacking) + lacking
        else:
            if peer_clock[self._self] > clock[self._self]:
                self._find_out(out)
            if peer_clock[source] < clock[source]:
                out.sends.append((source, frames.Known(clock[source])))
        out.sends += [(source, packet) for packet in self._packets(0, lacking)]
        is_lacking = any(map(gt, self._state.gone, peer_clock))
        out.sends.append((source, frames.Answer(tuple(self._state.gone) if is_lacking else ())))
        if any(map(gt, peer_clock, clock)) and self._has_more(source, sum(peer_clock)):
            self._ask(source, out)  # its detector was faster, or has suspected us for long

    def _evidence(
        self, source: int, peer_clock: Sequence[int], lacking: Sequence[VCubeMessage]
    ) -> list[VCubeMessage]:
        """Return the last message of each origin of which the peer lacks evicted messages, and the
        peer's own last message if it lost it: they prove the answer that follows."""
        shown = {message.id for message in lacking}
        found = []
        for origin, seq in enumerate(self._state.gone):
            is_own = origin == source and peer_clock[origin] < self._clock[origin]
            if peer_clock[origin] < seq or is_own:
                message = self._latest_of(origin)
                if message is not None and message.id not in shown:
                    found.append(message)
        return found

    def _latest_of(self, origin: int) -> VCubeMessage | None:
        copy = self._kept.get((origin, self._state.proven[origin]))
        return self._state.last.get(origin) if copy is None else copy.message

    def _has_more(self, source: int, total: int) -> bool:
        """Return whether the peer was not asked yet, or has more than when it last made us ask.
        Otherwise two peers that each lack messages of the other would ask in turns for ever."""
        known = self._state.known_totals.get(source, -1)
        has_more = source not in self._state.has_asked or total > known
        if has_more:
            self._state.known_totals[source] = total
        return has_more

    def _on_answer(self, source: int, answer: frames.Answer, out: VCubeOutbox) -> None:
        if source not in self._state.awaited:
            # No `Ask` is open. An earlier incarnation may have asked, or this one before the
            # detector reported the peer down. An honest peer cannot know that: do not refuse it.
            return
        self._state.awaited.discard(source)
        if answer.gone and self._is_plausible(answer.gone):
            if answer.gone[self._self] > self._clock[self._self]:
                self._find_out(out)
            self._skip(answer.gone, out)
        if source == self._state.asked:
            self._ask_next(out)

    def _is_plausible(self, gone: Sequence[int]) -> bool:
        """Return whether, as far as this node can tell, all messages up to `gone` were broadcast.

        With proofs, this node must have a signed message of the origin with at least that number: a
        peer that evicted messages sends the last one before the answer. If packets are reordered,
        this node asks again about its pending messages. Without proofs, it trusts its peers.
        """
        return self._proofs is None or not any(map(gt, gone, self._state.proven))

    def _on_known(self, source: int, known: frames.Known, out: VCubeOutbox) -> None:
        if known.seq > self._clock[self._self]:
            self._find_out(out)

    def _find_out(self, out: VCubeOutbox) -> None:
        """Note that this node lost its state: a peer knows messages of it that it does not. It
        still receives and forwards, and handles these messages like those of another origin."""
        if not self._state.is_forgetful:
            self.refused += 1
            self._state.is_forgetful = True
            self._save(state.FORGETFUL, self._self, True, out)

    def _refuse_second(self, message: VCubeMessage, out: VCubeOutbox) -> None:
        self.refused += 1
        origin, seq = message.id
        if origin == self._self:
            self._find_out(out)
        elif self._proofs is None:
            out.sends.append((origin, frames.Known(max(seq, self._clock[origin]))))
        else:
            shown = {message.id: message for message in (self._latest_of(origin),) if message}
            shown[origin, seq] = self._kept[origin, seq].message
            out.sends += [(origin, frames.Packet(0, (message,))) for message in shown.values()]

    # ---- timeouts -------------------------------------------------------------------------------

    def _watch(self, now_us: int, out: VCubeOutbox) -> None:
        """Set the `ASK` timer if a message is pending, an `Ask` is open or messages were gained."""
        if self._state.is_watching:
            return
        if self._pending or self._state.asked != NO_NODE or self._state.has_gained:
            self._state.is_watching = True
            self._state.watched = self._state.asked, next(iter(self._pending), None)
            out.timers.append((ASK, now_us + self._keep_us))

    def _look_after(self, now_us: int, out: VCubeOutbox) -> None:
        """Ask the next peer if the last one timed out; ask about a message pending for too long."""
        self._state.is_watching = False
        asked, oldest = self._state.watched
        if asked != NO_NODE and asked == self._state.asked:
            self._ask_next(out)
        if self._state.has_gained:
            self._ask_all(out)
        elif self._state.asked == NO_NODE and oldest in self._pending:
            self._ask_about(oldest, out)
        self._watch(now_us, out)

    def _ask_all(self, out: VCubeOutbox) -> None:
        """Ask all live peers. An `Ask` holds this node's version vector, so a peer that has less
        asks in return.

        A parent that evicted a message (its clock was set forward) cannot resend it on learning
        that a child was down. The child then gets the message from another peer, or skips it, and
        no node is responsible for the nodes below the child. They learn of the message here.
        """
        self._state.has_gained = False
        peers = (peer for peer in range(self._nodes) if self._live[peer] and peer != self._self)
        self._state.to_ask.update(dict.fromkeys(peers))
        if self._state.asked == NO_NODE:
            self._ask_next(out)

    def _ask_about(self, id: Entry, out: VCubeOutbox) -> None:
        """Ask the message's origin, which delivered all causes; on later tries, the next peers."""
        for _ in range(self._nodes):
            peer = (id[0] + self._state.tries) % self._nodes
            self._state.tries += 1
            if peer != self._self and self._live[peer]:
                self._ask(peer, out)
                return

    # ---- skipping -------------------------------------------------------------------------------

    def _skip(self, gone: Sequence[int], out: VCubeOutbox) -> None:
        """Skip all undelivered messages of the closed set `gone`."""
        clock, lost, count = self._clock, list[Entry](), 0
        for origin, last in enumerate(gone):
            first = clock[origin] + 1
            if first <= last:
                count += last - clock[origin]
                named = range(max(first, last + 1 - NAMED_MAX), last + 1)
                lost += [(origin, seq) for seq in named]
                clock[origin] = last
                self._save(state.CLOCK, origin, last, out)
                self._note_missed(origin, first, last, out)
        if not lost:
            return
        self._state.missed_count += count
        self._state.has_gained = True
        out.losses += [("drop", id) for id in lost]
        # Include the messages of `gone` delivered here: without them the set is not closed.
        for origin, last in enumerate(gone):
            if last > self._state.gone[origin]:
                self._state.gone[origin] = last
                self._save(state.GONE, origin, last, out)
        self._go_on(out)

    def _note_missed(self, origin: int, first: int, last: int, out: VCubeOutbox) -> None:
        spans = self._state.missed.get(origin, ())
        if spans and spans[-1][1] == first - 1:
            first, spans = spans[-1][0], spans[:-1]
        self._state.missed[origin] = (*spans, (first, last))[-SPANS_MAX:]
        self._save(state.MISSED, origin, self._state.missed[origin], out)

    def _go_on(self, out: VCubeOutbox) -> None:
        """Deliver and forward the messages that waited only for skipped ones."""
        copies = list(self._pending.values())
        held = [copy for copy in copies if copy.postponed]
        for message in self._index(copies):
            self._deliver(message, out)
        self._mark_early()
        self._release(held, out)

    def _index(self, copies: list[Copy]) -> list[VCubeMessage]:
        """Index the pending messages anew without the skipped ones; return those now ready."""
        self._pending.clear()
        self._waiting.clear()
        self._awaiting.clear()
        ready = []
        for copy in copies:
            origin, seq = id = copy.message.id
            copy.causes = iter(copy.message.past)
            if seq <= self._clock[origin]:
                self._state.dropped_count += 1
                self._date([id])
                continue
            cause = self._undelivered(id, copy.causes)
            if cause is None:
                ready.append(copy.message)
            else:
                self._pending[id] = copy
                self._waiting.setdefault(cause, []).append(copy)
        return ready

    def _mark_early(self) -> None:
        self._early.clear()
        for origin, seq in sorted(self._pending):
            if not self._is_gap_free((origin, seq - 1)):
                self._early.add((origin, seq))

    # ---- recovery -------------------------------------------------------------------------------

    def _restore(self, now_us: int, rows: Rows) -> None:
        """Load the saved state. The retention of each kept message starts anew, so messages that
        could not be sent before the crash are kept as long as any other."""
        for origin, seq in rows.get(state.CLOCK.name, {}).items():
            self._clock[origin] = seq
        for origin, seq in rows.get(state.GONE.name, {}).items():
            self._state.gone[origin] = seq
        self._new_causes = sorted(rows.get(state.NEW_CAUSES.name, {}).items())
        self._state.missed = dict(rows.get(state.MISSED.name, {}))
        self._state.is_forgetful = bool(rows.get(state.FORGETFUL.name))
        self._state.last = dict(rows.get(state.LAST.name, {}))
        for origin, message in self._state.last.items():
            self._state.proven[origin] = message.seq
        self._state.unreported = set(range(self._nodes)) - {self._self}
        heights = rows.get(state.HEIGHTS.name, {})
        copies = []
        for id, message in sorted(rows.get(state.MESSAGES.name, {}).items()):
            self._order += 1
            copy = Copy(message, now_us, iter(()), self._order, heights[id], 0, id)
            self._kept[id] = copy
            self._state.proven[id[0]] = max(id[1], self._state.proven[id[0]])
            if id[1] > self._clock[id[0]]:
                copies.append(copy)
            else:
                self._date([id])
        ready = self._index(copies)
        assert not ready, "what is ready is delivered in the step that made it so"
        self._mark_early()
        for copy in copies:
            copy.postponed = copy.height
            self._hold_back(copy)
