"""Which message a full cache evicts, so that the flood of one member evicts only its own messages.

A member's *weight* is the bytes that its messages take (`sizes.held_bytes`); the node's own
messages count with half. The fair share is the weight of all members divided by their number, or by
64 if they are more. The rule:

1. Of the members above the fair share that have pending messages, the one with the largest weight
   loses its pending message of the smallest seq.
2. If there is none, the member with the largest weight loses its message of the smallest seq.

Ties go to the smallest name. The choice depends only on the held messages and on which of them the
node has delivered. So a cache builds its `Shares` when it is full for the first time, and a cache
with room pays nothing for them.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Mapping

from beforehand.protocols.contract.base import Message, MessageId, NodeId
from beforehand.protocols.epidemic.sizes import held_bytes

MEMBERS_MAX = 64
"""Of more members, the fair share is that of 64. So at most 64 members are above it."""
SLACK = 64
"""A queue with this many removed entries, besides as many as it has valid ones, is made anew."""

Held = Mapping[MessageId, tuple[int, Message]]
Heavy = tuple[int, str, NodeId]
"""(negative weight, name, origin): the heaviest is the smallest."""


class Shares:
    """The weights of the members, and the messages of each by their seq."""

    def __init__(self, own: NodeId, has_delivered: Callable[[MessageId], bool], held: Held) -> None:
        """held: the entries of the cache."""
        self._own, self._has_delivered, self._held = own, has_delivered, held
        self._make([message for _, message in held.values()])

    def _make(self, messages: Collection[Message]) -> None:
        self._bytes: dict[NodeId, int] = {}
        self._pending: dict[NodeId, list[int]] = {}
        """Heaps of seqs: messages that were pending when the node last looked."""
        self._delivered: dict[NodeId, list[int]] = {}
        """Heaps of seqs: delivered messages."""
        self._heaviest: list[Heavy] = []
        self._queued = self._total = 0
        self.add(messages)

    def add(self, messages: Iterable[Message]) -> None:
        """Count messages that are now held."""
        changed = set()
        for message in messages:
            origin, seq = message.id
            size = held_bytes(message)
            self._total += size
            self._bytes[origin] = self._bytes.get(origin, 0) + size
            heapq.heappush(self._pending.setdefault(origin, []), seq)
            self._queued += 1
            changed.add(origin)
        for origin in changed:
            self._note(origin)
        if self._queued > 2 * len(self._held) + SLACK:
            self._make([message for _, message in self._held.values()])

    def remove(self, message: Message) -> None:
        """Stop counting a message that the cache has removed."""
        origin, size = message.id[0], held_bytes(message)
        self._total -= size
        self._bytes[origin] -= size
        if self._bytes[origin]:
            self._note(origin)
        else:
            heaps = [heap.pop(origin, []) for heap in (self._pending, self._delivered)]
            self._queued -= sum(map(len, heaps))
            del self._bytes[origin]

    def choose(self) -> MessageId:
        """Return the id of the held message to evict."""
        fair = self._total // min(len(self._bytes), MEMBERS_MAX)
        looked_at: list[Heavy] = []
        chosen: MessageId | None = None
        while chosen is None and (top := self._pop_heaviest()) is not None:
            looked_at.append(top)
            if -top[0] <= fair:
                break
            self._look(top[2])
            if pending := self._pending.get(top[2]):
                chosen = top[2], pending[0]
        if chosen is None:
            origin = looked_at[0][2]
            self._look(origin)
            heaps = self._pending.get(origin), self._delivered.get(origin)
            chosen = origin, min(heap[0] for heap in heaps if heap)
        for heavy in looked_at:
            heapq.heappush(self._heaviest, heavy)
        return chosen

    def _weight(self, origin: NodeId) -> int:
        size = self._bytes.get(origin, 0)
        return size // 2 if origin == self._own else size

    def _note(self, origin: NodeId) -> None:
        """Queue the changed weight of a member."""
        heapq.heappush(self._heaviest, (-self._weight(origin), str(origin), origin))
        if len(self._heaviest) > 2 * len(self._bytes) + SLACK:
            self._heaviest = [(-self._weight(one), str(one), one) for one in self._bytes]
            heapq.heapify(self._heaviest)

    def _pop_heaviest(self) -> Heavy | None:
        """Remove and return the heaviest member that is in the queue; None if it is empty."""
        while self._heaviest:
            top = heapq.heappop(self._heaviest)
            while self._heaviest and self._heaviest[0] == top:
                heapq.heappop(self._heaviest)
            if top[2] in self._bytes and -top[0] == self._weight(top[2]):
                return top
        return None

    def _look(self, origin: NodeId) -> None:
        """Bring the tops of a member's two heaps up to date."""
        pending = self._pending.setdefault(origin, [])
        delivered = self._delivered.setdefault(origin, [])
        while pending and (
            (is_gone := (origin, pending[0]) not in self._held)
            or self._has_delivered((origin, pending[0]))
        ):
            seq = heapq.heappop(pending)
            if is_gone:
                self._queued -= 1
            else:
                heapq.heappush(delivered, seq)
        while delivered and (origin, delivered[0]) not in self._held:
            heapq.heappop(delivered)
            self._queued -= 1
