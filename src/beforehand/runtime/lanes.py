"""What a node keeps for each link: frames on their way out, and news that it is not ready for.

Four rules keep the memory of a node bounded, however much its neighbours have to say or to ask:

- Frames that wait for a slow neighbour stay what they are, references to messages that are held
  anyway. They become bytes when there is room for them on the wire.
- What a node says itself it sends unasked, as long as few frames wait. If more do, or if the other
  end has no use for it yet, it is announced like all else.
- No more than `WINDOW_IDS` messages are asked of a neighbour at a time. While they are on their
  way, or while the program does not read, further announcements wait, as bytes.
- Who asks for more than it takes in, or announces more than anybody could hold, loses its link.
  When it comes back it is told everything anew, so nothing is lost by that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic

import msgspec

from beforehand.core.base import FrameT, MessageId, NodeId
from beforehand.core.epidemic import MESSAGES
from beforehand.core.frames import (
    FRAME_BYTES,
    ID_BYTES,
    IDS_MAX,
    Announce,
    Behind,
    Data,
    Frame,
    Greeting,
    Ids,
    Push,
    Reached,
    Request,
    split_ids,
)
from beforehand.core.packets import CubeFrame
from beforehand.core.tables import Table

WINDOW_IDS = 4096
"""Asked of one neighbour and not answered yet."""
FRAME_BYTES_MAX = 65_536
"""Of messages or ids. On a wire that loses nothing fewer frames are fewer steps, and what was
signed together comes together."""
JOINED_IDS_MAX = min(IDS_MAX, (FRAME_BYTES_MAX - FRAME_BYTES) // ID_BYTES)
"""As many as the layer itself puts into one announcement."""
PUSHES_MAX = 64
"""Frames that wait for a neighbour. If there are more, it is told of messages that it can ask for,
and not sent them."""
LATER_IDS_MAX = 256
"""An announcement of more is a bundle already."""


IsSaved = Callable[[Table, Iterable[MessageId]], bool]
"""Are the rows of these on the disk?"""


class Lane(Generic[FrameT]):
    """One link of any family: nothing is postponed."""

    def __init__(self) -> None:
        self.out: deque[FrameT] = deque()
        """What waits for room on the wire."""
        self.news: deque[bytes] = deque()
        """What came and must wait, as it came."""
        self.news_bytes = 0
        self.asked = 0
        """Messages that were asked for, and neither came nor were said to be gone."""
        self.progress_at = 0.0
        """When something of that came last, or was first asked."""
        self.underway = 0
        """Bytes of what comes and is not whole yet, when somebody looked last."""

        self.has_later = False
        """Is there something that is not urgent?"""
        self.has_marks = False
        """Is there something that hardly anybody waits for?"""
        self.held_since: float | None = None
        """When something came that must wait, and for which others wait."""

    def must_wait(self, frame: FrameT, *, is_open: bool) -> bool:
        """Must this frame be held? is_open: does the program take in more?"""
        return False

    def may_go_on(self, *, is_open: bool) -> bool:
        """Can a frame that was held be taken in now?"""
        return False

    def on_frame(self, frame: FrameT, now: float) -> None:
        """A frame is taken in."""

    def on_send(self, frame: FrameT, now: float) -> None:
        """The core sends this; it may take a while until it is put on the wire."""

    def is_safe(self, frame: FrameT, is_saved: IsSaved) -> bool:
        """Does it tell of nothing that is not on the disk? Then it may go ahead of what waits."""
        return False

    def as_news(self, frame: FrameT) -> FrameT:
        """What is held in place of a frame that must wait."""
        return frame

    def hold(self, news: bytes, now: float) -> None:
        self.news.append(news)
        self.news_bytes += len(news)

    def next_news(self) -> bytes:
        news = self.news.popleft()
        self.news_bytes -= len(news)
        return news

    def put(self, frame: FrameT) -> None:
        """A frame for it."""
        self.out.append(frame)

    def release(self) -> None:
        """What was not urgent goes out with what is."""

    def release_marks(self) -> None:
        """So does what hardly anybody waits for."""

    def next_out(self) -> FrameT:
        """The next frame to be put on the wire."""
        return self.out.popleft()


class PacedLane(Lane[Frame]):
    """A link of the opportunistic layer: announcements wait while enough is asked for."""

    def __init__(self, own: NodeId) -> None:
        super().__init__()
        self._own = own
        self._later: set[MessageId] = set()
        """Messages of others that it may not have."""
        self._marks: dict[NodeId, int] = {}
        """How far we have come, as far as it may not."""

    def put(self, frame: Frame) -> None:
        if isinstance(frame, Reached):
            self._marks.update(frame.ids)
            self.has_marks = True
            return
        if isinstance(frame, Push) and len(self.out) >= PUSHES_MAX:
            frame = self.as_news(frame)
        if not isinstance(frame, Announce) or len(frame.ids) > LATER_IDS_MAX:
            self.out.append(frame)
            return
        urgent = frozenset([id for id in frame.ids if id[0] == self._own])
        if urgent:
            self.out.append(Announce(frame.number, urgent))
        self._later |= frame.ids - urgent
        self.has_later = bool(self._later)

    def release(self) -> None:
        for ids in split_ids(self._later, FRAME_BYTES_MAX):
            self.out.append(Announce(0, ids))
        self._later.clear()
        self.has_later = False

    def release_marks(self) -> None:
        for ids in split_ids(list(self._marks.items()), FRAME_BYTES_MAX):
            self.out.append(Reached(ids))
        self._marks.clear()
        self.has_marks = False

    def must_wait(self, frame: Frame, *, is_open: bool) -> bool:
        is_news = isinstance(frame, Announce | Push | Reached)
        return is_news and (bool(self.news) or not self._can_ask(is_open=is_open))

    def may_go_on(self, *, is_open: bool) -> bool:
        return bool(self.news) and self._can_ask(is_open=is_open)

    def as_news(self, frame: Frame) -> Frame:
        """Of messages that nobody asked for, only that they are there."""
        if not isinstance(frame, Push):
            return frame
        return Announce(0, frozenset([message.id for message in frame.messages]))

    def on_frame(self, frame: Frame, now: float) -> None:
        if isinstance(frame, Data):
            self.asked = max(0, self.asked - len(frame.messages) - len(frame.gone))
            self.progress_at = now
            self._later.difference_update([message.id for message in frame.messages])
        elif isinstance(frame, Announce):
            self._later -= frame.ids
        elif isinstance(frame, Push):
            self._later.difference_update([message.id for message in frame.messages])
        elif isinstance(frame, Reached):
            for origin, seq in frame.ids:
                if self._marks.get(origin, seq + 1) <= seq:
                    del self._marks[origin]

    def on_send(self, frame: Frame, now: float) -> None:
        if isinstance(frame, Request):
            if not self.asked:
                self.progress_at = now
            self.asked += len(frame.ids)

    def is_safe(self, frame: Frame, is_saved: IsSaved) -> bool:
        if isinstance(frame, Request | Behind | Greeting):
            return True
        if isinstance(frame, Announce | Reached):
            return is_saved(MESSAGES, frame.ids)
        return is_saved(MESSAGES, [message.id for message in frame.messages])

    def next_out(self) -> Frame:
        """Announcements that have come to stand side by side go out as one."""
        frame = self.out.popleft()
        if not isinstance(frame, Announce):
            return frame
        parts, count = [frame.ids], len(frame.ids)
        while (more := self._joined_by(count)) is not None:
            self.out.popleft()
            parts.append(more)
            count += len(more)
        if len(parts) == 1:
            return frame
        return msgspec.structs.replace(frame, ids=frozenset().union(*parts))

    def _joined_by(self, count: int) -> Ids | None:
        """What the next frame adds to an announcement of so many; None if it cannot."""
        following = self.out[0] if self.out else None
        if isinstance(following, Announce) and count + len(following.ids) <= JOINED_IDS_MAX:
            return following.ids
        return None

    def _can_ask(self, *, is_open: bool) -> bool:
        return is_open and self.asked < WINDOW_IDS


class CubeLane(Lane[CubeFrame]):
    """A link of an overlay: while its program does not read, a node takes in nothing. It passes on
    nothing then either, so it must not be taken for one who does for long."""

    def must_wait(self, frame: CubeFrame, *, is_open: bool) -> bool:
        return bool(self.news) or not is_open

    def may_go_on(self, *, is_open: bool) -> bool:
        return bool(self.news) and is_open

    def hold(self, news: bytes, now: float) -> None:
        super().hold(news, now)
        if self.held_since is None:
            self.held_since = now

    def next_news(self) -> bytes:
        news = super().next_news()
        if not self.news:
            self.held_since = None
        return news
