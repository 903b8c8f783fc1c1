"""Causal aggregation broadcast over VCube's spanning trees (VCU, Algorithms 1 and 2).

A node may receive a message before some of its causes. It then holds the message back from exactly
those children to which it must also send a missing cause: they could not deliver the message
anyway. When the last such cause arrives, the node sends all these messages on as one packet.

The node indexes a held-back message under *one* missing cause, the one that blocks the most
clusters, so an arrival touches only the messages that waited for it. A missing cause blocks a
prefix of the clusters, because the children of a node are the lowest clusters in any tree. So one
number per message says which clusters are still to be served.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from operator import attrgetter

import msgspec

from beforehand.protocols.contract.base import NodeId
from beforehand.protocols.vcube.frames import Entry, Packet, VCubeMessage, VCubeOutbox, pack
from beforehand.protocols.vcube.topology import NO_NODE, dimension, first_live, heights_by_distance

CAUSES_PER_NODE = 2
"""With more news than this per node, a node keeps only the latest entry of each origin. This bounds
the memory of a node that never broadcasts."""

_BY_ID = attrgetter("message.id")


class Copy(msgspec.Struct, gc=False):
    """A message that this node has yet to deliver or forward, or keeps in order to resend it."""

    message: VCubeMessage
    since_us: int
    causes: Iterator[Entry]
    """The causes not checked yet. A delivered cause stays delivered, so none is checked twice."""
    order: int
    height: int
    """The node is responsible for its clusters 1..height."""
    postponed: int
    """The node has yet to send the message to its clusters 1..postponed."""
    awaited: Entry
    """The cause whose arrival the message waits for, if `postponed` is not 0."""


class Dissemination:
    """The protocol of the paper: arrivals, held-back messages and deliveries.

    The subclass `protocols.vcube.retention.Retention`, which keeps messages for nodes that fail,
    overrides the hooks for kept and delivered messages.
    """

    def __init__(
        self,
        node: int,
        nodes: int,
        *,
        aggregates: bool,
        root: int | None,
        keep_us: int,
        mtu_bytes: int,
    ) -> None:
        self.node: NodeId = node
        self.duplicates = self.refused = 0
        self.dimension = dimension(nodes)
        self._self, self._nodes, self._root = node, nodes, root
        self._aggregates, self._keep_us, self._mtu_bytes = aggregates, keep_us, mtu_bytes
        size = 1 << self.dimension
        self._live = bytearray(1 if i < nodes else 0 for i in range(size))
        self._look_around()
        self._clock = [0] * size  # vector_clock: delivered or skipped
        self._new_causes: list[Entry] = []  # delivered since the last own broadcast
        self._pending: dict[Entry, Copy] = {}  # received, not delivered
        self._early: set[Entry] = set()  # pending, behind a gap in their origin's messages
        self._waiting: dict[Entry, list[Copy]] = {}  # pending, by the delivery they wait for
        self._awaiting: dict[Entry, list[Copy]] = {}  # postponed, by the arrival they wait for
        self._kept: dict[Entry, Copy] = {}
        self._order = 0

    # ---- arrivals -------------------------------------------------------------------------------

    def _arrive(self, now_us: int, message: VCubeMessage, height: int, out: VCubeOutbox) -> None:
        id, causes = message.id, iter(message.past)
        if id in self._pending:  # even with other causes: deliver each id at most once
            self._again(now_us, message, height, out)
            return
        cause = self._undelivered(id, causes)
        if cause is None:
            self._deliver(message, out)
        out.receives.append(message)
        if id[0] in self._takes_all:
            height = self.dimension
        may_wake = cause is not None or self._early or id in self._awaiting
        woken = self._advance(id) if may_wake else []
        # Delivered causes have been received, so without an undelivered cause nothing blocks it.
        if cause is None and not woken:
            if self._keep_us:
                self._keep(now_us, message, causes, height, out)
            if height:  # half of the nodes are leaves of a tree and serve no cluster
                self._serve(message, 0, height, out)
            return
        copy = self._keep(now_us, message, causes, height, out)
        copy.postponed = height
        if cause is not None:
            self._pending[id] = copy
            self._waiting.setdefault(cause, []).append(copy)
        if woken:
            self._release([*woken, copy], out)
        elif height:
            self._hold_back(copy)
            self._serve(message, copy.postponed, height, out)

    def _again(self, now_us: int, message: VCubeMessage, height: int, out: VCubeOutbox) -> None:
        """Handle a duplicate, which may make this node responsible for more clusters.

        That happens when the first receiver in a cluster has failed. In the single tree a node's
        own message comes back once, with the clusters that the node must serve. Heights decrease
        along every path, so this terminates.
        """
        self.duplicates += 1
        copy = self._kept.get(message.id) or self._keep_late(now_us, message, out)
        if copy.message is not message and copy.message != message:
            self._refuse_second(message, out)
        elif height > copy.height:
            self._serve(message, copy.height, height, out)
            self._raise(copy, height, out)

    def _advance(self, id: Entry) -> list[Copy]:
        """Extend the gap-free messages by `id`, and return the copies that waited for them.

        The messages received without a gap, `vector_max` of the paper, are those delivered and
        those pending that are not early (lines 16 and 17).
        """
        origin, seq = id
        if self._clock[origin] < seq - 1 and not self._is_gap_free((origin, seq - 1)):
            self._early.add(id)
            return []
        woken = self._awaiting.pop(id, [])
        while self._early and (origin, seq + 1) in self._early:
            seq += 1
            self._early.remove((origin, seq))
            woken += self._awaiting.pop((origin, seq), ())
        return woken

    def _is_gap_free(self, id: Entry) -> bool:
        return self._clock[id[0]] >= id[1] or (id in self._pending and id not in self._early)

    def _blocked(self, message: VCubeMessage, limit: int) -> tuple[int, Entry]:
        """Return how many of the clusters 1..limit must wait, and for which arrival (line 26).

        A missing cause blocks the clusters that this node serves in the cause's own tree. The
        entries that the compression left out equal those of the origin's previous message. They
        block the same clusters as for that message.
        """
        if not limit or not self._aggregates:
            return 0, message.id
        if message.id in self._early:
            return limit, message.id
        (origin, seq), worst, awaited = message.id, 0, message.id
        if self._clock[origin] < seq - 1:
            previous = self._pending[origin, seq - 1]
            worst, awaited = previous.postponed, previous.awaited
        me, clock = self._self, self._clock
        heights = self._heights or self._served_heights()
        for entry in message.past:
            if worst >= limit:
                return limit, awaited
            origin, seq = entry
            if clock[origin] < seq:
                height = heights[origin ^ me]
                if height > worst and not self._is_gap_free(entry):
                    worst, awaited = height, entry
        return min(worst, limit), awaited

    def _hold_back(self, copy: Copy) -> None:
        """Hold the message back from those of its postponed clusters that must still wait."""
        copy.postponed, copy.awaited = self._blocked(copy.message, copy.postponed)
        if copy.postponed:
            self._awaiting.setdefault(copy.awaited, []).append(copy)

    # ---- sending --------------------------------------------------------------------------------

    def _release(self, copies: list[Copy], out: VCubeOutbox) -> None:
        """Send the copies to the clusters not blocked any more; queue them for the other clusters
        under their next missing cause."""
        judged: list[tuple[int, int, Copy]] = []
        for copy in sorted(copies, key=_BY_ID):  # after the previous message of the same origin
            judged.append((copy.order, copy.postponed, copy))
            self._hold_back(copy)
        batches: dict[int, list[VCubeMessage]] = {}
        # In order of arrival, as Algorithm 2 reads `pending`: the newest arrival comes last.
        for _, before, copy in sorted(judged):
            for level in range(copy.postponed + 1, before + 1):
                batches.setdefault(level, []).append(copy.message)
        self._send(batches, out)

    def _serve(self, message: VCubeMessage, served: int, height: int, out: VCubeOutbox) -> None:
        """Send one message to the clusters served+1..height."""
        alone, children, sends = (message,), self._child, out.sends
        for level in range(served + 1, height + 1):
            child = children[level]
            if child != NO_NODE:
                sends.append((child, Packet(level - 1, alone)))

    def _send(self, batches: dict[int, list[VCubeMessage]], out: VCubeOutbox) -> None:
        """Send each cluster's messages to the child in it, the lowest cluster first."""
        for level, messages in sorted(batches.items()):
            child = self._child[level]
            if child != NO_NODE:
                out.sends += [(child, packet) for packet in self._packets(level - 1, messages)]

    def _packets(self, height: int, messages: list[VCubeMessage]) -> list[Packet]:
        if len(messages) == 1 or not self._aggregates:
            return [Packet(height, (message,)) for message in messages]
        return [Packet(height, tuple(batch)) for batch in pack(messages, self._mtu_bytes)]

    # ---- copies ---------------------------------------------------------------------------------

    def _keep(
        self,
        now_us: int,
        message: VCubeMessage,
        causes: Iterator[Entry],
        height: int,
        out: VCubeOutbox,
    ) -> Copy:
        self._order += 1
        copy = Copy(message, now_us, causes, self._order, height, 0, message.id)
        if self._keep_us:
            self._on_kept(copy, out)
        return copy

    def _keep_late(self, now_us: int, message: VCubeMessage, out: VCubeOutbox) -> Copy:
        """Keep a delivered message that is not kept any more, with height 0.

        The node does not remember which clusters it has served with it.
        """
        return self._keep(now_us, message, iter(()), 0, out)

    def _raise(self, copy: Copy, height: int, out: VCubeOutbox) -> None:
        copy.height = height

    # Hooks for `Retention`:

    def _on_kept(self, copy: Copy, out: VCubeOutbox) -> None: ...

    def _on_delivered(self, messages: Sequence[VCubeMessage], out: VCubeOutbox) -> None: ...

    def _refuse_second(self, message: VCubeMessage, out: VCubeOutbox) -> None:
        """Refuse a message whose id belongs to another message."""

    # ---- deliveries -----------------------------------------------------------------------------

    def _deliver(self, message: VCubeMessage, out: VCubeOutbox) -> None:
        """Deliver a message, and the pending messages that become deliverable (lines 29-33)."""
        waiting, ready = self._waiting, [message]
        for message in ready:  # the loop appends to the list
            origin, seq = id = message.id
            self._clock[origin] = seq
            self._new_causes.append(id)
            if id in waiting:
                # Any order is correct. Sorting makes it independent of their earlier waits.
                for copy in sorted(waiting.pop(id), key=_BY_ID):
                    cause = self._undelivered(copy.message.id, copy.causes)
                    if cause is None:
                        del self._pending[copy.message.id]
                        ready.append(copy.message)
                    else:
                        waiting.setdefault(cause, []).append(copy)
        out.deliveries += ready
        if self._keep_us:
            self._on_delivered(ready, out)
        if len(self._new_causes) > CAUSES_PER_NODE * self._nodes:
            self._new_causes[:] = self._latest()

    def _wake(self, id: Entry, out: VCubeOutbox) -> None:
        """Deliver the messages that wait for an own message.

        Their origins named the message before this node broadcast it; no correct node does that.
        """
        for copy in sorted(self._waiting.pop(id, ()), key=_BY_ID):
            cause = self._undelivered(copy.message.id, copy.causes)
            if cause is None:
                del self._pending[copy.message.id]
                self._deliver(copy.message, out)
            else:
                self._waiting.setdefault(cause, []).append(copy)
        self._release(self._awaiting.pop(id, []), out)

    def _undelivered(self, id: Entry, causes: Iterator[Entry]) -> Entry | None:
        """Return the next undelivered cause, or None.

        The delivered messages are closed under causes. So it is enough to check the previous
        message of the origin and the entries that changed.
        """
        clock = self._clock
        origin, seq = id
        if clock[origin] < seq - 1:
            return (origin, seq - 1)
        for cause in causes:
            origin, seq = cause
            if clock[origin] < seq:
                return cause
        return None

    def _past(self) -> tuple[Entry, ...]:
        """Return the causes that the next own message names."""
        return tuple(sorted(self._latest()))

    def _latest(self) -> Collection[Entry]:
        """Return the last entry of each origin in the news, which is its entry in the clock."""
        return {entry[0]: entry for entry in self._new_causes}.values()

    # ---- topology -------------------------------------------------------------------------------

    def _look_around(self) -> None:
        """Recompute the state that depends on which nodes are alive.

        - The child in each cluster; cluster 0 is the node itself.
        - The root of the single tree.
        - The origins whose messages this node sends to the whole cube: all origins if it is that
          root, else those that are down. No parent resends what the failure of an origin cut off.
        """
        me, live, levels = self._self, self._live, range(1, self.dimension + 1)
        self._child = [NO_NODE] + [first_live(me, level, live) for level in levels]
        self._one_root = self._root if self._root is not None and live[self._root] else None
        is_root = self._one_root == me
        self._takes_all = frozenset(i for i, up in enumerate(live) if is_root or not up)
        self._heights = b""

    def _head(self, origin: int) -> int:
        """Return the root of the tree that the origin's messages travel over."""
        return origin if self._one_root is None else self._one_root

    def _served(self, origin: int) -> int:
        """Return how many clusters this node serves for the messages of an origin in their tree."""
        return (self._heights or self._served_heights())[origin ^ self._self]

    def _served_heights(self) -> bytes:
        """Compute on first use, and return, how many clusters this node serves for an origin, by
        distance from it."""
        self._heights = heights_by_distance(self._self, self._live, self._one_root)
        return self._heights
