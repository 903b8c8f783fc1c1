"""One way to drive a core, for worlds, sockets and checkers: an input in, its effects carried out.

A driver holds what belongs to one node: the core, its timers, its store and how often it was
started. Whoever uses it keeps time and links, and is its `Port`.

Delivery to the application is *at most once*: a durable core saves that a message is delivered
before the application gets it, so a crash in between loses that delivery. With `inbox` it is *at
least once*: messages are saved with the step that delivers them, and come again, in the same order,
after every restart until the application has acknowledged them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Generic, Protocol, TypeVar, cast

from beforehand.errors import LocalError
from beforehand.protocols.contract.base import (
    CANCEL,
    BatchBroadcaster,
    Broadcaster,
    BroadcastRequest,
    Core,
    FrameT,
    Leaver,
    Message,
    MessageId,
    NodeId,
    Paced,
    Timer,
)
from beforehand.protocols.contract.outbox import CutReason, LossKind, Outbox
from beforehand.protocols.contract.tables import Store, Table

INBOX = Table("inbox", MessageId, Message)
"""What comes again is a plain `Message`, whatever its family made of it: so much is the
application's."""

SentT = TypeVar("SentT", contravariant=True)


class Port(Protocol[SentT]):
    """What carries out the effects of a node, and hears of what happened there."""

    def send(self, node: NodeId, sends: Sequence[tuple[NodeId | None, SentT]]) -> None:
        """Put these on the wire, in this order."""
        ...

    def deliver(self, node: NodeId, messages: Sequence[Message]) -> None:
        """Hand these to the application, in this order."""
        ...

    def wake(self, node: NodeId, timer: Timer, due_us: int, ticket: int) -> None:
        """Call `on_timer` with timer and ticket when the node's clock shows `due_us`; or, if that
        clock can be set, after as long as it would take now."""
        ...

    def broadcasted(self, node: NodeId, message: MessageId, deliveries: list[Message]) -> None:
        """A broadcast is made and saved, nothing of it has left yet. `deliveries` are those of the
        same step, to come: what lies before the message itself precedes it. A port for which
        delivering is writing down may take those out and write them down first; but of several that
        are said at once, each after the first comes with a copy of them."""
        ...

    def received(self, node: NodeId, messages: Sequence[Message]) -> None:
        """These came in for the first time."""
        ...

    def lost(self, node: NodeId, losses: Sequence[tuple[LossKind, MessageId]]) -> None:
        """These were given up."""
        ...


class Driver(Generic[FrameT]):
    """Drives any core. It has carried out all effects of an input when it returns."""

    # A simulation has a driver for each node, and passes through one at every step.
    __slots__ = (
        *("core", "node", "is_up", "incarnation", "crash_after", "cut_off"),
        *("_make_core", "_port", "_store", "_inbox", "_timers", "_ticket", "_out"),
    )

    def __init__(
        self,
        make_core: Callable[[], Core[FrameT]],
        port: Port[FrameT],
        *,
        store: Store | None = None,
        inbox: bool = False,
        out: Outbox[FrameT] | None = None,
    ) -> None:
        """store: for a durable core. If an earlier process left something in it, the first call is
        `restart`: else ids that were used are used again. inbox: see above. out: one for all nodes
        of a world whose port gives no input while it carries out effects, since a thousand do not
        stay in the cache."""
        self.core = make_core()
        self.node = self.core.node
        self.is_up = True
        self.incarnation = 1
        self.crash_after: int | None = None
        """For those who look for trouble: how many of the effects of the next input are carried out
        before the node crashes. The saves of a step count as one."""
        self.cut_off: list[Message] = []
        """Deliveries that a crash cut off after they had been saved."""
        self._make_core = make_core
        self._port = port
        self._store = store
        self._inbox = inbox
        self._timers: dict[Timer, int] = {}  # -> the ticket of the one that counts
        self._ticket = 0
        self._out: Outbox[FrameT] = Outbox() if out is None else out

    # ---- inputs ---------------------------------------------------------------------------------

    def on_message(self, now_us: int, source: NodeId, frame: FrameT) -> None:
        """A frame has arrived from `source`."""
        self.core.on_message(now_us, source, frame, self._out)
        self._drain()

    def on_timer(self, now_us: int, timer: Timer, ticket: int) -> None:
        """What `Port.wake` was asked for is due."""
        if self._timers.get(timer) == ticket:  # else it was replaced, cancelled or forgotten
            del self._timers[timer]
            self.core.on_timer(now_us, timer, self._out)
            self._drain()

    def is_awaited(self, timer: Timer, ticket: int) -> bool:
        """Or was it replaced, cancelled, or forgotten in a crash?"""
        return self._timers.get(timer) == ticket

    def acknowledge(self, messages: Sequence[MessageId]) -> None:
        """The application is done with these: they need not come again."""
        if self._store is not None:
            self._store.save([(INBOX.name, message, None) for message in messages])

    def crash(self) -> None:
        """All is gone but what was saved. Timers of this life never fire."""
        self.is_up = False
        self.crash_after = None
        self._timers.clear()
        self._out.clear()

    def restart(self, now_us: int) -> None:
        """The next incarnation, from what is saved."""
        assert self._store is not None, "without a store a node comes back under a new name"
        self.core = self._make_core()
        self.is_up = True
        self.incarnation += 1
        rows = self._store.load((*self.core.tables, INBOX))
        if self._inbox and rows[INBOX.name]:
            self._port.deliver(self.node, list(rows[INBOX.name].values()))
        self.core.restore(now_us, rows, self._out)
        self._drain()

    # ---- effects --------------------------------------------------------------------------------

    def _drain(self, *broadcasts: MessageId) -> None:
        out, port, node = self._out, self._port, self.node
        if self._inbox:
            out.saves += [(INBOX.name, message.id, message) for message in out.deliveries]
        will_crash = self.crash_after is not None
        if will_crash and not self._cut():
            self.crash()
            return
        if saves := out.saves:
            if self._store is not None:
                self._store.save(saves)
            saves.clear()
        if broadcasts:
            self._report_broadcasts(broadcasts)
        if receives := out.receives:
            port.received(node, receives)
            receives.clear()
        if sends := out.sends:
            port.send(node, sends)
            sends.clear()
        if losses := out.losses:
            port.lost(node, losses)
            losses.clear()
        if deliveries := out.deliveries:
            port.deliver(node, deliveries)
            deliveries.clear()
        if out.timers:
            self._set_timers()
        if will_crash:
            self.crash()

    def _report_broadcasts(self, broadcasts: tuple[MessageId, ...]) -> None:
        self._port.broadcasted(self.node, broadcasts[0], self._out.deliveries)
        if len(broadcasts) > 1:  # what lies before the one before it was told with that one
            deliveries = self._out.deliveries
            places = {message.id: place for place, message in enumerate(deliveries)}
            for before, message in pairwise(broadcasts):  # a crash may have cut off the one before
                since = places.get(before, len(deliveries))
                self._port.broadcasted(self.node, message, deliveries[since:])

    def _set_timers(self) -> None:
        for timer, due_us in self._out.timers:
            self._ticket += 1
            self._timers[timer] = self._ticket
            if due_us is CANCEL:
                del self._timers[timer]
            else:
                self._port.wake(self.node, timer, due_us, self._ticket)
        self._out.timers.clear()

    def _cut(self) -> bool:
        """Leave in the outbox what is carried out before the crash; False if it is nothing."""
        assert self.crash_after is not None
        out, left = self._out, self.crash_after
        left -= 1  # the transaction, which is there even if it is empty
        if left < 0:
            return False
        del out.sends[left:]
        left -= len(out.sends)
        self.cut_off += out.deliveries[left:]
        del out.deliveries[left:]
        return True


class BroadcasterDriver(Driver[FrameT]):
    """Drives a core that has links, and through which an application broadcasts."""

    __slots__ = ("takes_batches",)
    core: Broadcaster[FrameT]

    def __init__(
        self,
        make_core: Callable[[], Broadcaster[FrameT]],
        port: Port[FrameT],
        **options: Any,
    ) -> None:
        super().__init__(make_core, port, **options)
        self.takes_batches = isinstance(self.core, BatchBroadcaster)
        """Can the core say several at once? That is slow to find out."""

    def on_broadcast(
        self, now_us: int, payload: bytes, lifetime_us: int | None = None
    ) -> MessageId:
        """The id of the message. If the node did not survive the step, there may be no such
        message; `broadcasted` was told if there is."""
        try:
            message = self.core.on_broadcast(now_us, payload, self._out, lifetime_us)
        except LocalError:
            self._drain()  # nothing was said, but what time alone brought about is not lost
            raise
        self._drain(message)
        return message

    def on_broadcasts(self, now_us: int, broadcasts: Sequence[BroadcastRequest]) -> list[MessageId]:
        """Several, and their ids; in one step, if the core can do that."""
        if not self.takes_batches:
            return [self.on_broadcast(now_us, payload, us) for payload, us in broadcasts]
        try:
            messages = cast(BatchBroadcaster[FrameT], self.core).on_broadcasts(
                now_us, broadcasts, self._out
            )
        except LocalError:
            self._drain()
            raise
        self._drain(*messages)
        return messages

    def on_link(self, now_us: int, peer: NodeId, up: bool) -> None:
        """Whether `peer` is there."""
        self.core.on_link(now_us, peer, up, self._out)
        self._drain()


class PacedPort(Port[SentT], Protocol[SentT]):
    """The port of a core with flow control."""

    def cut(self, node: NodeId, peer: NodeId, reason: CutReason) -> None:
        """End the link to this peer; `on_link` tells the core, after this step."""
        ...

    def saved(self, node: NodeId, step: int) -> None:
        """All that was saved up to this step is on the disk: call `on_saved`."""
        ...


class PacedDriver(BroadcasterDriver[FrameT]):
    """Drives a core with flow control, and tells it when the disk has what it saved."""

    __slots__ = ("_step",)
    core: Paced[FrameT]
    _port: PacedPort[FrameT]

    def __init__(
        self,
        make_core: Callable[[], Paced[FrameT]],
        port: PacedPort[FrameT],
        **options: Any,
    ) -> None:
        super().__init__(make_core, port, **options)
        self._step = self.core.saving_step()

    def restart(self, now_us: int) -> None:
        self._step = 0
        super().restart(now_us)

    def on_room(self, now_us: int, peer: NodeId, room: int) -> None:
        """The wire to `peer` takes so many bytes."""
        self.core.on_room(now_us, peer, room, self._out)
        self._drain()

    def on_open(self, now_us: int, is_open: bool) -> None:
        """Whether the application takes in more."""
        self.core.on_open(now_us, is_open, self._out)
        self._drain()

    def on_saved(self, now_us: int, step: int) -> None:
        """All that was saved up to this step is on the disk."""
        self.core.on_saved(now_us, step, self._out)
        self._drain()

    def on_progress(self, now_us: int, peer: NodeId) -> None:
        """Part of a frame has arrived from `peer`."""
        self.core.on_progress(now_us, peer, self._out)
        self._drain()

    def _drain(self, *broadcasts: MessageId) -> None:
        cuts, self._out.cuts = self._out.cuts, []
        super()._drain(*broadcasts)
        for peer, reason in cuts if self.is_up else ():
            self._port.cut(self.node, peer, reason)
        step = self.core.saving_step()
        if step > self._step and self.is_up and self._store is not None:
            self._step = step
            self._store.after(lambda: self._port.saved(self.node, step))


class LeaverDriver(BroadcasterDriver[FrameT]):
    """Drives a core that can go for good."""

    core: Leaver[FrameT]

    def __init__(
        self,
        make_core: Callable[[], Leaver[FrameT]],
        port: Port[FrameT],
        **options: Any,
    ) -> None:
        super().__init__(make_core, port, **options)

    def on_leave(self, now_us: int) -> None:
        """The application is done here."""
        self.core.on_leave(now_us, self._out)
        self._drain()
