"""What a node without flow control keeps for each link: frames on their way out, and frames that
came while the program did not read.

Frames that wait for a slow peer stay objects, references to messages that are held anyway. They
become bytes when there is room for them on the wire. A peer that takes in less than it asks for
loses its link. When it comes back it is told everything anew, so nothing is lost by that.
"""

from __future__ import annotations

from collections import deque
from typing import Generic

from beforehand.protocols.contract.base import FrameT
from beforehand.protocols.vcube.frames import CubeFrame


class HeldFrames(Generic[FrameT]):
    """One link: nothing is postponed."""

    def __init__(self) -> None:
        self.out: deque[FrameT] = deque()
        """What waits for room on the wire."""
        self.news: deque[bytes] = deque()
        """What came and must wait, as it came."""
        self.news_bytes = 0
        self.held_since: float | None = None
        """When something came that must wait, and for which others wait."""

    def must_wait(self, *, is_open: bool) -> bool:
        """Whether a frame must be held. is_open: whether the program takes in more."""
        return False

    def may_go_on(self, *, is_open: bool) -> bool:
        """Whether a frame that was held can be taken in now."""
        return False

    def hold(self, news: bytes, now: float) -> None:
        self.news.append(news)
        self.news_bytes += len(news)

    def next_news(self) -> bytes:
        news = self.news.popleft()
        self.news_bytes -= len(news)
        return news


class VCubeHeldFrames(HeldFrames[CubeFrame]):
    """A link of an overlay: while its program does not read, a node takes in nothing. It passes on
    nothing then either, so peers must not take it for a node that does for long."""

    def must_wait(self, *, is_open: bool) -> bool:
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
