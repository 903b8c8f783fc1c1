"""Frames on their way to the links: as many as fit, each encoded once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, Protocol

from beforehand.errors import LocalError
from beforehand.protocols.contract.base import FrameT
from beforehand.protocols.contract.codec import Codec
from beforehand.runtime.queues.held_frames import HeldFrames
from beforehand.runtime.transport.connection.records import FRAME_OVERHEAD

OUT_FRAMES_MAX = 20_000
"""Frames that may wait for one peer. With one more, its link is cut (counter `slow`)."""


class Wire(Protocol):
    """The links that frames are sent over."""

    def send(self, peer: str, frames: Sequence[bytes]) -> None: ...
    def room(self, peer: str) -> int: ...


class FrameQueue(Generic[FrameT]):
    """The frames that wait, for all links of a node."""

    def __init__(
        self,
        held_frames: Mapping[str, HeldFrames[FrameT]],
        codec: Codec[FrameT],
        queue_bytes_max: int,
        on_slow: Callable[[str], None],
        on_unsendable: Callable[[str, LocalError], None],
    ) -> None:
        """queue_bytes_max: bytes that a link queues before it is cut; at most about half is used.
        on_slow: called with a peer for which more than OUT_FRAMES_MAX frames wait.
        on_unsendable: called with a peer and the error if a frame for it cannot be encoded."""
        self.wire: Wire | None = None
        self._held_frames = held_frames
        self._codec = codec
        self._room_min = queue_bytes_max // 2
        self._on_slow = on_slow
        self._on_unsendable = on_unsendable
        self._ready: set[str] = set()
        """Peers with frames to send at the end of this event-loop iteration."""
        self._loop = asyncio.get_running_loop()

    def put(self, frames: Sequence[tuple[str, HeldFrames[FrameT], FrameT]]) -> None:
        """Queue frames for their links; drop those whose link has ended since they were created."""
        for peer, held, frame in frames:
            if self._held_frames.get(peer) is not held:
                continue
            held.out.append(frame)
            self._schedule(peer)
            if len(held.out) > OUT_FRAMES_MAX:
                self._on_slow(peer)

    def put_on_wire(self, peer: str) -> None:
        """Send as many frames as the link has room for; the link calls again when it has more."""
        self._put_on_wire(peer, {})

    def _put_on_wire(self, peer: str, encoded: dict[int, tuple[FrameT, bytes]]) -> None:
        """encoded: frames already encoded in this round, so that each is encoded once for all
        peers.

        Its keys are `id(frame)`. It also keeps the frames alive, because the id of a deleted object
        may be reused.
        """
        held = self._held_frames.get(peer)
        if held is None or self.wire is None:
            return
        datas, room = [], self.wire.room(peer)
        try:
            while held.out and room >= self._room_min:
                frame = held.out.popleft()
                if id(frame) not in encoded:
                    encoded[id(frame)] = (frame, self._codec.encode(frame))
                data = encoded[id(frame)][1]
                room -= len(data) + FRAME_OVERHEAD
                datas.append(data)
        except LocalError as error:
            self._on_unsendable(peer, error)
            return
        if datas:
            self.wire.send(peer, datas)

    def stop(self) -> None:
        """Send nothing more."""
        self.wire = None

    def _schedule(self, peer: str) -> None:
        if not self._ready:
            self._loop.call_soon(self._put_all_on_wire)
        self._ready.add(peer)

    def _put_all_on_wire(self) -> None:
        ready, self._ready = self._ready, set()
        encoded: dict[int, tuple[FrameT, bytes]] = {}
        for peer in ready:
            self._put_on_wire(peer, encoded)
