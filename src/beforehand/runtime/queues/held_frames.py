"""The per-link queues of a node without flow control: frames to send, and frames received while the
application did not read.

Frames for a slow peer are queued as objects, which refer to messages that the node stores in any
case. They are encoded when the link's send buffer has room. A peer that requests more than it reads
loses its link. On the next link-up the core synchronises with it anew, so no message is lost.
"""

from __future__ import annotations

from collections import deque
from typing import Generic

from beforehand.protocols.contract.base import FrameT
from beforehand.protocols.vcube.frames import VCubeFrame


class HeldFrames(Generic[FrameT]):
    """The queues of one link. Received frames are never held back."""

    def __init__(self) -> None:
        self.out: deque[FrameT] = deque()
        """Frames that wait for room in the link's send buffer."""
        self.frames: deque[bytes] = deque()
        """Received frames that were held back, encoded as they came."""
        self.held_bytes = 0
        self.held_since: float | None = None
        """Event-loop time at which the oldest held frame came; None if no frame is held that blocks
        peers."""

    def must_wait(self, *, is_open: bool) -> bool:
        """Return whether a received frame must be held back.

        is_open: whether the application has room for more deliveries.
        """
        return False

    def may_go_on(self, *, is_open: bool) -> bool:
        """Return whether the core can take the oldest held frame now."""
        return False

    def hold(self, data: bytes, now: float) -> None:
        """Hold back a received frame."""
        self.frames.append(data)
        self.held_bytes += len(data)

    def next_held(self) -> bytes:
        """Remove and return the oldest held frame."""
        data = self.frames.popleft()
        self.held_bytes -= len(data)
        return data


class VCubeHeldFrames(HeldFrames[VCubeFrame]):
    """An overlay link: received frames are held back while the application does not read.

    Such a node forwards nothing either. Peers must not rely on it for long, hence `held_since`.
    """

    def must_wait(self, *, is_open: bool) -> bool:
        return bool(self.frames) or not is_open

    def may_go_on(self, *, is_open: bool) -> bool:
        return bool(self.frames) and is_open

    def hold(self, data: bytes, now: float) -> None:
        super().hold(data, now)
        if self.held_since is None:
            self.held_since = now

    def next_held(self) -> bytes:
        data = super().next_held()
        if not self.frames:
            self.held_since = None
        return data
