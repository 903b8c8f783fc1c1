"""The parameters on which the nodes of an opportunistic network agree."""

from __future__ import annotations

from typing import Literal

import msgspec

from beforehand.errors import LocalError
from beforehand.protocols.epidemic.cache import Eviction


class Flow(msgspec.Struct, frozen=True):
    """The bounds of flow control on one link (`protocols.epidemic.flow_control`)."""

    window: int = 4096
    """The request window: the largest number of messages requested from a peer and not answered
    yet. A node cuts the link to a peer that requests more."""
    offers_max: int = 65_536
    """The largest number of a peer's offers that wait for the request window. The node drops
    further offers. It sends its version vector again when half of the waiting ones are done."""
    pushes_max: int = 64
    """The largest number of push frames that wait for room. The node announces later own messages
    instead."""
    announce_us: tuple[int, int] = (10_000, 40_000)
    """The range of the random delay after which a node announces messages of other origins. Of two
    peers that receive a message together, one then receives the other's announcement first and need
    not announce it back."""
    digest_us: tuple[int, int] = (500_000, 1_500_000)
    """The range of the random delay after which a node sends digests."""
    stall_us: int = 30_000_000
    """A node cuts the link to a peer that owes messages and sends nothing for this long."""


class Options(msgspec.Struct, frozen=True):
    """How the nodes of a group disseminate messages. The same for all of them."""

    announce_us: int = 0
    """A node announces new messages at the next tick of this period; 0: at once."""
    retry_us: int | None = None
    """A node repeats frames that were not answered within this time. None: links are reliable while
    they are up, peers do not acknowledge announcements, and nothing is repeated."""
    capacity: int | None = None
    """The largest number of messages that a node holds; None: no bound."""
    capacity_bytes: int | None = None
    """The largest total size of the held messages (`sizes.held_bytes`); None: no bound."""
    eviction: Eviction = "oldest"
    """Which message a full cache evicts."""
    transfer: Literal["random", "oldest", "newest"] = "random"
    """Which of the messages that a peer requests is sent first."""
    frame_bytes_max: int = 16_384
    """The size up to which a frame is filled with ids or messages."""
    frame_messages_max: int | None = None
    """The largest number of messages in a data frame; None: as many as fit."""
    push: bool = False
    """Whether a node sends own messages to all its peers at once instead of announcing them: one
    transit instead of three. It needs reliable links, because no node detects a lost push."""
    digest_after: int | None = None
    """After how many announced messages of an origin without a request a peer gets digests instead
    (`protocols.epidemic.version_vector`). With a number, peers also exchange version vectors on
    link-up. None: neither. It needs reliable links, too."""
    flow: Flow | None = None
    """The bounds of flow control, for real links: a node sends frames as the wire takes them. None:
    a link takes any number of frames at once, as in a simulation."""

    patience_us: int | None = 120_000_000
    """How long a node of an order with a floor waits for a cause that no peer holds before it gives
    it up (`protocols.epidemic.skipping`); None: until the cause expires."""

    @property
    def is_bounded(self) -> bool:
        """Return whether a node holds only so much."""
        return self.capacity is not None or self.capacity_bytes is not None

    def __post_init__(self) -> None:
        if self.push and self.retry_us is not None:
            hint = "choose one of `push` and `retry_us`: links that lose nothing, or that do"
            raise LocalError("a push that is lost is not repeated", hint=hint)
        if self.digest_after is not None and self.retry_us is not None:
            hint = (
                "choose one of `digest_after` and `retry_us`: links that lose nothing, or that do"
            )
            raise LocalError("a digest that is lost is not repeated", hint=hint)
        if self.flow is not None and (not self.push or self.digest_after is None):
            hint = "set `push` and `digest_after`, or leave `flow` out"
            raise LocalError("flow control needs version vectors on reliable links", hint=hint)
