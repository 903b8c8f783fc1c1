"""What neighbours say to each other in the opportunistic layer, and how many bytes it takes.

Sizes are those that simulations count with: an id is 12 bytes, whatever its origin is called. What
`protocols.contract.codec` makes of a frame may be smaller or larger; docs/wire.md says by how much.

Each frame declares with `stored_ids` which messages it claims to be stored at its sender. A node
with flow control sends a frame only when the disk has all of these (rule I6 of
`protocols.epidemic.flow_control`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import Annotated, ClassVar

import msgspec

from beforehand.protocols.contract.base import Count, Message, MessageId
from beforehand.protocols.contract.codec import in_order

NONE: frozenset[MessageId] = frozenset()
FRAME_BYTES = 8
ID_BYTES = 12
MESSAGE_BYTES = ID_BYTES + 4
"""Of a message without causes, payload and proof."""
IDS_MAX = 2048
"""In one set of a frame. Ids can be made whose hashes all collide, and a set of n of those takes
n² steps to build: 0.05 s for these, minutes for as many as a frame could hold."""

Ids = Annotated[frozenset[MessageId], msgspec.Meta(max_length=IDS_MAX)]


class Announce(msgspec.Struct, frozen=True, array_like=True, tag="announce"):
    """I hold these. `number` is what an acknowledgement names."""

    number: Count
    ids: Ids

    @property
    def size_bytes(self) -> int:
        return FRAME_BYTES + ID_BYTES * len(self.ids)

    @property
    def stored_ids(self) -> Collection[MessageId]:
        return self.ids


class Request(msgspec.Struct, frozen=True, array_like=True, tag="request"):
    """Send me these. Acknowledges the announcement `heard` (0: none), perhaps asking nothing."""

    heard: Count
    ids: Ids

    @property
    def size_bytes(self) -> int:
        return FRAME_BYTES + ID_BYTES * len(self.ids)

    @property
    def stored_ids(self) -> Collection[MessageId]:
        return ()  # it tells what the sender lacks


class Data(msgspec.Struct, frozen=True, array_like=True, tag="data"):
    """What was asked for, and what of it is here no more."""

    messages: tuple[Message, ...]
    gone: Ids = NONE

    @property
    def size_bytes(self) -> int:
        return FRAME_BYTES + ID_BYTES * len(self.gone) + _messages_bytes(self.messages)

    @property
    def stored_ids(self) -> Collection[MessageId]:
        return [message.id for message in self.messages]

    def flaw(self) -> str:
        """What is wrong with it beyond types; empty if nothing is."""
        return _flaw_of(self.messages)


class Push(msgspec.Struct, frozen=True, array_like=True, tag="push"):
    """What was just said here, unasked. Whoever carries frames may take or send an announcement of
    it in its place, for want of room: then it is asked for."""

    gone: ClassVar[Ids] = NONE
    messages: tuple[Message, ...]

    @property
    def size_bytes(self) -> int:
        return FRAME_BYTES + _messages_bytes(self.messages)

    @property
    def stored_ids(self) -> Collection[MessageId]:
        return [message.id for message in self.messages]

    def flaw(self) -> str:
        """As of `Data`."""
        return _flaw_of(self.messages)


# The tags of the next three frames are those of their former names (Reached, Behind, Greeting): a
# tag is what is on the wire, and nodes of other versions know it.
class Digest(msgspec.Struct, frozen=True, array_like=True, tag="reached"):
    """I have come so far: these are delivered, and all before them of the same origins."""

    ids: Ids

    @property
    def size_bytes(self) -> int:
        return FRAME_BYTES + ID_BYTES * len(self.ids)

    @property
    def stored_ids(self) -> Collection[MessageId]:
        return self.ids


class Want(msgspec.Struct, frozen=True, array_like=True, tag="behind"):
    """I have only come so far with these origins: announce what you hold beyond."""

    ids: Ids

    @property
    def size_bytes(self) -> int:
        return FRAME_BYTES + ID_BYTES * len(self.ids)

    @property
    def stored_ids(self) -> Collection[MessageId]:
        return ()  # it holds for this contact, which a crash of the sender ends


class SyncHello(msgspec.Struct, frozen=True, array_like=True, tag="greeting"):
    """We are in contact, and I have come so far with these origins: announce what you hold beyond,
    and all that you hold of others."""

    ids: Ids

    @property
    def size_bytes(self) -> int:
        return FRAME_BYTES + ID_BYTES * len(self.ids)

    @property
    def stored_ids(self) -> Collection[MessageId]:
        return ()  # it holds for this contact, which a crash of the sender ends


Frame = Announce | Request | Data | Push | Digest | Want | SyncHello


def message_bytes(message: Message) -> int:
    """What a message takes on the wire: its id, its barrier, its payload and its proof. Its stamp
    is not counted, as the paper's messages have none."""
    return MESSAGE_BYTES + ID_BYTES * len(message.past) + len(message.payload) + len(message.proof)


def _messages_bytes(messages: Sequence[Message]) -> int:
    """Return the sum of `message_bytes`. It does not call that: a simulation asks very often."""
    rests = [ID_BYTES * len(m.past) + len(m.payload) + len(m.proof) for m in messages]
    return MESSAGE_BYTES * len(messages) + sum(rests)


def split_ids(ids: Collection[MessageId], bytes_max: int) -> Iterator[frozenset[MessageId]]:
    """Cut into sets, each for one frame of at most `bytes_max` and `IDS_MAX` ids, but of one at
    least.

    No ids, no sets: who has something to say without any sends that frame itself.
    """
    count = min(max(1, (bytes_max - FRAME_BYTES) // ID_BYTES), IDS_MAX)
    if 0 < len(ids) <= count:
        yield frozenset(ids)
        return
    # Sorted, so that a run does not depend on how strings happen to be hashed.
    ordered = in_order(ids)
    for start in range(0, len(ordered), count):
        yield frozenset(ordered[start : start + count])


def batches(
    messages: Sequence[Message], bytes_max: int, messages_max: int | None = None
) -> Iterator[tuple[Message, ...]]:
    """Cut into frames of at most `bytes_max` and `messages_max`; a message larger than that goes
    alone."""
    batch: list[Message] = []
    room = bytes_max
    for message in messages:
        size = message_bytes(message)
        if batch and (size > room or len(batch) == messages_max):
            yield tuple(batch)
            batch, room = [], bytes_max
        batch.append(message)
        room -= size
    if batch:
        yield tuple(batch)


def _flaw_of(messages: tuple[Message, ...]) -> str:
    if _has_twins([message.id for message in messages]):
        return "a message comes twice"
    for message in messages:
        if _has_twins(message.past):
            return f"message {message.id} names a cause twice"
    return ""


def _has_twins(ids: Sequence[MessageId]) -> bool:
    # By order, not by hash: see IDS_MAX.
    return len(ids) > 1 and any(one == other for one, other in pairwise(in_order(ids)))
