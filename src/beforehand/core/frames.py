"""What neighbours say to each other in the opportunistic layer, and how many bytes it takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from beforehand.core.base import Message, MessageId

NONE: frozenset[MessageId] = frozenset()
FRAME_BYTES = 8
ID_BYTES = 12


class Announce(msgspec.Struct, frozen=True, array_like=True, tag="announce"):
    """I hold these. `number` is what an acknowledgement names."""

    number: int
    ids: frozenset[MessageId]

    @property
    def size_bytes(self) -> int:
        return FRAME_BYTES + ID_BYTES * len(self.ids)


class Request(msgspec.Struct, frozen=True, array_like=True, tag="request"):
    """Send me these. Acknowledges the announcement `heard` (0: none), perhaps asking nothing."""

    heard: int
    ids: frozenset[MessageId]

    @property
    def size_bytes(self) -> int:
        return FRAME_BYTES + ID_BYTES * len(self.ids)


class Data(msgspec.Struct, frozen=True, array_like=True, tag="data"):
    """What was asked for, and what of it is here no more."""

    messages: tuple[Message, ...]
    gone: frozenset[MessageId] = NONE

    @property
    def size_bytes(self) -> int:
        return FRAME_BYTES + ID_BYTES * len(self.gone) + sum(map(message_bytes, self.messages))


Frame = Announce | Request | Data


def message_bytes(message: Message) -> int:
    """What a message takes on the wire: its id, its barrier and its payload."""
    return ID_BYTES * (1 + len(message.past)) + len(message.payload) + 4


def split_ids(ids: frozenset[MessageId], bytes_max: int) -> Iterator[frozenset[MessageId]]:
    """Cut into frames of at most `bytes_max`, of one id at least. No ids, no frame."""
    count = max(1, (bytes_max - FRAME_BYTES) // ID_BYTES)
    if len(ids) <= count:
        if ids:
            yield ids
        return
    ordered = sorted(ids, key=lambda id: (type(id[0]) is str, id))  # numbers before names
    for at in range(0, len(ordered), count):
        yield frozenset(ordered[at : at + count])


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
