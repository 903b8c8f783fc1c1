"""Messages of the stamped order: their deadlines, and the digests by which they name their causes.

The id of a message is (writer, stamp). The stamp is larger than the stamp of every cause, and says
nothing about the deadline, which is a field of its own. A past entry has the id of a cause, its
deadline and its digest. The digest covers all that the writer signs. So two messages that a writer
sent under one id are told apart wherever they are named.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import msgspec

from beforehand.protocols.contract.base import Int62, Message, MessageId

DIGEST_BYTES = 16
"""Two own messages with equal digests cost their writer 2^64 hashes. With 8 bytes they would cost
2^32, an afternoon."""
NO_DIGEST = bytes(DIGEST_BYTES)
PAST_MAX = 512
"""The largest number of causes that a message names. A writer folds more into merge messages."""

Digest = Annotated[bytes, msgspec.Meta(min_length=DIGEST_BYTES, max_length=DIGEST_BYTES)]
Known = tuple[Int62, Digest]
"""The deadline and the digest of a message."""
Causes = Annotated[tuple[Known, ...], msgspec.Meta(max_length=PAST_MAX)]
CauseKey = tuple[MessageId, bytes]
"""The id and the digest of a cause: two branches of a fork have two keys."""

_encode = msgspec.msgpack.Encoder(enc_hook=int).encode  # the explorer's nodes are a kind of int


class StampedMessage(Message, frozen=True, array_like=True, gc=False):
    """One message of the stamped order. The seq of its id is its stamp; `stamp` stays 0."""

    HEAD_MORE: ClassVar[int] = 4 + DIGEST_BYTES
    """On the wire, a deadline takes 4 bytes: its distance from the stamp in units of 10 ms."""
    CAUSE_MORE: ClassVar[int] = 4 + DIGEST_BYTES

    deadline: Int62 = 0
    causes: Causes = ()
    """The deadline and the digest of each message in `past`, in its order."""
    previous: Digest = NO_DIGEST
    """The digest of the writer's previous message; zeros for its first."""
    is_merge: bool = False
    """Whether the message only folds causes. The application never sees it."""

    @property
    def deadline_us(self) -> int:
        return self.deadline

    @property
    def is_internal(self) -> bool:
        return self.is_merge

    def signed_fields(self) -> tuple[Any, ...]:
        return (_header(self),)

    def entries(self) -> Iterable[tuple[MessageId, Known]]:
        """Return id, deadline and digest of each cause."""
        return zip(self.past, self.causes, strict=True)

    def flaw(self) -> str:
        """Return the first error that the types do not exclude, or "" if there is none."""
        if len(self.causes) != len(self.past):
            return "its causes do not fit its past"
        if self.stamp:
            return "it has a second stamp"
        keys = [(id[1], str(id[0]), digest) for id, (_, digest) in self.entries()]
        if any(one >= other for one, other in pairwise(keys)):
            return "its causes are not in order, or one comes twice"
        if self.past and self.past[-1][1] >= self.id[1]:
            return "its stamp is not above those of its causes"
        return "" if not (self.is_merge and self.payload) else "a merge has a payload"


def digest_of(message: StampedMessage) -> bytes:
    """Return the digest by which other messages name this one."""
    return blake2b(_header(message), digest_size=DIGEST_BYTES).digest()


def in_past_order(keys: Iterable[CauseKey]) -> list[CauseKey]:
    """Return causes in the only order that a past may have: by stamp, writer and digest. A message
    waits for the first cause that it lacks, so for the one with the smallest stamp."""
    return sorted(keys, key=lambda key: (key[0][1], str(key[0][0]), key[1]))


def _header(message: StampedMessage) -> bytes:
    """Return what identifies the message, with hashes in place of its past and its payload: two
    signed headers with one `previous` prove a fork, without the contents."""
    past = blake2b(_encode((message.past, message.causes)), digest_size=32).digest()
    payload = blake2b(message.payload, digest_size=32).digest()
    fixed = (message.id, message.previous, message.deadline, message.is_merge)
    return _encode((*fixed, past, payload))
