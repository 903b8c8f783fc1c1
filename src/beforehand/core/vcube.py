"""Causal aggregation broadcast over VCube's spanning trees (VCU, Algorithms 1 and 2).

Every origin has its own tree, so no node is the bottleneck. A node that got a message before some
of that message's causes holds it back from exactly those children that it must serve with a
missing cause too: they could not deliver it anyway. When the last such cause arrives, all of it
travels on as one packet.

A message held back is indexed under *one* missing cause, the one that blocks the most clusters; an
arrival touches only what waited for it. What a missing cause blocks is a prefix of the clusters
(its children at a node are the lowest clusters, whatever the tree), so one number tells what is
left to send.

Beyond the paper, nodes may be down or missing. For every message that a node keeps, and every
cluster that it serves for it, the message was sent to the first live node of that cluster, as
far as this node knows who is alive: `on_link` restores that whenever it learns something new.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from operator import attrgetter

import msgspec

from beforehand.core.base import Counters, Fate, MessageId, NodeId
from beforehand.core.cube import NO_NODE, dimension, first_live, heights_by_distance
from beforehand.core.needs import Link, Needs
from beforehand.core.order import refuse_lifetime
from beforehand.core.packets import MTU_BYTES, CubeMessage, CubeOutbox, Entry, Packet, pack
from beforehand.errors import LocalError, RemoteError

NEWS_PER_NODE = 2
"""With more news than this per node, a node keeps only the latest of each origin: whoever never
broadcasts does not remember ever more."""

_BY_ID = attrgetter("message.id")


class _Copy(msgspec.Struct, gc=False):
    """A message at this node while anything is left to do: to deliver it, to send it on, or to send
    it again."""

    message: CubeMessage
    since_us: int
    causes: Iterator[Entry]
    """Those yet to be looked at: what is delivered stays so."""
    order: int
    height: int
    """The node answers for its clusters 1..height."""
    postponed: int
    """The clusters 1..postponed are still to be served."""
    awaited: Entry
    """If any are: the arrival that this waits for."""


class VCube:
    """One node. With `root`, all messages travel over the one tree of that node (section 5.5).

    `keep_us` is how long a message is kept for children that fail; it must cover a dissemination
    and the detection of the failures in it. 0 is the paper's model: nodes do not fail.
    """

    needs = Needs({"detector": Link(reliable=True)})

    def __init__(
        self,
        node: int,
        nodes: int,
        *,
        aggregates: bool = True,
        root: int | None = None,
        keep_us: int = 0,
        mtu_bytes: int = MTU_BYTES,
    ) -> None:
        if not 0 <= node < nodes or (root is not None and not 0 <= root < nodes):
            raise LocalError(f"node {node}, root {root}: numbers go from 0 to {nodes - 1}")
        self.node: NodeId = node
        self.duplicates = self.refused = 0
        self.dimension = dimension(nodes)
        self._self, self._nodes, self._root = node, nodes, root
        self._aggregates, self._keep_us, self._mtu_bytes = aggregates, keep_us, mtu_bytes
        size = 1 << self.dimension
        self._live = bytearray(1 if i < nodes else 0 for i in range(size))
        self._look_around()
        self._clock = [0] * size  # vector_clock: delivered
        self._news: list[Entry] = []  # delivered since the last own broadcast
        self._pending: dict[Entry, _Copy] = {}  # received, not delivered
        self._early: set[Entry] = set()  # those of them behind a gap in their origin's messages
        self._waiting: dict[Entry, list[_Copy]] = {}  # the same, by the delivery waited for
        self._awaiting: dict[Entry, list[_Copy]] = {}  # those postponed, by the arrival waited for
        self._kept: dict[Entry, _Copy] = {}
        self._by_age: deque[_Copy] = deque()
        self._order = 0

    # ---- inputs ---------------------------------------------------------------------------------

    def on_broadcast(
        self, now_us: int, payload: bytes, out: CubeOutbox, lifetime_us: int | None = None
    ) -> None:
        refuse_lifetime(self.node, lifetime_us)
        self._forget(now_us)
        me = self._self
        seq = self._clock[me] + 1
        message = CubeMessage((me, seq), self._take_past(), payload)
        # Own messages count as received at once (Algorithm 2, lines 6 and 7).
        self._clock[me] = seq
        out.deliveries.append(message)
        head = self._head(me)
        if head == me:
            self._keep(now_us, message, iter(()), self.dimension)
            self._serve(message, 0, self.dimension, out)
        else:
            self._keep(now_us, message, iter(()), 0)  # until it comes back down the tree
            out.sends.append((head, Packet(self.dimension, (message,))))

    def on_message(self, now_us: int, source: NodeId, frame: Packet, out: CubeOutbox) -> None:
        self._refuse(source, frame)
        if self._keep_us:
            self._forget(now_us)
        height, clock = frame.height, self._clock
        for message in frame.messages:
            if message.id[1] <= clock[message.id[0]]:
                self._again(now_us, message, height, out)
            else:
                self._arrive(now_us, message, height, out)

    def on_link(self, now_us: int, peer: NodeId, up: bool, out: CubeOutbox) -> None:
        """The failure detector says that `peer` went down or came up.

        A peer that lost anything (it crashed, or its links did) must be reported down before it is
        reported up: whatever is sent meanwhile is lost.
        """
        if not isinstance(peer, int) or peer == self.node or not 0 <= peer < self._nodes:
            raise LocalError(f"not a peer: {peer}", where=f"node {self.node}")
        if self._live[peer] == up:
            return
        self._forget(now_us)
        before = self._child
        self._live[peer] = up
        self._look_around()
        batches: dict[int, list[CubeMessage]] = {}
        for copy in self._kept.values():
            served = copy.height
            origin = copy.message.id[0]
            if origin in self._takes_all or self._head(origin) == self._self:
                copy.height = self.dimension
            for level in range(copy.postponed + 1, copy.height + 1):
                if level > served or self._child[level] != before[level]:
                    batches.setdefault(level, []).append(copy.message)
        self._send(batches, out)

    def on_timer(self, now_us: int, name: str, out: CubeOutbox) -> None:
        raise AssertionError("can't happen: VCube sets no timer")

    # ---- questions ------------------------------------------------------------------------------

    def explain(self, message: MessageId) -> Fate:
        origin, seq = message
        if not isinstance(origin, int) or not 0 <= origin < self._nodes:
            return Fate("unknown")
        copy = self._pending.get((origin, seq))
        if copy is not None:
            past = copy.message.past if seq == 1 else ((origin, seq - 1), *copy.message.past)
            missing = tuple(id for id in past if self._clock[id[0]] < id[1])
            return Fate("waiting", missing, copy.since_us)
        return Fate("delivered" if seq <= self._clock[origin] else "unknown")

    @property
    def counters(self) -> Counters:
        """What the clock tells is not counted beside it."""
        sent, delivered = self._clock[self._self], sum(self._clock)
        return Counters(
            broadcast=sent,
            received=delivered - sent + len(self._pending),
            delivered=delivered,
            duplicate=self.duplicates,
            refused=self.refused,
        )

    def gauges(self, now_us: int) -> dict[str, int]:
        return {
            "pending": len(self._pending),
            "postponed": sum(copy.postponed > 0 for copy in self._pending.values()),
            "kept": len(self._kept),
        }

    # ---- arrivals -------------------------------------------------------------------------------

    def _refuse(self, source: NodeId, packet: Packet) -> None:
        """Before anything is changed: what no correct peer sends."""
        me = self._self
        problem = packet.problem(self._nodes, self.dimension, (me, self._clock[me]))
        if problem:
            self.refused += 1
            raise RemoteError(problem, where=f"node {self.node}, packet from {source}")

    def _arrive(self, now_us: int, message: CubeMessage, height: int, out: CubeOutbox) -> None:
        id, causes = message.id, iter(message.past)
        cause = self._undelivered(id, causes)
        if cause is None:
            self._deliver(message, out)
        elif id in self._pending:
            self._again(now_us, message, height, out)
            return
        out.receives.append(message)
        if id[0] in self._takes_all:
            height = self.dimension
        woken = self._advance(id)
        # What is delivered has been received: without an undelivered cause nothing is held back.
        if cause is None and not woken:
            if self._keep_us:
                self._keep(now_us, message, causes, height)
            self._serve(message, 0, height, out)
            return
        copy = self._keep(now_us, message, causes, height)
        copy.postponed = height
        if cause is not None:
            self._pending[id] = copy
            self._waiting.setdefault(cause, []).append(copy)
        if woken:
            self._release([*woken, copy], out)
        else:
            self._hold_back(copy)
            self._serve(message, copy.postponed, height, out)

    def _again(self, now_us: int, message: CubeMessage, height: int, out: CubeOutbox) -> None:
        """A duplicate may bring a larger share of the tree: its first receiver has failed.

        In the single tree a node's own message comes back once, with the share that is its own.
        Heights fall along every path, so this ends.
        """
        self.duplicates += 1
        copy = self._kept.get(message.id) or self._keep(now_us, message, iter(()), 0)
        if height > copy.height:
            self._serve(message, copy.height, height, out)
            copy.height = height

    def _advance(self, id: Entry) -> list[_Copy]:
        """The messages received without a gap, `vector_max` of the paper, are those delivered and
        those pending that are not early (lines 16 and 17). What waited for the ones that join."""
        origin, seq = id
        if self._clock[origin] < seq - 1 and not self._has_passed((origin, seq - 1)):
            self._early.add(id)
            return []
        woken = self._awaiting.pop(id, [])
        while self._early and (origin, seq + 1) in self._early:
            seq += 1
            self._early.remove((origin, seq))
            woken += self._awaiting.pop((origin, seq), ())
        return woken

    def _has_passed(self, id: Entry) -> bool:
        return self._clock[id[0]] >= id[1] or (id in self._pending and id not in self._early)

    def _blocked(self, message: CubeMessage, limit: int) -> tuple[int, Entry]:
        """How many of the clusters 1..limit must wait, and for which arrival (line 26).

        A missing cause blocks the clusters that this node serves in the cause's own tree. The
        entries that the compression left out are those of the origin's previous message: they
        block what they block for that one.
        """
        if not limit or not self._aggregates:
            return 0, message.id
        if message.id in self._early:
            return limit, message.id
        (origin, seq), worst, awaited = message.id, 0, message.id
        if self._clock[origin] < seq - 1:
            previous = self._pending[origin, seq - 1]
            worst, awaited = previous.postponed, previous.awaited
        me, heights, clock = self._self, self._served_heights(), self._clock
        for entry in message.past:
            if worst >= limit:
                return limit, awaited
            origin, seq = entry
            if clock[origin] < seq:
                height = heights[origin ^ me]
                if height > worst and not self._has_passed(entry):
                    worst, awaited = height, entry
        return min(worst, limit), awaited

    def _hold_back(self, copy: _Copy) -> None:
        """From as many of its clusters as still must wait."""
        copy.postponed, copy.awaited = self._blocked(copy.message, copy.postponed)
        if copy.postponed:
            self._awaiting.setdefault(copy.awaited, []).append(copy)

    # ---- sending --------------------------------------------------------------------------------

    def _release(self, copies: list[_Copy], out: CubeOutbox) -> None:
        """Send what is no longer held back; the rest waits for its next missing cause."""
        judged: list[tuple[int, int, _Copy]] = []
        for copy in sorted(copies, key=_BY_ID):  # a message after the previous one of its origin
            judged.append((copy.order, copy.postponed, copy))
            self._hold_back(copy)
        batches: dict[int, list[CubeMessage]] = {}
        # In the order of arrival, as Algorithm 2 reads `pending`: what has just arrived is last.
        for _, before, copy in sorted(judged):
            for level in range(copy.postponed + 1, before + 1):
                batches.setdefault(level, []).append(copy.message)
        self._send(batches, out)

    def _serve(self, message: CubeMessage, served: int, height: int, out: CubeOutbox) -> None:
        """One message to the clusters served+1..height."""
        alone = (message,)
        for level in range(served + 1, height + 1):
            child = self._child[level]
            if child != NO_NODE:
                out.sends.append((child, Packet(level - 1, alone)))

    def _send(self, batches: dict[int, list[CubeMessage]], out: CubeOutbox) -> None:
        """To the child in each cluster its messages, the lowest cluster first."""
        for level, messages in sorted(batches.items()):
            child = self._child[level]
            if child != NO_NODE:
                alone = [[message] for message in messages]
                packed = pack(messages, self._mtu_bytes) if self._aggregates else alone
                out.sends += [(child, Packet(level - 1, tuple(batch))) for batch in packed]

    # ---- keeping, for children that fail --------------------------------------------------------

    def _keep(
        self, now_us: int, message: CubeMessage, causes: Iterator[Entry], height: int
    ) -> _Copy:
        self._order += 1
        copy = _Copy(message, now_us, causes, self._order, height, 0, message.id)
        if self._keep_us:
            self._kept[message.id] = copy
            self._by_age.append(copy)
        return copy

    def _forget(self, now_us: int) -> None:
        while self._by_age and self._by_age[0].since_us + self._keep_us <= now_us:
            del self._kept[self._by_age.popleft().message.id]

    # ---- deliveries -----------------------------------------------------------------------------

    def _deliver(self, message: CubeMessage, out: CubeOutbox) -> None:
        """A message, and all that this makes ready (lines 29-33)."""
        waiting, ready = self._waiting, [message]
        for message in ready:  # it grows while it is walked through
            origin, seq = id = message.id
            self._clock[origin] = seq
            self._news.append(id)
            if id in waiting:
                # Any order will do; this one does not depend on what else they waited for.
                for copy in sorted(waiting.pop(id), key=_BY_ID):
                    cause = self._undelivered(copy.message.id, copy.causes)
                    if cause is None:
                        del self._pending[copy.message.id]
                        ready.append(copy.message)
                    else:
                        waiting.setdefault(cause, []).append(copy)
        out.deliveries += ready
        if len(self._news) > NEWS_PER_NODE * self._nodes:
            self._news[:] = self._latest()

    def _undelivered(self, id: Entry, causes: Iterator[Entry]) -> Entry | None:
        """The next cause that is not delivered yet. What is delivered is closed under causes, so
        the entries that changed, and the previous message of the origin, are all to look at."""
        clock = self._clock
        origin, seq = id
        if clock[origin] < seq - 1:
            return (origin, seq - 1)
        for cause in causes:
            origin, seq = cause
            if clock[origin] < seq:
                return cause
        return None

    def _take_past(self) -> tuple[Entry, ...]:
        past = tuple(sorted(self._latest()))
        self._news.clear()
        return past

    def _latest(self) -> Collection[Entry]:
        """Of each origin in the news the last entry: that of the clock."""
        return {entry[0]: entry for entry in self._news}.values()

    # ---- who serves whom ------------------------------------------------------------------------

    def _look_around(self) -> None:
        """What follows from who is alive: the child in each cluster (cluster 0 is the node itself),
        the root of the one tree, and the origins whose messages this node sends to the whole cube:
        all for that root, else those that are down. Nobody above repairs what that cut off."""
        me, live, levels = self._self, self._live, range(1, self.dimension + 1)
        self._child = [NO_NODE] + [first_live(me, level, live) for level in levels]
        self._one_root = self._root if self._root is not None and live[self._root] else None
        is_root = self._one_root == me
        self._takes_all = frozenset(i for i, up in enumerate(live) if is_root or not up)
        self._heights = b""

    def _head(self, origin: int) -> int:
        """The root of the tree that the origin's messages travel over."""
        return origin if self._one_root is None else self._one_root

    def _served_heights(self) -> bytes:
        """How many clusters this node serves for the messages of an origin, by distance."""
        if not self._heights:
            self._heights = heights_by_distance(self._self, self._live, self._one_root)
        return self._heights
