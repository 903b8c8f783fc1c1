"""Beyond the paper: what a node of a VCube keeps for others, forgets, asks for and passes over.

A node keeps every message for a while after its delivery. Who comes back is asked, and asks: `Ask`
names what a node has, the packets that answer it bring what the other side keeps of the rest, and
`Answer` names what is kept no more. That is passed over: never in silence, and never so that a
cause comes after its effect. Call a set of messages *closed* if it holds the causes of all that it
holds.

1. What a node has delivered or passed over (`_clock`) is closed: it delivers a message after its
   causes, and passes over closed sets only. So whatever it delivers later, being outside, is no
   cause of what is inside.
2. What a node keeps no more (`_gone`) is closed: it forgets in the order of its deliveries, causes
   first. What it passed over was never here; so the set that it was told to pass over goes in, all
   of it, and the union of two closed sets is closed.
3. What is in the clock and not gone is kept. So whoever passes over what a peer has not, and gets
   what it has, lacks nothing that the peer delivered.

What is asked for comes with height 0: nobody answers for clusters because of it, and the rule by
which messages travel down the trees stays what it was.

Asking goes on one peer at a time, so that the first one who answers sends what is missing and the
others find nothing to add. The first answer counts: what that peer has forgotten is passed over,
even if another would still have had it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import gt

from beforehand.protocols.contract.base import Timer
from beforehand.protocols.contract.proof import Proofs
from beforehand.protocols.contract.tables import Rows, Table
from beforehand.protocols.vcube import frames, state
from beforehand.protocols.vcube.dissemination import Copy, Dissemination
from beforehand.protocols.vcube.frames import CubeOutbox, Entry, VCubeMessage
from beforehand.protocols.vcube.topology import NO_NODE

ASK: Timer = ("ask", None)
"""Somebody does not answer, or something waits longer than a dissemination takes."""

SPANS_MAX = 8
"""Of each origin a node remembers the last gaps only: whoever is away ever so often does not
remember ever more."""

NAMED_MAX = 1024
"""Of the missed messages of one origin only the last are named one by one; all are counted. What a
peer claims to have forgotten may be any number."""


class Retention(Dissemination):
    """What happens only if `keep_us` is not 0."""

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

    def _save(self, table: Table, key: object, value: object, out: CubeOutbox) -> None:
        if self._durable:
            out.saves.append((table.name, key, value))

    # ---- keeping and forgetting -----------------------------------------------------------------

    def _pass_time(self, now_us: int, out: CubeOutbox) -> None:
        """Ages are counted in time that passed: a clock that is set back lets none pass."""
        if now_us >= self._state.now_us:
            self._state.age_us += now_us - self._state.now_us
        elif self._state.is_watching:
            out.timers.append((ASK, now_us + self._keep_us))
        self._state.now_us = now_us
        self._forget(out)

    def _forget(self, out: CubeOutbox) -> None:
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

    def _on_kept(self, copy: Copy, out: CubeOutbox) -> None:
        origin, seq = id = copy.message.id
        self._state.proven[origin] = max(seq, self._state.proven[origin])
        self._kept[id] = copy
        self._save(state.MESSAGES, id, copy.message, out)
        self._save(state.HEIGHTS, id, copy.height, out)

    def _keep_late(self, now_us: int, message: VCubeMessage, out: CubeOutbox) -> Copy:
        self._date([message.id])
        return super()._keep_late(now_us, message, out)

    def _raise(self, copy: Copy, height: int, out: CubeOutbox) -> None:
        super()._raise(copy, height, out)
        if self._keep_us:
            self._save(state.HEIGHTS, copy.message.id, height, out)

    def _on_delivered(self, messages: Sequence[VCubeMessage], out: CubeOutbox) -> None:
        self._date(message.id for message in messages)
        if self._durable:
            for message in messages:
                origin, seq = message.id
                out.saves += [(state.CLOCK.name, origin, seq), (state.NEWS.name, origin, seq)]

    def _on_own_broadcast(self, message: VCubeMessage, out: CubeOutbox) -> None:
        me, seq = message.id
        self._date([message.id])
        self._save(state.CLOCK, me, seq, out)
        for origin, _ in message.past:
            self._save(state.NEWS, origin, None, out)

    def _date(self, ids: Iterable[Entry]) -> None:
        if self._keep_us:
            self._state.ages.extend((self._state.age_us, id) for id in ids)

    # ---- asking and answering -------------------------------------------------------------------

    def _ask(self, peer: int, out: CubeOutbox) -> None:
        if peer != self._state.asked:
            self._state.to_ask[peer] = None
        if self._state.asked == NO_NODE:
            self._ask_next(out)

    def _ask_next(self, out: CubeOutbox) -> None:
        self._state.asked = next(iter(self._state.to_ask), NO_NODE)
        if self._state.asked != NO_NODE:
            del self._state.to_ask[self._state.asked]
            self._state.has_asked.add(self._state.asked)
            self._state.awaited.add(self._state.asked)
            out.sends.append((self._state.asked, frames.Ask(tuple(self._clock[: self._nodes]))))

    def _ask_no_more(self, peer: int, out: CubeOutbox) -> None:
        self._state.to_ask.pop(peer, None)
        self._state.has_asked.discard(peer)
        self._state.awaited.discard(peer)
        if peer == self._state.asked:
            self._ask_next(out)

    def _on_ask(self, source: int, ask: frames.Ask, out: CubeOutbox) -> None:
        clock, theirs = self._clock, ask.clock
        lacking = [copy.message for id, copy in self._kept.items() if id[1] > theirs[id[0]]]
        if self._proofs is not None:
            lacking = self._evidence(source, theirs, lacking) + lacking
        else:
            if theirs[self._self] > clock[self._self]:
                self._find_out(out)
            if theirs[source] < clock[source]:
                out.sends.append((source, frames.Known(clock[source])))
        out.sends += [(source, packet) for packet in self._packets(0, lacking)]
        is_lacking = any(map(gt, self._state.gone, theirs))
        out.sends.append((source, frames.Answer(tuple(self._state.gone) if is_lacking else ())))
        if any(map(gt, theirs, clock)) and self._is_news(source, sum(theirs)):
            self._ask(source, out)  # its detector was faster than ours, or suspected us for long

    def _evidence(
        self, source: int, theirs: Sequence[int], lacking: Sequence[VCubeMessage]
    ) -> list[VCubeMessage]:
        """Return the last message of each origin of which the peer lacks what is kept no more, and
        of the peer itself if it does not remember it: proof of the answer that follows."""
        shown = {message.id for message in lacking}
        found = []
        for origin, seq in enumerate(self._state.gone):
            is_own = origin == source and theirs[origin] < self._clock[origin]
            if theirs[origin] < seq or is_own:
                message = self._latest_of(origin)
                if message is not None and message.id not in shown:
                    found.append(message)
        return found

    def _latest_of(self, origin: int) -> VCubeMessage | None:
        copy = self._kept.get((origin, self._state.proven[origin]))
        return self._state.last.get(origin) if copy is None else copy.message

    def _is_news(self, source: int, total: int) -> bool:
        """Whether it had not been asked, or has more than when it last made us ask: two that lack
        something of each other would else ask in turns for ever."""
        is_news = source not in self._state.has_asked or total > self._state.heard.get(source, -1)
        if is_news:
            self._state.heard[source] = total
        return is_news

    def _on_answer(self, source: int, answer: frames.Answer, out: CubeOutbox) -> None:
        if source not in self._state.awaited:
            # Nobody asked; or an earlier incarnation did, or this one before the detector reported
            # that the peer was down: an honest peer cannot know that, so it is not refused.
            return
        self._state.awaited.discard(source)
        if answer.gone and self._is_plausible(answer.gone):
            if answer.gone[self._self] > self._clock[self._self]:
                self._find_out(out)
            self._pass_over(answer.gone, out)
        if source == self._state.asked:
            self._ask_next(out)

    def _is_plausible(self, gone: Sequence[int]) -> bool:
        """Whether all that is said to be gone was broadcast, as far as that can be known.

        With proofs, a signed message of the origin must be here that comes no earlier: whoever has
        forgotten its messages sends the last one before the answer. If packets overtake each other,
        the messages that wait here are asked for again. Without proofs, peers are trusted.
        """
        return self._proofs is None or not any(map(gt, gone, self._state.proven))

    def _on_known(self, source: int, known: frames.Known, out: CubeOutbox) -> None:
        if known.seq > self._clock[self._self]:
            self._find_out(out)

    def _find_out(self, out: CubeOutbox) -> None:
        """Somebody knows messages of ours that we do not: we came back without our state. We listen
        and forward on, and take these messages like those of anybody else."""
        if not self._state.is_forgetful:
            self.refused += 1
            self._state.is_forgetful = True
            self._save(state.FORGETFUL, self._self, True, out)

    def _refuse_second(self, message: VCubeMessage, out: CubeOutbox) -> None:
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

    # ---- watching, lest something waits for ever ------------------------------------------------

    def _watch(self, now_us: int, out: CubeOutbox) -> None:
        """Look again later, if there is anything to look after."""
        if self._state.is_watching:
            return
        if self._pending or self._state.asked != NO_NODE or self._state.has_gained:
            self._state.is_watching = True
            self._state.watched = self._state.asked, next(iter(self._pending), None)
            out.timers.append((ASK, now_us + self._keep_us))

    def _look_after(self, now_us: int, out: CubeOutbox) -> None:
        """Who was asked long ago will not answer, and what came long ago has lost a cause."""
        self._state.is_watching = False
        asked, oldest = self._state.watched
        if asked != NO_NODE and asked == self._state.asked:
            self._ask_next(out)
        if self._state.has_gained:
            self._ask_all(out)
        elif self._state.asked == NO_NODE and oldest in self._pending:
            self._ask_about(oldest, out)
        self._watch(now_us, out)

    def _ask_all(self, out: CubeOutbox) -> None:
        """Ask all live peers. A question names what this node has, so a peer that has less asks in
        turn.

        A parent that has forgotten a message (its clock was set forward) cannot send it again when
        it learns that a child was down. The child then gets the message from somebody else, or
        skips it, and nobody answers for the nodes below the child. They hear of the message here.
        """
        self._state.has_gained = False
        peers = (peer for peer in range(self._nodes) if self._live[peer] and peer != self._self)
        self._state.to_ask.update(dict.fromkeys(peers))
        if self._state.asked == NO_NODE:
            self._ask_next(out)

    def _ask_about(self, id: Entry, out: CubeOutbox) -> None:
        """First its origin, which has delivered all causes; then one after the other."""
        for _ in range(self._nodes):
            peer = (id[0] + self._state.tries) % self._nodes
            self._state.tries += 1
            if peer != self._self and self._live[peer]:
                self._ask(peer, out)
                return

    # ---- passing over ---------------------------------------------------------------------------

    def _pass_over(self, gone: Sequence[int], out: CubeOutbox) -> None:
        """Do without all of `gone`, a closed set, that is not delivered yet."""
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
        # Also what of it was delivered here: without that, the set would not be closed.
        for origin, last in enumerate(gone):
            if last > self._state.gone[origin]:
                self._state.gone[origin] = last
                self._save(state.GONE, origin, last, out)
        self._go_on(out)

    def _note_missed(self, origin: int, first: int, last: int, out: CubeOutbox) -> None:
        spans = self._state.missed.get(origin, ())
        if spans and spans[-1][1] == first - 1:
            first, spans = spans[-1][0], spans[:-1]
        self._state.missed[origin] = (*spans, (first, last))[-SPANS_MAX:]
        self._save(state.MISSED, origin, self._state.missed[origin], out)

    def _go_on(self, out: CubeOutbox) -> None:
        """What waited for what was passed over need not wait for it any more."""
        copies = list(self._pending.values())
        held = [copy for copy in copies if copy.postponed]
        for message in self._index(copies):
            self._deliver(message, out)
        self._mark_early()
        self._release(held, out)

    def _index(self, copies: list[Copy]) -> list[VCubeMessage]:
        """Sort out what is pending, but for what was passed over. What is ready."""
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
            if not self._has_passed((origin, seq - 1)):
                self._early.add((origin, seq))

    # ---- coming back ----------------------------------------------------------------------------

    def _restore(self, now_us: int, rows: Rows) -> None:
        """The rest of what was saved is counted from now: what could not be sent before the crash
        is kept as long as anything else."""
        for origin, seq in rows.get(state.CLOCK.name, {}).items():
            self._clock[origin] = seq
        for origin, seq in rows.get(state.GONE.name, {}).items():
            self._state.gone[origin] = seq
        self._news = sorted(rows.get(state.NEWS.name, {}).items())
        self._state.missed = dict(rows.get(state.MISSED.name, {}))
        self._state.is_forgetful = bool(rows.get(state.FORGETFUL.name))
        self._state.last = dict(rows.get(state.LAST.name, {}))
        for origin, message in self._state.last.items():
            self._state.proven[origin] = message.seq
        self._state.unheard = set(range(self._nodes)) - {self._self}
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
