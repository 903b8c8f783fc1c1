"""How a net executes the effects of its cores and reports events to the oracle."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from beforehand.check.rules.oracle import Oracle
from beforehand.protocols.contract.base import EVERYBODY, Message, MessageId, Timer
from beforehand.protocols.contract.outbox import LossKind

if TYPE_CHECKING:
    from beforehand.check.net.case import Case, Family
    from beforehand.check.net.net import Net


class Effects(ABC):
    """A mixin of `Net`: the port of its drivers. It postpones effects that need a late disk."""

    family: Family
    case: Case
    now_us: int
    oracle: Oracle
    problem: str | None
    sights: set[str]
    waited: int
    held: set[tuple[int, MessageId]]
    fresh: set[tuple[int, MessageId]]
    unread: list[Message]
    payloads: dict[MessageId, bytes]
    deadlines: dict[MessageId, int]
    floors: dict[int, int]
    reported_lost: set[tuple[int, MessageId]]
    dropped: set[tuple[int, int, MessageId]]
    contacts: set[tuple[int, int]]
    timers: dict[tuple[int, Timer], tuple[int, int]]

    def send(self, node: Any, sends: Sequence[tuple[Any, Any]]) -> None:
        net = cast("Net", self)
        for peer, frame in sends:
            for target in range(self.case.nodes) if peer is EVERYBODY else (peer,):
                if target == node or (peer is EVERYBODY and target < self.case.stations):
                    continue
                self.problem = self.problem or self.family.breach(net, node, frame)
                self.family.sent(net, target, frame)
                if self._has_link(node, target):
                    self._launch(node, target, frame, self.now_us)

    def deliver(self, node: Any, messages: Sequence[Message]) -> None:
        if not self.postpone(node, "deliver", messages):
            self._deliver_now(node, messages)

    def _deliver_now(self, node: Any, messages: Sequence[Message]) -> None:
        net = cast("Net", self)
        for message in messages:
            if self.case.inbox and message.id in self.oracle.delivered[node]:
                self.sights.add("handed over again")
                continue
            seen = len(self.oracle.violations)
            self.oracle.see(node, "deliver", message.id)
            broken = [str(v) for v in self.oracle.violations[seen:] if self.family.judges(v)]
            self.problem = self.problem or "".join(broken) or self.family.flaw(net, node, message)
            self.fresh.discard((node, message.id))
            if (node, message.id) in self.held:
                self.held.discard((node, message.id))
                self.waited += 1
                self.sights.add("waited")
        self.unread += messages

    def wake(self, node: Any, timer: Timer, due_us: int, ticket: int) -> None:
        # A timer is a delay. When its node's clock is set back, the timer still fires after the
        # same true time.
        wait_us = max(0, due_us - self.local_us(node))
        self.timers[node, timer] = (self.now_us + wait_us, ticket)

    def broadcasted(self, node: Any, message: MessageId, deliveries: list[Message]) -> None:
        words = self._words(node)
        if not self.postpone(node, "broadcasted", message, deliveries, words):
            self._broadcasted_now(node, message, deliveries, words)

    def _broadcasted_now(
        self, node: Any, message: MessageId, deliveries: Sequence[Message], words: bytes
    ) -> None:
        for delivered in deliveries:
            if delivered.id == message:
                break
            self.oracle.see(node, "learn", delivered.id)  # it is delivered only after the sends
        self.oracle.see(node, "broadcast", message)
        self.payloads[message] = words
        for delivered in (*deliveries, *cast("Net", self).drivers[node].cut_off):
            if delivered.id == message and delivered.deadline_us != message[1]:
                self.deadlines[message] = delivered.deadline_us

    def received(self, node: Any, messages: Sequence[Message]) -> None:
        if not self.postpone(node, "received", messages):
            self._received_now(node, messages)

    def _received_now(self, node: Any, messages: Sequence[Message]) -> None:
        self.fresh.update((node, message.id) for message in messages)
        for message in messages if self.family.learns else ():
            self.oracle.see(node, "learn", message.id)

    def lost(self, node: Any, losses: Sequence[tuple[LossKind, MessageId]]) -> None:
        if not self.postpone(node, "lost", losses):
            self._lost_now(node, losses)

    def _lost_now(self, node: Any, losses: Sequence[tuple[LossKind, MessageId]]) -> None:
        for kind, message in losses:
            self.sights.add(kind)
            if kind == "skip":
                self.floors[node] = message[1]
                continue
            self.reported_lost.add((node, message))
            if kind == "drop":
                peers = [a + b - node for a, b in self.contacts if node in (a, b)]
                self.dropped.update((node, peer, message) for peer in peers)
            self.held.discard((node, message))
            self.fresh.discard((node, message))

    @abstractmethod
    def postpone(self, node: Any, name: str, *arguments: Any) -> bool: ...

    @abstractmethod
    def local_us(self, node: int) -> int: ...

    @abstractmethod
    def _words(self, node: int) -> bytes: ...

    @abstractmethod
    def _has_link(self, node: int, target: int) -> bool: ...

    @abstractmethod
    def _launch(self, source: int, target: int, frame: Any, sent_us: int) -> None: ...
