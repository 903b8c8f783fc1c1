"""Own messages of the stamped order that are being made, and the barrier after them.

A batch is atomic: a signer may fail, so a draft changes nothing in the order until all messages are
made and signed.
"""

from __future__ import annotations

from collections.abc import Mapping

from beforehand.protocols.contract.base import NodeId
from beforehand.protocols.orders.order import Lifetimes
from beforehand.protocols.orders.stamped_message import (
    NO_DIGEST,
    PAST_MAX,
    CauseKey,
    StampedMessage,
    digest_of,
    in_past_order,
)

OUTLIVING_MAX = 8
"""A message names at most this many causes that live longer than itself. More are folded into a
merge message, which is then named instead."""
RAISE_US_MAX = 60_000_000
"""A deadline is raised to that of a cause by at most this much, and by a quarter of the lifetime.
So messages of equal lifetimes cover each other, although their senders' clocks differ."""


class Draft:
    """Makes own messages one after the other. Each causally follows the one before."""

    def __init__(
        self,
        node: NodeId,
        lifetimes: Lifetimes,
        horizon_us: int,
        last_stamp: int,
        barrier: Mapping[CauseKey, int],
    ) -> None:
        """Begin with the order's barrier.

        last_stamp: the stamps of the messages are larger.
        """
        self.messages: list[StampedMessage] = []
        self.barrier = dict(barrier)
        self.previous = NO_DIGEST
        """The digest of this writer's last message."""
        self._node = node
        self._lifetimes = lifetimes
        self._horizon_us = horizon_us
        self._last_stamp = max([last_stamp, *(id[1] for id, _ in barrier)])

    def add(self, payload: bytes, lifetime_us: int) -> None:
        """Make a message with this payload, and before it the merge messages that it needs."""
        self._leave_out()
        while len(self.barrier) >= PAST_MAX:
            self._merge(list(self.barrier))
        deadline_us = self._deadline_us(lifetime_us)
        longer = [key for key, until_us in self.barrier.items() if until_us > deadline_us]
        if len(longer) > OUTLIVING_MAX:
            self._merge(in_past_order(longer))
            deadline_us = self._deadline_us(lifetime_us)
        self._make(payload, deadline_us, list(self.barrier), is_merge=False)

    def _next_stamp(self) -> int:
        return max(self._horizon_us, self._last_stamp + 1)

    def _leave_out(self) -> None:
        """Remove the causes whose deadline lies at least the skew behind the next stamp: no node
        delivers them after the next message."""
        until_us = self._next_stamp() - self._lifetimes.skew_us
        self.barrier = {key: end_us for key, end_us in self.barrier.items() if end_us > until_us}

    def _deadline_us(self, lifetime_us: int) -> int:
        stamp = self._next_stamp()
        least_us = max(self._horizon_us + lifetime_us, stamp - self._lifetimes.skew_us + 1)
        latest_us = max(self.barrier.values(), default=least_us)
        raised_us = least_us + min(RAISE_US_MAX, lifetime_us // 4)
        most_us = min(raised_us, stamp + self._lifetimes.longest_us)
        return latest_us if least_us < latest_us <= most_us else least_us

    def _merge(self, keys: list[CauseKey]) -> None:
        """Make a message that only folds the earliest of these causes. It lives as long as the
        longest of them, and names this writer's own last messages, which it must follow."""
        own = [key for key in self.barrier if key[0][0] == self._node]
        others = in_past_order(key for key in keys if key[0][0] != self._node)
        named = [*own, *others[: PAST_MAX - len(own)]]
        deadline_us = max(self.barrier[key] for key in named)
        self._make(b"", deadline_us, named, is_merge=True)

    def _make(
        self, payload: bytes, deadline_us: int, named: list[CauseKey], *, is_merge: bool
    ) -> None:
        stamp = self._last_stamp = self._next_stamp()
        named = in_past_order(named)
        message = StampedMessage(
            (self._node, stamp),
            tuple(id for id, _ in named),
            payload,
            deadline=deadline_us,
            causes=tuple((self.barrier[key], key[1]) for key in named),
            previous=self.previous,
            is_merge=is_merge,
        )
        for key in named:
            if self.barrier[key] <= deadline_us:
                del self.barrier[key]
        self.previous = digest_of(message)
        self.barrier[message.id, self.previous] = deadline_us
        self.messages.append(message)
