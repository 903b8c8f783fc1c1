"""An adapter from node names to node numbers.

The core numbers its nodes, because a number is an index in its vector clocks. Applications and
links use names. Frames are not converted: only cores read them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic

import msgspec

from beforehand.errors import RemoteError
from beforehand.protocols.contract.base import (
    Broadcaster,
    Counters,
    FrameT,
    Message,
    MessageId,
    MessageStatus,
    NodeId,
    Timer,
)
from beforehand.protocols.contract.needs import Needs
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.contract.tables import Rows, Table


class NamedCore(Generic[FrameT]):
    """A core with numbered nodes, addressed by names."""

    def __init__(self, core: Broadcaster[FrameT], names: Sequence[str]) -> None:
        """names: the name of each node, by number."""
        assert isinstance(core.node, int), "can't happen: such a core needs no names"
        self.node: NodeId = names[core.node]
        self._core = core
        self._names = tuple(names)
        self._numbers = {name: number for number, name in enumerate(names)}
        self._inner: Outbox[FrameT] = Outbox()

    @property
    def needs(self) -> Needs:
        return self._core.needs

    @property
    def tables(self) -> tuple[Table, ...]:
        return self._core.tables

    @property
    def counters(self) -> Counters:
        return self._core.counters

    def on_broadcast(
        self, now_us: int, payload: bytes, out: Outbox[FrameT], lifetime_us: int | None = None
    ) -> MessageId:
        with self._carrying(out) as inner:
            return self._named(self._core.on_broadcast(now_us, payload, inner, lifetime_us))

    def on_message(self, now_us: int, source: NodeId, frame: FrameT, out: Outbox[FrameT]) -> None:
        if source not in self._numbers:
            raise RemoteError(f"not a member: {source}", where=f"node {self.node}")
        with self._carrying(out) as inner:
            self._core.on_message(now_us, self._numbers[source], frame, inner)

    def on_link(self, now_us: int, peer: NodeId, up: bool, out: Outbox[FrameT]) -> None:
        """Pass link events of members to the core; ignore those of other peers.

        `on_message` rejects the frames of other peers.
        """
        if peer in self._numbers:
            with self._carrying(out) as inner:
                self._core.on_link(now_us, self._numbers[peer], up, inner)

    def on_timer(self, now_us: int, timer: Timer, out: Outbox[FrameT]) -> None:
        with self._carrying(out) as inner:
            self._core.on_timer(now_us, timer, inner)

    def restore(self, now_us: int, rows: Rows, out: Outbox[FrameT]) -> None:
        with self._carrying(out) as inner:
            self._core.restore(now_us, rows, inner)

    def explain(self, message: MessageId) -> MessageStatus:
        origin, seq = message
        if origin not in self._numbers:
            return MessageStatus("unknown")
        status = self._core.explain((self._numbers[origin], seq))
        missing = tuple(map(self._named, status.missing))
        return msgspec.structs.replace(status, missing=missing)

    def gauges(self, now_us: int) -> dict[str, int]:
        return self._core.gauges(now_us)

    @contextmanager
    def _carrying(self, out: Outbox[FrameT]) -> Iterator[Outbox[FrameT]]:
        """Yield an outbox for the core, and copy its content to `out` with names.

        That is done even if the input raises an error, because the passing of time alone may cause
        effects.
        """
        inner = self._inner
        try:
            yield inner
        finally:
            out.saves += inner.saves
            out.sends += [(self._name(peer), frame) for peer, frame in inner.sends]
            out.deliveries += map(self._message, inner.deliveries)
            out.timers += inner.timers
            out.receives += map(self._message, inner.receives)
            out.losses += [(kind, self._named(message)) for kind, message in inner.losses]
            inner.clear()

    def _name(self, number: NodeId | None) -> NodeId | None:
        return self._names[number] if isinstance(number, int) else number

    def _named(self, message: MessageId) -> MessageId:
        origin, seq = message
        assert isinstance(origin, int)
        return self._names[origin], seq

    def _message(self, message: Message) -> Message:
        """Return the message as the application sees it: with the name of its origin, and without
        causes."""
        return Message(self._named(message.id), (), message.payload)


if TYPE_CHECKING:
    _is_broadcaster: type[Broadcaster[object]] = NamedCore
