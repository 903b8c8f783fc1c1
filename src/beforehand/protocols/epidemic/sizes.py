"""The sizes of ids and messages on the wire, and the bounds for what fits into a frame.

`protocols.epidemic.frames` has the sizes that simulations count with; those here are for real names
and frames. A node accepts a message only if it fits into a frame with room to spare. So it can
forward every accepted message.

`ids_bytes` is an upper bound of the length that `protocols.contract.codec` encodes. `wire_bytes` is
an upper bound too, unless a message with few causes has long names; then it is too small by a
factor of 15 at most. So a frame filled to 64 KiB by this count stays below the 1 MiB that a frame
may have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from beforehand.protocols.contract.base import NAME_CHARS_MAX, Message, MessageId
from beforehand.protocols.contract.codec import BYTES_MAX
from beforehand.protocols.epidemic.frames import IDS_MAX

HEAD_BYTES = 32
"""The fixed part of a frame: version, tag, numbers and the headers of its lists. Also the fixed
part of a message."""
MESSAGE_BYTES_MAX = BYTES_MAX // 2
"""The largest message that a node accepts from a peer."""
OWN_BYTES_MAX = MESSAGE_BYTES_MAX // 2
"""The largest message that a node broadcasts. The margin is for peers that count differently."""
OBJECT_BYTES = 1024
"""The memory of a held message besides its bytes: objects, indexes, the row of the store."""

_ID_HEAD = 13
"""The head of a list of two, the head of a name, and a number of at most 9 bytes."""
_INT_ID = 19
_ID_MAX = _ID_HEAD + 4 * NAME_CHARS_MAX
_ID_USUAL = 32
_FEW = 8
"""Up to this many causes, `wire_bytes` does not measure their names."""
_HELD_ALONE = HEAD_BYTES + _ID_USUAL + OBJECT_BYTES
"""The size counted for a held message without causes, payload and proof, in bytes."""


def ids_bytes(ids: Sequence[MessageId]) -> int:
    """Return an upper bound of the encoded length of these ids."""
    try:
        names = "".join([id[0] for id in ids])  # type: ignore[misc]
    except TypeError:  # some origins are numbers
        named = [id for id in ids if isinstance(id[0], str)]
        return _INT_ID * (len(ids) - len(named)) + (ids_bytes(named) if named else 0)
    return _ID_HEAD * len(ids) + len(names.encode())


def wire_bytes(message: Message) -> int:
    """Return an estimate of the encoded length of a message (see the module)."""
    past = message.past
    causes = _ID_USUAL * (1 + len(past)) if len(past) <= _FEW else _ID_MAX + ids_bytes(past)
    more = message.HEAD_MORE + message.CAUSE_MORE * len(past)
    return HEAD_BYTES + causes + more + len(message.payload) + len(message.proof)


def fits(message: Message, bytes_max: int) -> bool:
    """Return whether the encoded length of a message is at most `bytes_max`."""
    past, rest = message.past, HEAD_BYTES + _ID_MAX + len(message.payload) + len(message.proof)
    rest += message.HEAD_MORE + message.CAUSE_MORE * len(past)
    return rest + _ID_MAX * len(past) <= bytes_max or rest + ids_bytes(past) <= bytes_max


def unfitting(messages: Sequence[Message], bytes_max: int) -> list[Message]:
    """Return the messages whose encoded length may be larger than `bytes_max`."""
    return [message for message in messages if not fits(message, bytes_max)]


def fitting(messages: Sequence[Message], bytes_max: int) -> Sequence[Message]:
    """Return the messages whose encoded length is at most `bytes_max`."""
    room = bytes_max - HEAD_BYTES - _ID_MAX
    for message in messages:  # most are far smaller: their causes need not be measured
        causes = (_ID_MAX + message.CAUSE_MORE) * len(message.past) + message.HEAD_MORE
        if len(message.payload) + len(message.proof) + causes > room:
            return [message for message in messages if fits(message, bytes_max)]
    return messages


def held_bytes(message: Message) -> int:
    """Return the bytes that a held message counts against `capacity_bytes`."""
    return wire_bytes(message) + OBJECT_BYTES


def held_bytes_sum(messages: Sequence[Message]) -> int:
    """Return the sum of `held_bytes`, without a call for each message that has few causes."""
    sizes = [
        (_ID_USUAL + message.CAUSE_MORE) * len(past)
        + (message.HEAD_MORE + len(message.payload) + len(message.proof))
        if len(past := message.past) <= _FEW
        else held_bytes(message) - _HELD_ALONE
        for message in messages
    ]
    return _HELD_ALONE * len(messages) + sum(sizes)


def cut_ids(ids: Iterable[MessageId], bytes_max: int) -> Iterator[tuple[frozenset[MessageId], int]]:
    """Split ids into sets for one frame each, in their order. Yield (set, size of its frame)."""
    rest = iter(ids)
    while batch := list(islice(rest, IDS_MAX)):
        size = HEAD_BYTES + ids_bytes(batch)
        if size <= bytes_max or len(batch) == 1:
            yield frozenset(batch), size
            continue
        half = len(batch) // 2
        yield from cut_ids(batch[:half], bytes_max)
        yield from cut_ids(batch[half:], bytes_max)
