"""What the nodes of an opportunistic network agree on."""

from __future__ import annotations

from typing import Literal

import msgspec

from beforehand.core.cache import Eviction
from beforehand.errors import LocalError


class Options(msgspec.Struct, frozen=True):
    """How a group disseminates. The same for all its nodes."""

    announce_us: int = 0
    """News goes out at the next tick of this period; 0: at once."""
    retry_us: int | None = None
    """Repeat what was not answered within this time. None: links are reliable while they are up,
    announcements are not acknowledged and nothing is repeated."""
    capacity: int | None = None
    """How many messages a node can hold; None: all."""
    capacity_bytes: int | None = None
    """Of their payloads together; None: any number."""
    eviction: Eviction = "oldest"
    transfer: Literal["random", "oldest", "newest"] = "random"
    """Which of the messages that a neighbour asks for goes first."""
    frame_bytes_max: int = 16_384
    """A frame takes ids or messages until it is this full."""
    frame_messages_max: int | None = None
    """A data frame takes no more messages than this; None: as many as fit."""
    push: bool = False
    """Own messages go to whoever is in contact at once, and are not announced: a way instead of
    three. For links that lose nothing while they are up, since nobody misses what is lost."""
    marks_after: int | None = None
    """A neighbour that was told of so many messages of an origin and asked for none is told how far
    we have come with it instead (`core.marks`), and so is whoever comes into contact; None: never.
    For links that lose nothing, too."""

    def __post_init__(self) -> None:
        if self.push and self.retry_us is not None:
            hint = "choose one of `push` and `retry_us`: links that lose nothing, or that do"
            raise LocalError("a push that is lost is not repeated", hint=hint)
        if self.marks_after is not None and self.retry_us is not None:
            hint = "choose one of `marks_after` and `retry_us`: links that lose nothing, or that do"
            raise LocalError("a mark that is lost is not repeated", hint=hint)
