"""A node whose core has flow control (`protocols.epidemic.paced_epidemic`).

This node only moves bytes; the core decides. It gets as inputs how much room each link has, whether
the application reads, and which steps are durable. It emits only frames that may be sent, so the
node encodes and sends them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from beforehand.errors import LocalError
from beforehand.protocols.contract.base import Broadcaster, FrameT, NodeId, Paced, Timer
from beforehand.protocols.contract.driver import BroadcasterDriver, PacedDriver
from beforehand.protocols.contract.outbox import CutReason
from beforehand.protocols.epidemic.flow_control import STALL_TIMER
from beforehand.runtime.node import Node

PROBLEMS: dict[CutReason, str] = {
    "slow": "requests more than it reads",
    "stalled": "does not send requested messages that it announced",
}


class PacedNode(Node[FrameT]):
    """A node around a core with flow control."""

    driver: PacedDriver[FrameT]

    def __init__(self, *args: Any, queue_bytes_max: int, **options: Any) -> None:
        self._room_min = queue_bytes_max // 2
        """Half of a link's send queue, which stays free."""
        self._ready: dict[str, list[FrameT]] = {}
        self._underway: dict[str, int] = {}
        """Bytes received of an incomplete frame, by peer, when the stall timer last fired."""
        self._saved_step = 0
        self._is_saved_due = False
        super().__init__(*args, queue_bytes_max=queue_bytes_max, **options)

    # ---- inputs ---------------------------------------------------------------------------------

    def open(self, is_open: bool) -> None:
        if self._links is not None:
            self._is_open = is_open
            self._step(lambda now_us: self.driver.on_open(now_us, is_open))

    def on_link(self, peer: str, is_up: bool) -> None:
        self._ready.pop(peer, None)
        self._underway.pop(peer, None)
        super().on_link(peer, is_up)
        if is_up:
            self.on_room(peer)

    def on_frame(self, peer: str, data: bytes) -> None:
        if peer in self._held_frames and (frame := self._decoded(peer, data)) is not None:
            self._take(peer, frame, len(data))

    def on_room(self, peer: str) -> None:
        """Tell the core how much room the link has, if there is any."""
        if self._links is None or peer not in self._held_frames:
            return
        room = self._links.room(peer) - self._room_min
        if room >= 0:
            self._step(lambda now_us: self.driver.on_room(now_us, peer, room + 1))

    def _on_timer(self, timer: Timer, ticket: int) -> None:
        if timer == STALL_TIMER and self._links is not None:
            for peer in list(self._held_frames):
                underway, before = self._links.underway(peer), self._underway.get(peer, 0)
                self._underway[peer] = underway
                if underway > before or self._is_paused:  # a long frame takes long on a slow link
                    self.driver.on_progress(self._now_us(), peer)
        super()._on_timer(timer, ticket)

    # ---- the port of the driver -----------------------------------------------------------------

    def send(self, node: NodeId, sends: Sequence[tuple[NodeId | None, FrameT]]) -> None:
        if not self._ready:
            self._loop.call_soon(self._put_all_on_wire)
        for peer, frame in sends:
            assert isinstance(peer, str), "can't happen: names are strings, and nothing is cast"
            self._ready.setdefault(peer, []).append(frame)

    def cut(self, node: NodeId, peer: NodeId, reason: CutReason) -> None:
        setattr(self.counters, reason, getattr(self.counters, reason) + 1)
        self._cut(str(peer), PROBLEMS[reason])

    def saved(self, node: NodeId, step: int) -> None:
        """Tell the core of the last durable step, once for the many steps of a transaction."""
        self._saved_step = step
        if not self._is_saved_due:
            self._is_saved_due = True
            self._loop.call_soon(self._report_saved)

    # ---- steps ----------------------------------------------------------------------------------

    def _report_saved(self) -> None:
        self._is_saved_due = False
        if self._links is not None:
            self._step(lambda now_us: self.driver.on_saved(now_us, self._saved_step))

    def _make_driver(
        self, make_core: Callable[[], Broadcaster[FrameT]]
    ) -> BroadcasterDriver[FrameT]:
        make = cast(Callable[[], Paced[FrameT]], make_core)
        return PacedDriver(make, self, store=self._group_commit, inbox=self._inbox)

    def _step(self, give_input: Callable[[int], None]) -> None:
        try:
            give_input(self._now_us())
        except Exception as error:
            self.fail(error)

    def _put_all_on_wire(self) -> None:
        """Encode and send the frames of this event-loop iteration.

        A frame for several peers is encoded once. `encoded` has `id(frame)` as keys, and also keeps
        the frames alive, because the id of a deleted object may be reused.
        """
        ready, self._ready = self._ready, {}
        encoded: dict[int, tuple[FrameT, bytes]] = {}
        for peer, frames in ready.items():
            if self._links is None:
                return
            if peer not in self._held_frames:
                continue
            try:
                for frame in frames:
                    if id(frame) not in encoded:
                        encoded[id(frame)] = (frame, self._codec.encode(frame))
            except LocalError as error:
                self._cut_unsendable(peer, error)
                continue
            self._links.send(peer, [encoded[id(frame)][1] for frame in frames])
            if self.driver.core.room_left(peer) < self._room_min // 2:
                self.on_room(peer)
