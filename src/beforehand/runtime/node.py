"""A node on real links: the event loop around the driver of a core.

Its inputs are frames, link events, timers and the application's broadcasts. The effects of a step
are held back until the writes of that step are durable (`runtime.storage.group_commit`). A peer
that sends an invalid frame loses its link. A failure of the disk stops the node, and no effect
leaves it afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, Protocol

import msgspec

from beforehand.errors import LocalError, RemoteError
from beforehand.protocols.contract.base import (
    Broadcaster,
    FrameT,
    Message,
    MessageId,
    NodeId,
    Timer,
)
from beforehand.protocols.contract.codec import Codec
from beforehand.protocols.contract.driver import INBOX, BroadcasterDriver
from beforehand.protocols.contract.outbox import LossKind
from beforehand.runtime.queues.broadcast_queue import BroadcastQueue
from beforehand.runtime.queues.held_frames import HeldFrames
from beforehand.runtime.queues.send_queue import FrameQueue
from beforehand.runtime.storage.group_commit import GroupCommit

HELD_BYTES_MAX = 32 << 20
"""Bytes of held frames of one peer. Beyond that its link is cut (`flooded`)."""
UNREAD_SECONDS = 5.0
"""If the application does not read and frames that block other nodes are held for so long, the
links are cut (`unread`). The other nodes then route around this one."""
AHEAD_BYTES_MAX = 8 << 20
"""Bytes of frames that the core has processed and whose writes are not durable yet. Beyond that the
node reads from no link until half of them are durable."""


class Links(Protocol):
    """The links of a node: `runtime.transport.mesh.Mesh`, or a network in memory."""

    def send(self, peer: str, frames: Sequence[bytes]) -> None: ...
    def room(self, peer: str) -> int: ...
    def underway(self, peer: str) -> int: ...
    def pause(self, peer: str) -> None: ...
    def resume(self, peer: str) -> None: ...
    def cut(self, peer: str, problem: str) -> None: ...


class Recorder(Protocol):
    """Records the events at a node, which its `Port` reports; see `runtime.storage.event_log`.

    It is called within the transaction of the step. So its writes to the node's store become
    durable together with the step, or not at all.
    """

    def met(self, member: str) -> None: ...
    def broadcasted(self, message: MessageId, deliveries: Sequence[Message]) -> None: ...
    def received(self, messages: Sequence[Message]) -> None: ...
    def delivered(self, messages: Sequence[Message]) -> None: ...
    def lost(self, losses: Sequence[tuple[LossKind, MessageId]]) -> None: ...
    def close(self) -> None: ...


class NodeCounters(msgspec.Struct):
    """Links that the node cut, by reason."""

    malformed: int = 0
    """The peer sent an invalid frame."""
    slow: int = 0
    """The peer requested more than it read."""
    flooded: int = 0
    """The peer sent more than the node can hold back."""
    stalled: int = 0
    """The peer did not send the messages that it announced and that were requested from it."""
    unread: int = 0
    """Frames of the peer were held too long, because our application did not read."""
    unsendable: int = 0
    """A frame for the peer could not be encoded."""


class Node(Generic[FrameT]):
    """A core on real links. It is the `Port` of the core's driver."""

    def __init__(
        self,
        make_core: Callable[[], Broadcaster[FrameT]],
        codec: Codec[FrameT],
        group_commit: GroupCommit,
        *,
        make_held_frames: Callable[[], HeldFrames[FrameT]],
        queue_bytes_max: int,
        clock_us: Callable[[], int],
        on_deliver: Callable[[Sequence[Message]], None],
        on_failure: Callable[[Exception], None],
        inbox: bool = False,
        recorder: Recorder | None = None,
    ) -> None:
        """queue_bytes_max: bytes that a link queues before it is cut; at most about half is used.
        clock_us: returns the time in microseconds, which may jump back or forward at any time.
        on_deliver: called with durably delivered messages of other members.
        on_failure: called once, with the failure that stopped the node."""
        self.counters = NodeCounters()
        self.error: Exception | None = None
        """The failure that stopped the node, or None."""
        self._codec = codec
        self._group_commit = group_commit
        self._make_held_frames = make_held_frames
        self._clock_us = clock_us
        self._on_deliver = on_deliver
        self._on_failure = on_failure
        self._inbox = inbox
        self._recorder = recorder
        self._links: Links | None = None
        self._held_frames: dict[str, HeldFrames[FrameT]] = {}
        self._send_queue = FrameQueue(
            self._held_frames, codec, queue_bytes_max, self._cut_slow, self._cut_unsendable
        )
        self._timers: dict[Timer, asyncio.TimerHandle] = {}
        self._watch: asyncio.TimerHandle | None = None
        self._is_open, self._is_paused = True, False
        self._ahead_bytes = 0
        self._step_us = 0
        """The time at which the last step began."""
        self._is_again = False
        """Whether the next deliveries are redeliveries of the inbox."""
        self._loop = asyncio.get_running_loop()
        self.driver = self._make_driver(make_core)
        self.name = self.driver.node
        self._broadcast_queue = BroadcastQueue(self.driver, group_commit, self._now_us, self.fail)

    def start(self, links: Links, *, is_new: bool) -> None:
        """Restore the saved state and start, before the first link comes up."""
        self._links = self._send_queue.wire = links
        if is_new:
            return
        left = self._group_commit.load((INBOX,))[INBOX.name]
        self._is_again = self._inbox and bool(left)
        if left and not self._inbox:
            # The messages that the application had not read when it stopped. Delete them from the
            # store first: delivery is at-most-once.
            self._group_commit.save([(INBOX.name, id, None) for id in left])
            self._group_commit.after(lambda: self._on_deliver(list(left.values())))
        self.driver.restart(self._now_us())

    def stop(self) -> None:
        """Accept no more inputs."""
        self._broadcast_queue.stop(self.error)
        for handle in (*self._timers.values(), self._watch):
            if handle is not None:
                handle.cancel()
        self._timers.clear()
        self._send_queue.stop()
        self._held_frames.clear()
        self._watch = self._links = None

    # ---- called by the application --------------------------------------------------------------

    def broadcast(
        self, payload: bytes, lifetime_us: int | None = None
    ) -> asyncio.Future[MessageId]:
        """Queue a broadcast. The future yields the message's id once the message is durable."""
        return self._broadcast_queue.add(payload, lifetime_us)

    def keep_unread(self, messages: Iterable[Message]) -> None:
        """Save messages that the application has not read, for the next start."""
        self._group_commit.save([(INBOX.name, message.id, message) for message in messages])

    def open(self, is_open: bool) -> None:
        """Tell the node whether the application has room for more deliveries.

        Without room, the node requests no more messages. It still sends those that peers request.
        """
        self._is_open = is_open
        if is_open:
            for peer in list(self._held_frames):
                self._take_held(peer)

    def fail(self, error: Exception) -> None:
        """Stop after a failure: no effect that is not durable leaves the node."""
        if self.error is None:
            self.error = error
            self.stop()
            self._on_failure(error)

    # ---- called by the links --------------------------------------------------------------------

    def on_link(self, peer: str, is_up: bool) -> None:
        """Process link-up or link-down, which alternate for each peer."""
        if self._links is None:
            return
        if is_up:
            self._held_frames[peer] = self._make_held_frames()
            if self._is_paused:
                self._links.pause(peer)
        else:
            self._held_frames.pop(peer, None)
        try:
            self.driver.on_link(self._now_us(), peer, is_up)
        except Exception as error:
            self.fail(error)

    def on_frame(self, peer: str, data: bytes) -> None:
        """Process a frame, or hold it back while the application has no room for its deliveries."""
        held = self._held_frames.get(peer)
        if held is None:
            return
        frame = self._decoded(peer, data)
        if frame is None:
            return
        if held.must_wait(is_open=self._is_open):
            held.hold(data, self._loop.time())
            self._watch_unread()
            if held.held_bytes > HELD_BYTES_MAX:
                self.counters.flooded += 1
                self._cut(peer, "announces more than a node can hold")
            return
        self._take(peer, frame, len(data))
        self._take_held(peer)

    def on_room(self, peer: str) -> None:
        """Send more frames: the link has room again."""
        self._send_queue.put_on_wire(peer)

    # ---- the port of the driver -----------------------------------------------------------------

    def send(self, node: NodeId, sends: Sequence[tuple[NodeId | None, FrameT]]) -> None:
        """Send frames once everything saved so far is durable."""
        staged = [
            (peer, held, frame)
            for peer, frame in sends
            if isinstance(peer, str) and (held := self._held_frames.get(peer)) is not None
        ]
        if staged:
            self._group_commit.after(lambda: self._send_queue.put(staged))

    def deliver(self, node: NodeId, messages: Sequence[Message]) -> None:
        """Hand messages of other members to the application once they are durable."""
        others = [message for message in messages if message.origin != self.name]
        if self._inbox and len(others) < len(messages):
            own = [message.id for message in messages if message.origin == self.name]
            self._group_commit.save([(INBOX.name, id, None) for id in own])
        if self._recorder is not None and not self._is_again:
            self._recorder.delivered(messages)
        self._is_again = False
        if others:
            self._group_commit.after(lambda: self._on_deliver(others))

    def wake(self, node: NodeId, timer: Timer, due_us: int, ticket: int) -> None:
        """Set a timer, which replaces an earlier one of the same name."""
        if timer in self._timers:
            self._timers[timer].cancel()
        delay = max(0, due_us - self._step_us) / 1e6  # relative: the clock may have been set since
        self._timers[timer] = self._loop.call_later(delay, self._on_timer, timer, ticket)

    def broadcasted(self, node: NodeId, message: MessageId, deliveries: list[Message]) -> None:
        if self._recorder is not None:
            self._recorder.broadcasted(message, deliveries)

    def received(self, node: NodeId, messages: Sequence[Message]) -> None:
        if self._recorder is not None:
            self._recorder.received(messages)

    def lost(self, node: NodeId, losses: Sequence[tuple[LossKind, MessageId]]) -> None:
        if self._recorder is not None:
            self._recorder.lost(losses)

    # ---- steps ----------------------------------------------------------------------------------

    def _now_us(self) -> int:
        """Begin a step and return its time."""
        self._step_us = self._clock_us()
        return self._step_us

    def _decoded(self, peer: str, data: bytes) -> FrameT | None:
        try:
            return self._codec.decode(data)
        except RemoteError as error:
            self.counters.malformed += 1
            self._cut(peer, error.problem)
            return None

    def _make_driver(
        self, make_core: Callable[[], Broadcaster[FrameT]]
    ) -> BroadcasterDriver[FrameT]:
        return BroadcasterDriver(make_core, self, store=self._group_commit, inbox=self._inbox)

    def _take(self, peer: str, frame: FrameT, size: int) -> None:
        """Pass a frame to the core; pause reading if the disk falls too far behind."""
        try:
            self.driver.on_message(self._now_us(), peer, frame)
        except RemoteError as error:
            self.counters.malformed += 1
            self._cut(peer, error.problem)
            return
        # A bug in this program: the state of the core is undefined.
        except Exception as error:
            self.fail(error)
            return
        self._ahead_bytes += size
        self._group_commit.after(lambda: self._saved(size))
        if self._ahead_bytes > AHEAD_BYTES_MAX and not self._is_paused:
            self._pause(True)

    def _take_held(self, peer: str) -> None:
        """Pass on held frames as long as the application has room."""
        held = self._held_frames.get(peer)
        while held is not None and held.may_go_on(is_open=self._is_open):
            data = held.next_held()
            frame = self._decoded(peer, data)
            assert frame is not None, "can't happen: it was decoded before it was held"
            self._take(peer, frame, len(data))
            held = self._held_frames.get(peer)

    def _saved(self, size: int) -> None:
        self._ahead_bytes -= size
        if self._is_paused and self._ahead_bytes <= AHEAD_BYTES_MAX // 2:
            self._pause(False)

    def _pause(self, is_paused: bool) -> None:
        self._is_paused = is_paused
        if self._links is not None:
            change = self._links.pause if is_paused else self._links.resume
            for peer in list(self._held_frames):
                change(peer)

    def _cut_slow(self, peer: str) -> None:
        self.counters.slow += 1
        self._cut(peer, "requests more than it reads")

    def _cut_unsendable(self, peer: str, error: LocalError) -> None:
        """Cut the link instead of stopping the node."""
        self.counters.unsendable += 1
        self._cut(peer, f"cannot be sent a frame: {error.problem}")

    def _cut(self, peer: str, problem: str) -> None:
        if self._links is not None:
            self._links.cut(peer, problem)

    def _on_timer(self, timer: Timer, ticket: int) -> None:
        if self.driver.is_awaited(timer, ticket):
            self._timers.pop(timer, None)
            try:
                self.driver.on_timer(self._now_us(), timer, ticket)
            except Exception as error:
                self.fail(error)

    def _watch_unread(self) -> None:
        if self._watch is None and any(held.held_since for held in self._held_frames.values()):
            self._watch = self._loop.call_later(UNREAD_SECONDS / 4, self._cut_unread)

    def _cut_unread(self) -> None:
        self._watch = None
        before = self._loop.time() - UNREAD_SECONDS
        for peer, held in list(self._held_frames.items()):
            if held.held_since is not None and held.held_since < before:
                self.counters.unread += 1
                self._cut(peer, "the application of this node does not read")
        self._watch_unread()
