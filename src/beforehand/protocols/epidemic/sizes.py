"""How many bytes ids and messages take on the wire, and what fits into a frame.

`protocols.epidemic.frames` has the sizes that simulations count with; those here are for real names
and frames. A node accepts a message only if it fits into a frame with room to spare. So every
accepted message can be sent on.

`ids_bytes` is an upper bound of what `protocols.contract.codec` encodes. `wire_bytes` is one too,
unless a message with few causes has long names in it; then it is too small by a factor of 15 at
most. So a frame that is cut at 64 KiB by this count still has less than the 1 MiB that a frame may
have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from beforehand.protocols.contract.base import NAME_CHARS_MAX, Message, MessageId
from beforehand.protocols.contract.codec import BYTES_MAX
from beforehand.protocols.epidemic.frames import IDS_MAX

HEAD_BYTES = 32
"""Of a frame: version, tag, numbers and the headers of its lists. Also of a message."""
MESSAGE_BYTES_MAX = BYTES_MAX // 2
"""The largest message that a node accepts from a peer."""
OWN_BYTES_MAX = MESSAGE_BYTES_MAX // 2
"""The largest message that a node broadcasts. The margin is for peers that count differently."""
OBJECT_BYTES = 1024
"""What a held message takes besides its bytes: objects, indexes, the row of the store."""

_ID_HEAD = 13
"""A list of two, the head of a name, and a number of at most 9 bytes."""
_INT_ID = 19
_ID_MAX = _ID_HEAD + 4 * NAME_CHARS_MAX
_ID_USUAL = 32
_FEW = 8
"""Of so many causes the names are not looked at."""


def ids_bytes(ids: Sequence[MessageId]) -> int:
    """Return an upper bound of the encoded length of these ids."""
    try:
        names = "".join([id[0] for id in ids])  # type: ignore[misc]
    except TypeError:  # some origins are numbers
        named = [id for id in ids if isinstance(id[0], str)]
        return _INT_ID * (len(ids) - len(named)) + (ids_bytes(named) if named else 0)
    return _ID_HEAD * len(ids) + len(names.encode())


def wire_bytes(message: Message) -> int:
    """Return the encoded length of a message, nearly (see above)."""
    past = message.past
    causes = _ID_USUAL * (1 + len(past)) if len(past) <= _FEW else _ID_MAX + ids_bytes(past)
    return HEAD_BYTES + causes + len(message.payload) + len(message.proof)


def fits(message: Message, bytes_max: int) -> bool:
    """Whether its encoded length is at most `bytes_max`."""
    past, rest = message.past, HEAD_BYTES + _ID_MAX + len(message.payload) + len(message.proof)
    return rest + _ID_MAX * len(past) <= bytes_max or rest + ids_bytes(past) <= bytes_max


def held_bytes(message: Message) -> int:
    """Return what a held message counts against `capacity_bytes`."""
    return wire_bytes(message) + OBJECT_BYTES


def cut_ids(ids: Iterable[MessageId], bytes_max: int) -> Iterator[tuple[frozenset[MessageId], int]]:
    """Cut into sets for one frame each, with the bytes of that frame; the order is kept."""
    rest = iter(ids)
    while batch := list(islice(rest, IDS_MAX)):
        size = HEAD_BYTES + ids_bytes(batch)
        if size <= bytes_max or len(batch) == 1:
            yield frozenset(batch), size
            continue
        half = len(batch) // 2
        yield from cut_ids(batch[:half], bytes_max)
        yield from cut_ids(batch[half:], bytes_max)
