"""Frames on their way to the wire: as many as there is room for, and news of others in bundles.

What a node says itself it announces at once. That it has got a message of somebody else is of use
to few: most neighbours get it from its origin too. Such news waits for a moment, goes out together,
and is left out for whoever has told meanwhile that it has the message. Marks (`core.marks`) are for
neighbours of which that is known: they wait for long, or else among many neighbours they would be
most of what a node has to do.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, Protocol

from beforehand.core.base import FrameT
from beforehand.core.codec import Codec
from beforehand.runtime.lanes import Lane
from beforehand.runtime.records import FRAME_OVERHEAD

OUT_FRAMES_MAX = 20_000
"""That wait for one neighbour. One more, and its link is cut (`slow`)."""
LATER_SECONDS = (0.01, 0.04)
"""Drawn anew each time: of two who got a message together, one is to hear the other first."""
MARKS_SECONDS = (0.5, 1.5)
"""The same for marks: so long it takes at most until one who has lost its link to an origin, and
heard nothing but that origin until then, is told by others what it lacks."""


class Wire(Protocol):
    """Where frames go."""

    def send(self, peer: str, frames: Sequence[bytes]) -> None: ...
    def room(self, peer: str) -> int: ...


class Outgoing(Generic[FrameT]):
    """Of all links of a node."""

    def __init__(
        self,
        lanes: Mapping[str, Lane[FrameT]],
        codec: Codec[FrameT],
        queue_bytes_max: int,
        on_slow: Callable[[str], None],
        on_failure: Callable[[Exception], None],
    ) -> None:
        """queue_bytes_max: what a link takes before it is cut; half of it is made use of."""
        self.wire: Wire | None = None
        self._lanes = lanes
        self._codec = codec
        self._room_min = queue_bytes_max // 2
        self._on_slow = on_slow
        self._on_failure = on_failure
        self._ready: set[str] = set()
        """Peers with something to be put on the wire."""
        self._later: asyncio.TimerHandle | None = None
        self._marks_later: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    def put(self, frames: Sequence[tuple[str, Lane[FrameT], FrameT]]) -> None:
        """What was said before a link broke is not said over the next one."""
        for peer, lane, frame in frames:
            if self._lanes.get(peer) is not lane:
                continue
            lane.put(frame)
            if lane.out:
                self._schedule(peer)
            if lane.has_later and self._later is None:
                self._later = self._loop.call_later(random.uniform(*LATER_SECONDS), self._release)
            if lane.has_marks and self._marks_later is None:
                wait = random.uniform(*MARKS_SECONDS)
                self._marks_later = self._loop.call_later(wait, self._release_marks)
            if len(lane.out) > OUT_FRAMES_MAX:
                self._on_slow(peer)

    def put_on_wire(self, peer: str) -> None:
        """As much as there is room for; the link tells when there is more."""
        self._put_on_wire(peer, {})

    def _put_on_wire(self, peer: str, encoded: dict[int, tuple[FrameT, bytes]]) -> None:
        """encoded: what goes to several is encoded once. The frames are kept with it, or another
        one might take the place in memory by which it is found."""
        lane = self._lanes.get(peer)
        if lane is None or self.wire is None:
            return
        datas, room = [], self.wire.room(peer)
        try:
            while lane.out and room >= self._room_min:
                frame = lane.next_out()
                if id(frame) not in encoded:
                    encoded[id(frame)] = (frame, self._codec.encode(frame))
                data = encoded[id(frame)][1]
                room -= len(data) + FRAME_OVERHEAD
                datas.append(data)
        except Exception as error:
            self._on_failure(error)
            return
        if datas:
            self.wire.send(peer, datas)

    def stop(self) -> None:
        self.wire = None
        for timer in (self._later, self._marks_later):
            if timer is not None:
                timer.cancel()

    def _schedule(self, peer: str) -> None:
        if not self._ready:
            self._loop.call_soon(self._put_all_on_wire)
        self._ready.add(peer)

    def _put_all_on_wire(self) -> None:
        ready, self._ready = self._ready, set()
        encoded: dict[int, tuple[FrameT, bytes]] = {}
        for peer in ready:
            self._put_on_wire(peer, encoded)

    def _release(self) -> None:
        self._later = None
        for peer, lane in list(self._lanes.items()):
            if lane.has_later:
                lane.release()
                self._schedule(peer)

    def _release_marks(self) -> None:
        self._marks_later = None
        for peer, lane in list(self._lanes.items()):
            if lane.has_marks:
                lane.release_marks()
                self._schedule(peer)
