"""The frames of the epidemic layer, and their sizes in simulations.

Simulations count 12 bytes per id, whatever the name of the origin. The encoded frame of
`protocols.contract.codec` may be smaller or larger; docs/wire.md says by how much.

`stored_ids` returns the messages that a frame claims to be stored at its sender. A node with flow
control sends a frame only when the disk has all of these (rule I6 of
`protocols.epidemic.flow_control`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Annotated, ClassVar

import msgspec

from beforehand.protocols.contract.base import Count, Message, MessageId
from beforehand.protocols.contract.codec import in_order

NONE: frozenset[MessageId] = frozenset()
FRAME_BYTES = 8
ID_BYTES = 12
MESSAGE_BYTES = ID_BYTES + 4
"""The size of a message without causes, payload and proof."""
IDS_MAX = 2048
"""The largest number of ids in one set of a frame. A hostile peer can choose ids whose hashes all
collide, and to build a set of n of those takes n² steps. For 2048 ids that is 0.05 s; for as many
as a frame could hold it is minutes."""

_seq = itemgetter(1)
Ids = Annotated[frozenset[MessageId], msgspec.Meta(max_length=IDS_MAX)]


class Announce(msgspec.Struct, frozen=True, array_like=True, tag="announce"):
    """The sender holds these messages. The acknowledgement names `number`."""

    number: Count
    ids: Ids

    @property
    def size_bytes(self) -> int:
        return FRAME_BYTES + ID_BYTES * len(self.ids)

    @property
    def stored_ids(self) -> Collection[MessageId]:
        return self.ids


class Request(msgspec.Struct, frozen=True, array_like=True, tag="request"):
    """The sender requests these messages, perhaps none. The number of the announcement
    that it acknowledges is `acknowledged` (0: none)."""

    acknowledged: Count
    ids: Ids

    @property
    def size_bytes(self) -> int:
        return FRAME_BYTES + ID_BYTES * len(self.ids)

    @property
    def stored_ids(self) -> Collection[MessageId]:
        return ()  # it lists messages that the sender lacks


class Data(msgspec.Struct, frozen=True, array_like=True, tag="data"):
    """The answer to a request: messages, and in `gone` the requested ids that the sender does not
    hold any more."""

    messages: tuple[Message, ...]
    gone: Ids = NONE

    @property
    def size_bytes(self) -> int:
        return FRAME_BYTES + ID_BYTES * len(self.gone) + _messages_bytes(self.messages)

    @property
    def stored_ids(self) -> Collection[MessageId]:
        return [message.id for message in self.messages]

    def flaw(self) -> str:
        """Return the first error that the types do not exclude, or "" if there is none."""
        return _flaw_of(self.messages)


class Push(msgspec.Struct, frozen=True, array_like=True, tag="push"):
    """Own messages of the sender, sent without a request. Under back-pressure either end may
    replace it by an announcement of these messages, which the receiver then requests."""

    gone: ClassVar[Ids] = NONE
    messages: tuple[Message, ...]

    @property
    def size_bytes(self) -> int:
        return FRAME_BYTES + _messages_bytes(self.messages)

    @property
    def stored_ids(self) -> Collection[MessageId]:
        return [message.id for message in self.messages]

    def flaw(self) -> str:
        """Return the first error, as `Data.flaw` does."""
        return _flaw_of(self.messages)


# The tags of the next three frames are their former names (Reached, Behind, Greeting). Tags are on
# the wire, and nodes of other versions know only these.
class Digest(msgspec.Struct, frozen=True, array_like=True, tag="reached"):
    """The highest delivered sequence number per origin, for some origins. All earlier messages of
    these origins are delivered too, or never will be."""

    ids: Ids

    @property
    def size_bytes(self) -> int:
        return FRAME_BYTES + ID_BYTES * len(self.ids)

    @property
    def stored_ids(self) -> Collection[MessageId]:
        return self.ids


class Want(msgspec.Struct, frozen=True, array_like=True, tag="behind"):
    """The sender's version vector for some origins, on which it is behind. The receiver announces
    the messages of these origins that it holds beyond."""

    ids: Ids

    @property
    def size_bytes(self) -> int:
        return FRAME_BYTES + ID_BYTES * len(self.ids)

    @property
    def stored_ids(self) -> Collection[MessageId]:
        return ()  # it is valid until link-down, and a crash causes one


class SyncHello(msgspec.Struct, frozen=True, array_like=True, tag="greeting"):
    """The sender's version vector, sent on link-up. The receiver announces what it holds beyond,
    and all that it holds of origins that the vector does not name."""

    ids: Ids

    @property
    def size_bytes(self) -> int:
        return FRAME_BYTES + ID_BYTES * len(self.ids)

    @property
    def stored_ids(self) -> Collection[MessageId]:
        return ()  # it is valid until link-down, and a crash causes one


class Missing(msgspec.Struct, frozen=True, array_like=True, tag="missing"):
    """Messages of the sender wait for these, and it received none of them. Only from orders that
    can give up causes (`protocols.epidemic.skipping`)."""

    ids: Ids

    @property
    def size_bytes(self) -> int:
        return FRAME_BYTES + ID_BYTES * len(self.ids)

    @property
    def stored_ids(self) -> Collection[MessageId]:
        return ()  # it lists messages that the sender lacks


class NotHeld(msgspec.Struct, frozen=True, array_like=True, tag="notheld"):
    """The answer to `Missing`, for messages that the sender does not hold. It delivered those in
    `gone` or gave them up, and never had those in `unknown`. It has announced all that it holds."""

    gone: Ids
    unknown: Ids

    @property
    def size_bytes(self) -> int:
        return FRAME_BYTES + ID_BYTES * (len(self.gone) + len(self.unknown))

    @property
    def stored_ids(self) -> Collection[MessageId]:
        return ()  # it lists messages that the sender lacks

    def flaw(self) -> str:
        """Return the first error that the types do not exclude, or "" if there is none."""
        return "a message is gone and unknown" if self.gone & self.unknown else ""


SkipFrame = Missing | NotHeld
Frame = Announce | Request | Data | Push | Digest | Want | SyncHello | SkipFrame


def message_bytes(message: Message) -> int:
    """Return the size of a message: its id, its barrier, its payload and its proof. The stamp does
    not count, because the paper's messages have none."""
    return _messages_bytes((message,))


def _messages_bytes(messages: Sequence[Message]) -> int:
    """Return the sum of `message_bytes`, without its calls: simulations need it very often."""
    rests = [
        (ID_BYTES + m.CAUSE_MORE) * len(m.past) + m.HEAD_MORE + len(m.payload) + len(m.proof)
        for m in messages
    ]
    return MESSAGE_BYTES * len(messages) + sum(rests)


def by_seq(ids: Iterable[MessageId]) -> list[MessageId]:
    """Return the ids in the order of (seq, origin): causes mostly before their effects."""
    return sorted(in_order(ids), key=_seq)


def split_ids(ids: Collection[MessageId], bytes_max: int) -> Iterator[frozenset[MessageId]]:
    """Split ids into sets for one frame each, of at most `bytes_max` bytes and `IDS_MAX` ids.

    Each set has at least one id. Without ids there is no set: a caller that needs a frame without
    ids sends it itself.
    """
    count = min(max(1, (bytes_max - FRAME_BYTES) // ID_BYTES), IDS_MAX)
    if 0 < len(ids) <= count:
        yield frozenset(ids)
        return
    # Sorted, so that a run does not depend on the hashes of strings.
    ordered = by_seq(ids)
    for start in range(0, len(ordered), count):
        yield frozenset(ordered[start : start + count])


def batches(
    messages: Sequence[Message], bytes_max: int, messages_max: int | None = None
) -> Iterator[tuple[Message, ...]]:
    """Split messages into frames of at most `bytes_max` bytes and `messages_max` messages. A larger
    message gets a frame of its own."""
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
    # Compare sorted ids instead of building a set, because hashes may collide (see IDS_MAX).
    return len(ids) > 1 and any(one == other for one, other in pairwise(in_order(ids)))
