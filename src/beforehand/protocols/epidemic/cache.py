"""The message cache of a node (store-carry-forward): the messages that it holds and offers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Literal

from beforehand.protocols.contract.base import Message, MessageId, NodeId
from beforehand.protocols.epidemic.draws import Draws
from beforehand.protocols.epidemic.frames import by_seq
from beforehand.protocols.epidemic.shares import Shares
from beforehand.protocols.epidemic.sizes import held_bytes, held_bytes_sum
from beforehand.protocols.orders.order import LONG_AHEAD, PURGE_AT_MIN

Eviction = Literal["oldest", "random", "shares"]
"""`shares`: see `protocols.epidemic.shares`."""
EVICTED_MAX = 1024
"""How many evicted ids the node remembers between two link-ups."""


class Cache:
    """The held messages, in the order in which they were stored.

    It holds at most `capacity` messages, which take at most `bytes_max` bytes together
    (`protocols.epidemic.sizes.held_bytes`). `live_ids` leaves out expired messages. They are
    removed when the cache has doubled or is full, so that the cost per message stays constant.
    """

    def __init__(
        self,
        capacity: int | None,
        eviction: Eviction,
        rng: Draws,
        bytes_max: int | None = None,
        *,
        own: NodeId = "",
        has_delivered: Callable[[MessageId], bool] = lambda _: False,
    ) -> None:
        """own, has_delivered: the node and its deliveries, for the eviction `shares`."""
        self.entries: dict[MessageId, tuple[int, Message]] = {}
        """id -> (rank, message); ranks grow in the order of storing."""
        self._capacity = capacity
        self._bytes_max = bytes_max
        self._bytes = 0  # counted only if `bytes_max` is set
        self.is_bounded = capacity is not None or bytes_max is not None
        self._places: list[MessageId] | None = (
            [] if eviction == "random" and self.is_bounded else None
        )
        self._has_shares = eviction == "shares" and self.is_bounded
        self._own, self._has_delivered = own, has_delivered
        self.shares: Shares | None = None
        """The shares of the members, once the cache was full. They follow from the entries."""
        self._rng = rng
        self._rank = 0
        self._purge_at = PURGE_AT_MIN
        self._earliest_us = LONG_AHEAD
        """A lower bound of the deadlines of all held messages."""

    def add(self, messages: Sequence[Message]) -> None:
        rank, entries, earliest_us = self._rank, self.entries, self._earliest_us
        for message in messages:
            rank += 1
            entries[message.id] = (rank, message)
            if (deadline_us := message.deadline_us) < earliest_us:
                earliest_us = deadline_us
        self._rank, self._earliest_us = rank, earliest_us
        if self._bytes_max is not None:
            self._bytes += held_bytes_sum(messages)
        if self.shares is not None:
            self.shares.add(messages)
        if self._places is not None:
            self._places += [message.id for message in messages]
            if len(self._places) > 2 * len(entries):
                self._places = list(entries)  # the other places belong to removed messages

    def gauges(self) -> dict[str, int]:
        return {"stored": len(self.entries), "places": len(self._places or ())}

    def live_ids(self, horizon_us: int) -> frozenset[MessageId]:
        if horizon_us < self._earliest_us:
            return frozenset(self.entries)
        return frozenset([i for i, (_, m) in self.entries.items() if m.deadline_us > horizon_us])

    def is_live(self, id: MessageId, horizon_us: int) -> bool:
        """Return whether the message is held and not expired."""
        entry = self.entries.get(id)
        return entry is not None and entry[1].deadline_us > horizon_us

    def pick(self, ids: Iterable[MessageId], horizon_us: int) -> list[Message]:
        """Return the messages of `ids` that are held and not expired, the longest stored first."""
        entries = self.entries
        found = [entries[id] for id in ids if self.is_live(id, horizon_us)]
        found.sort()  # ranks are unique, so messages are never compared
        return [message for _, message in found]

    def pick_by_seq(self, ids: Collection[MessageId], horizon_us: int) -> list[Message]:
        """Return the same messages in the order of (seq, origin), which does not depend on when
        this node stored them."""
        entries = self.entries
        found = [id for id in ids if self.is_live(id, horizon_us)]
        return [entries[id][1] for id in by_seq(found)]

    def purge(self, horizon_us: int) -> list[MessageId]:
        """Remove expired messages, if the cache has doubled since the last purge. Return their
        ids."""
        if len(self.entries) < self._purge_at:
            return []
        expired: list[MessageId] = []
        # A full cache purges at every message, so skip the scan if no message can have expired.
        if self._earliest_us <= horizon_us:
            held = self.entries.items()
            expired = [id for id, (_, message) in held if message.deadline_us <= horizon_us]
            self._remove(expired)
            self._earliest_us = self.earliest_us()
        self._purge_at = max(PURGE_AT_MIN, 2 * len(self.entries))
        return expired

    def evict(self, horizon_us: int) -> list[MessageId]:
        """Remove messages until the cache is within its bounds, expired ones first. Return their
        ids."""
        if not self._is_too_full():
            return []
        self._purge_at = 0
        gone = self.purge(horizon_us)
        while self._is_too_full():
            id = self._choose()
            self._remove([id])
            gone.append(id)
        return gone

    def earliest_us(self) -> int:
        """Return the earliest deadline of all held messages."""
        return min(
            [message.deadline_us for _, message in self.entries.values()], default=LONG_AHEAD
        )

    def _is_too_full(self) -> bool:
        if self._bytes_max is not None and self._bytes > self._bytes_max:
            return True
        return self._capacity is not None and len(self.entries) > self._capacity

    def _remove(self, ids: Iterable[MessageId]) -> None:
        if self._bytes_max is None and self.shares is None:
            for id in ids:
                del self.entries[id]
            return
        for id in ids:
            message = self.entries.pop(id)[1]
            if self._bytes_max is not None:
                self._bytes -= held_bytes(message)
            if self.shares is not None:
                self.shares.remove(message)

    def _choose(self) -> MessageId:
        """Return the id of the message to evict next."""
        if self._has_shares:
            if self.shares is None:
                self.shares = Shares(self._own, self._has_delivered, self.entries)
            return self.shares.choose()
        return next(iter(self.entries)) if self._places is None else self._pop_random()

    def _pop_random(self) -> MessageId:
        """Choose a held message uniformly: draw places until one belongs to a held message."""
        assert self._places is not None
        if len(self._places) > 2 * len(self.entries):
            self._places = list(self.entries)
        while True:
            index = self._rng.randrange(len(self._places))
            self._places[index], self._places[-1] = self._places[-1], self._places[index]
            id = self._places.pop()
            if id in self.entries:
                return id


class Evicted:
    """The ids of messages that were evicted since the last link-up, in bounded memory.

    After more than EVICTED_MAX evictions, every delivered message that is not held counts as
    evicted, and only the latest undelivered ids are remembered. An undelivered message whose id was
    forgotten then counts as new, though the node may have held it.
    """

    def __init__(self, has_delivered: Callable[[MessageId], bool]) -> None:
        self.ids: dict[MessageId, None] = {}
        """The evicted ids, the latest last."""
        self._has_delivered = has_delivered
        self._is_more = False

    def add(self, ids: Sequence[MessageId]) -> None:
        self.ids.update(dict.fromkeys(ids))
        if len(self.ids) > EVICTED_MAX:
            self._is_more = True
            undelivered = [id for id in self.ids if not self._has_delivered(id)]
            self.ids = dict.fromkeys(undelivered[-EVICTED_MAX // 2 :])

    def clear(self) -> None:
        self.ids.clear()
        self._is_more = False

    def has(self, id: MessageId) -> bool:
        return id in self.ids or (self._is_more and self._has_delivered(id))

    def taken_from(self, lacking: frozenset[MessageId]) -> frozenset[MessageId]:
        """Return the ids of `lacking`, none of which is held, that were not evicted."""
        if self.ids:
            lacking = lacking.difference(self.ids)
        if self._is_more:
            lacking = frozenset([id for id in lacking if not self._has_delivered(id)])
        return lacking
