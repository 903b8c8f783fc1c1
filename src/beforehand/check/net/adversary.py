"""A hostile member that sends frames of every kind, with ids and messages that it saw or invented.

It holds no other member's key, so it cannot sign for other members. It requests more than it
accepts, announces messages that it does not hold, answers requests that no peer sent, and replays
messages that it received.
"""

from __future__ import annotations

import random
from typing import Any

from beforehand.protocols.contract.base import (
    Counters,
    Message,
    MessageId,
    MessageStatus,
    NodeId,
    Timer,
)
from beforehand.protocols.contract.needs import Link, Needs
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.contract.tables import Rows, Table
from beforehand.protocols.epidemic.frames import (
    Announce,
    Data,
    Digest,
    Frame,
    Missing,
    NotHeld,
    Push,
    Request,
    SyncHello,
    Want,
)

SEEN_MAX = 16
FRAMES_MAX = 400
"""The adversary's frame budget. After that it sends nothing, so that the net can come to rest."""


class Adversary:
    """A node that follows no protocol."""

    needs = Needs({"contact": Link()})
    tables: tuple[Table, ...] = ()

    def __init__(self, node: int, seed: int) -> None:
        self.node: NodeId = node
        self.counters = Counters()
        self._rng = random.Random(seed)
        self._seen: list[Message] = []
        self._ids: list[MessageId] = [(node, 1 << 40)]
        self._peers: dict[NodeId, None] = {}
        self._left = FRAMES_MAX
        self._is_asked = False
        """Whether a peer asked for causes, as only orders with a floor do."""

    def on_broadcast(
        self, now_us: int, payload: bytes, out: Outbox[Frame], lifetime_us: int | None = None
    ) -> MessageId:
        raise AssertionError("can't happen: it has nothing to broadcast")

    def on_message(self, now_us: int, source: NodeId, frame: Any, out: Outbox[Frame]) -> None:
        self._ids = (self._ids + sorted(getattr(frame, "ids", ()), key=str))[-SEEN_MAX:]
        self._is_asked = self._is_asked or isinstance(frame, Missing)
        for message in getattr(frame, "messages", ()):
            self._seen = [*self._seen, message][-SEEN_MAX:]
            self._ids = [*self._ids, message.id, *message.past][-SEEN_MAX:]
        self._send_frame(now_us, out)

    def on_link(self, now_us: int, peer: NodeId, up: bool, out: Outbox[Frame]) -> None:
        if up:
            self._peers[peer] = None
            self._send_frame(now_us, out)
        else:
            self._peers.pop(peer, None)

    def on_timer(self, now_us: int, timer: Timer, out: Outbox[Frame]) -> None:
        """Do nothing: the adversary sets no timers."""

    def restore(self, now_us: int, rows: Rows, out: Outbox[Frame]) -> None:
        """Do nothing: the adversary saves nothing."""

    def explain(self, message: MessageId) -> MessageStatus:
        return MessageStatus("unknown")

    def gauges(self, now_us: int) -> dict[str, int]:
        return {"unfolded": 0}

    def holds(self, now_us: int) -> frozenset[MessageId]:
        return frozenset()

    def _send_frame(self, now_us: int, out: Outbox[Frame]) -> None:
        rng = self._rng
        for peer in [peer for peer in self._peers if rng.random() < 0.7]:
            if self._left > 0:
                self._left -= 1
                out.sends.append((peer, self._frame(now_us, rng)))

    def _frame(self, now_us: int, rng: random.Random) -> Frame:
        ids = frozenset(self._some_ids(now_us, rng))
        if self._is_asked and rng.random() < 0.4:
            known = frozenset(self._ids)
            return rng.choice((Missing(ids), NotHeld(known, ids - known)))
        kind = rng.choice((Announce, Request, Data, Push, Digest, Want, SyncHello))
        if kind is Announce or kind is Request:
            return kind(0, ids)
        if kind is Data:
            return Data(self._messages(now_us, rng), ids)
        if kind is Push:
            return Push(self._messages(now_us, rng))
        versions = dict(sorted(ids, key=str))
        return kind(frozenset(versions.items()))  # type: ignore[call-arg, arg-type]

    def _some_ids(self, now_us: int, rng: random.Random) -> list[MessageId]:
        made_up = (rng.randrange(5), now_us + rng.randrange(100_000_000))
        pool = [*self._ids, made_up]
        return rng.choices(pool, k=rng.choice((0, 1, 2, 5)))

    def _messages(self, now_us: int, rng: random.Random) -> tuple[Message, ...]:
        """Return a message that the adversary saw, or an invented one without a valid proof. The
        origin of an invented message may be another member."""
        if self._seen and rng.random() < 0.6:
            return (rng.choice(self._seen),)
        past = tuple(dict.fromkeys(self._some_ids(now_us, rng)))
        id = (rng.randrange(5), now_us + rng.randrange(100_000_000))
        return (Message(id, past, bytes(rng.choice((0, 10, 1000))), b"no proof"),)
