"""The driver of a core: it gives the core an input and carries out the effects.

Simulated worlds, sockets and checkers use the same driver. A driver holds the state of one node:
the core, its timers, its store and its incarnation. The user of the driver keeps time and links,
and implements its `Port`.

Delivery to the application is *at most once*: a durable core saves that a message is delivered
before the application gets it, so a crash in between loses that delivery. With `inbox` delivery is
*at least once*: messages are saved in the transaction of the step that delivers them. After every
restart they are delivered again, in the same order, until the application acknowledges them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

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
from beforehand.protocols.contract.tables import RowStore, Store, Table

INBOX = Table("inbox", MessageId, Message)
"""Delivered messages that the application has not acknowledged. A row holds a plain `Message`, even
if the family uses a subclass: the application needs no more."""

SentT = TypeVar("SentT", contravariant=True)


class Port(Protocol[SentT]):
    """The environment of a node: it carries out the effects and observes the events."""

    def send(self, node: NodeId, sends: Sequence[tuple[NodeId | None, SentT]]) -> None:
        """Send these frames, in this order."""
        ...

    def deliver(self, node: NodeId, messages: Sequence[Message]) -> None:
        """Deliver these messages to the application, in this order."""
        ...

    def wake(self, node: NodeId, timer: Timer, due_us: int, ticket: int) -> None:
        """Call `on_timer` with timer and ticket when the node's clock shows `due_us`. If that clock
        can be set, call it after the time that remains until `due_us` now."""
        ...

    def broadcasted(self, node: NodeId, message: MessageId, deliveries: list[Message]) -> None:
        """Note a broadcast that is made and saved, and of which no frame was sent yet.

        deliveries: the deliveries of the same step, which follow. Those before the message itself
        causally precede it. A port that only records deliveries may remove these from the list and
        record them first. In a batch, only the first broadcast gets the list itself; each later
        one gets a copy.
        """
        ...

    def received(self, node: NodeId, messages: Sequence[Message]) -> None:
        """Note messages that the node received for the first time."""
        ...

    def lost(self, node: NodeId, losses: Sequence[tuple[LossKind, MessageId]]) -> None:
        """Note messages that the node will not deliver: they expired or were dropped."""
        ...


class DriverState(NamedTuple):
    """The state of a driver with a store in memory, besides its core. It can be hashed."""

    crash_after: int | None
    cut_off: tuple[Message, ...]
    timers: tuple[Timer, ...]
    """Those that are set, sorted."""
    rows: tuple[Any, ...]
    """`Store.snapshot`; empty without a store."""


class Driver(Generic[FrameT]):
    """Drives any core. Each input carries out all its effects before it returns."""

    # Slots save time and memory: a simulation has one driver per node and calls one at every step.
    __slots__ = (
        *("core", "node", "is_up", "incarnation", "crash_after", "cut_off"),
        *("_make_core", "_port", "_store", "_inbox", "_timers", "_ticket", "_out"),
    )

    def __init__(
        self,
        make_core: Callable[[], Core[FrameT]],
        port: Port[FrameT],
        *,
        store: RowStore | None = None,
        inbox: bool = False,
        out: Outbox[FrameT] | None = None,
    ) -> None:
        """Make the driver and its core.

        store: required for a durable core. If it holds rows of an earlier process, the first call
        must be `restart`; else the node would reuse ids.
        inbox: deliver at least once (see the module).
        out: an outbox that several nodes share, which keeps it in the processor's cache. The port
        must then give no input while it carries out effects.
        """
        self.core = make_core()
        self.node = self.core.node
        self.is_up = True
        self.incarnation = 1
        self.crash_after: int | None = None
        """Fault injection: crash after this many effects of the next input. The saves of a step
        count as one effect."""
        self.cut_off: list[Message] = []
        """Deliveries that a crash prevented after the core had saved them as delivered."""
        self._make_core, self._port = make_core, port
        self._store = store
        self._inbox = inbox
        self._timers: dict[Timer, int] = {}  # -> the ticket of the latest timer with this key
        self._ticket = 0
        self._out: Outbox[FrameT] = Outbox() if out is None else out

    # ---- inputs ---------------------------------------------------------------------------------

    def on_message(self, now_us: int, source: NodeId, frame: FrameT) -> None:
        """Give the core a frame that arrived from `source`."""
        self.core.on_message(now_us, source, frame, self._out)
        self._drain()

    def on_timer(self, now_us: int, timer: Timer, ticket: int) -> None:
        """Give the core a timer that is due, as requested with `Port.wake`."""
        if self._timers.get(timer) == ticket:  # else replaced, cancelled or lost in a crash
            del self._timers[timer]
            self.core.on_timer(now_us, timer, self._out)
            self._drain()

    def is_awaited(self, timer: Timer, ticket: int) -> bool:
        """Return whether the timer is still set: not replaced, cancelled or lost in a crash."""
        return self._timers.get(timer) == ticket

    def acknowledge(self, messages: Sequence[MessageId]) -> None:
        """Remove messages from the inbox that the application has processed."""
        if self._store is not None:
            self._store.save([(INBOX.name, message, None) for message in messages])

    def crash(self) -> None:
        """Stop the node and lose all state that is not saved. Timers of this incarnation never
        fire."""
        self.is_up = False
        self.crash_after = None
        self._timers.clear()
        self._out.clear()

    def restart(self, now_us: int) -> None:
        """Start the next incarnation from the saved state."""
        assert self._store is not None, "a node without a store must restart under a new name"
        self.core = self._make_core()
        self.is_up = True
        self.incarnation += 1
        rows = self._store.load((*self.core.tables, INBOX))
        if self._inbox and rows[INBOX.name]:
            self._port.deliver(self.node, list(rows[INBOX.name].values()))
        self.core.restore(now_us, rows, self._out)
        self._drain()

    @property
    def store(self) -> RowStore | None:
        """The store that the driver saves to; None if the core is not durable."""
        return self._store

    def snapshot(self) -> DriverState:
        """Return what the driver remembers besides its core; `set_back` returns to it.

        For explorers, which visit many states with one driver. The store must be in memory.
        """
        rows = self._store.snapshot() if isinstance(self._store, Store) else ()
        timers = tuple(sorted(self._timers))
        return DriverState(self.crash_after, tuple(self.cut_off), timers, rows)

    def set_back(self, state: DriverState) -> None:
        """Return to a `snapshot`, with the core that `core` is now. Timers get ticket 1."""
        self.crash_after, self.cut_off = state.crash_after, list(state.cut_off)
        self._timers, self._ticket = dict.fromkeys(state.timers, 1), 1
        if isinstance(self._store, Store):
            self._store.set_back(state.rows)

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
        if out.floors:
            port.lost(node, [("skip", floor) for floor in out.floors])
            out.floors.clear()
        if out.timers:
            self._set_timers()
        if will_crash:
            self.crash()

    def _report_broadcasts(self, broadcasts: tuple[MessageId, ...]) -> None:
        self._port.broadcasted(self.node, broadcasts[0], self._out.deliveries)
        if len(broadcasts) > 1:  # each gets the deliveries since the broadcast before it
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
        """Remove the effects that follow the crash from the outbox. Return False if none is left
        to carry out."""
        assert self.crash_after is not None
        out, left = self._out, self.crash_after
        left -= 1  # the transaction counts even if it is empty
        if left < 0:
            return False
        del out.sends[left:]
        left -= len(out.sends)
        self.cut_off += out.deliveries[left:]
        del out.deliveries[left:]
        return True


class BroadcasterDriver(Driver[FrameT]):
    """Drives a core with links, through which an application broadcasts."""

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
        """Whether the core is a `BatchBroadcaster`. It is stored because the check is slow."""

    def on_broadcast(
        self, now_us: int, payload: bytes, lifetime_us: int | None = None
    ) -> MessageId:
        """Broadcast a payload and return the id of the message. If the node crashed in this step,
        the message exists only if `Port.broadcasted` was called for it."""
        try:
            message = self.core.on_broadcast(now_us, payload, self._out, lifetime_us)
        except LocalError:
            self._drain()  # nothing was broadcast, but messages may have expired in this step
            raise
        self._drain(message)
        return message

    def on_broadcasts(self, now_us: int, broadcasts: Sequence[BroadcastRequest]) -> list[MessageId]:
        """Broadcast several payloads and return their ids: in one step, if the core takes
        batches."""
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
        """Give the core a link-up or link-down of `peer`."""
        self.core.on_link(now_us, peer, up, self._out)
        self._drain()


class PacedPort(Port[SentT], Protocol[SentT]):
    """The port of a core with flow control."""

    def cut(self, node: NodeId, peer: NodeId, reason: CutReason) -> None:
        """End the link to this peer. After this step, call `on_link` for the link-down."""
        ...

    def saved(self, node: NodeId, step: int) -> None:
        """Call `on_saved`: the disk has all saves up to this step."""
        ...


class PacedDriver(BroadcasterDriver[FrameT]):
    """Drives a core with flow control, and reports to it when its saves are on the disk."""

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

    def set_back(self, state: DriverState) -> None:
        """Return to a snapshot in which the store had reported all steps of the core."""
        super().set_back(state)
        self._step = self.core.saving_step() if self.is_up else 0

    def on_room(self, now_us: int, peer: NodeId, room: int) -> None:
        """Give the core the number of bytes that the wire to `peer` takes."""
        self.core.on_room(now_us, peer, room, self._out)
        self._drain()

    def on_open(self, now_us: int, is_open: bool) -> None:
        """Tell the core whether the application accepts more deliveries."""
        self.core.on_open(now_us, is_open, self._out)
        self._drain()

    def on_saved(self, now_us: int, step: int) -> None:
        """Tell the core that the disk has all saves up to this step."""
        self.core.on_saved(now_us, step, self._out)
        self._drain()

    def on_progress(self, now_us: int, peer: NodeId) -> None:
        """Tell the core that part of a frame has arrived from `peer`."""
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
    """Drives a core that can leave the group for good."""

    core: Leaver[FrameT]

    def __init__(
        self,
        make_core: Callable[[], Leaver[FrameT]],
        port: Port[FrameT],
        **options: Any,
    ) -> None:
        super().__init__(make_core, port, **options)

    def on_leave(self, now_us: int) -> None:
        """Make the core leave the group for good."""
        self.core.on_leave(now_us, self._out)
        self._drain()
