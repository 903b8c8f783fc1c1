"""Proof that a message is its origin's: a signature over id, past, payload and stamp.

It travels with the message and is the same at every hop, so whoever forwards a message can change
nothing in it. How signatures are made and checked is not known here: a group hands in two pure
functions, and the keys stay with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from beforehand.errors import LocalError
from beforehand.protocols.contract.base import PROOF_BYTES_MAX, Message, NodeId

Sign = Callable[[bytes], bytes]
"""The signature of this node over the bytes."""
SignAll = Callable[[Sequence[bytes]], Sequence[bytes]]
"""The same for several; each of them is checked alone."""
Signed = tuple[NodeId, bytes, bytes]
"""(origin, bytes, signature)"""
CheckSignature = Callable[[NodeId, bytes, bytes], bool]
"""Is it the origin's? For any signature, however long, an answer and never an exception; False for
an origin that is not known."""
CheckAll = Callable[[Sequence[Signed]], Sequence[bool]]
"""The same for several."""

SIGNED_PREFIX = b"beforehand message 1\n"
"""What is signed here is signed for nothing else; the number is that of this layout."""

MessageT = TypeVar("MessageT", bound=Message)

_encode = msgspec.msgpack.encode


def signed_bytes(group: str, message: Message) -> bytes:
    """What the origin signs: no two messages, nor two groups, have it in common.

    A stamp of 0 is left out. So messages without lifetimes are signed as they always were, and the
    proofs in their stores stay valid.
    """
    signed = (group, message.id, message.past, message.payload)
    return SIGNED_PREFIX + _encode((*signed, message.stamp) if message.stamp else signed)


class Proofs:
    """How the members of one group prove and check who said what."""

    def __init__(
        self,
        group: str,
        sign: Sign,
        check: CheckSignature,
        sign_all: SignAll | None = None,
        check_all: CheckAll | None = None,
    ) -> None:
        """group: its name is signed too, so that nothing said in one group counts in another.
        sign_all, check_all: where several at once cost less than each for itself."""
        self.group = group
        self._sign = sign
        self._check = check
        self._sign_all = sign_all
        self._check_all = check_all

    def prove(self, message: MessageT) -> MessageT:
        """The message with the proof that it is ours; everything else stays."""
        return self._with(message, self._sign(signed_bytes(self.group, message)))

    def prove_all(self, messages: Sequence[MessageT]) -> list[MessageT]:
        """Each with its proof."""
        if self._sign_all is None or len(messages) == 1:
            return [self.prove(message) for message in messages]
        proofs = self._sign_all([signed_bytes(self.group, message) for message in messages])
        return [self._with(*pair) for pair in zip(messages, proofs, strict=True)]

    def _with(self, message: MessageT, proof: bytes) -> MessageT:
        if not 0 < len(proof) <= PROOF_BYTES_MAX:
            raise LocalError(
                f"a signature of {len(proof)} bytes",
                where=f"group {self.group}, message {message.id}",
                hint=f"a signature has 1 to {PROOF_BYTES_MAX} bytes",
            )
        return msgspec.structs.replace(message, proof=proof)

    def is_proven(self, message: Message) -> bool:
        """Did its origin say just this, in this group?"""
        if not message.proof:
            return False
        return self._check(message.origin, signed_bytes(self.group, message), message.proof)

    def proven(self, messages: Sequence[MessageT]) -> Sequence[MessageT]:
        """Those of them that are."""
        if self._check_all is None:
            return [message for message in messages if self.is_proven(message)]
        group = self.group
        signed = [(m.origin, signed_bytes(group, m), m.proof) for m in messages if m.proof]
        found = self._check_all(signed)
        if len(signed) == len(messages) and all(found):
            return messages
        with_proof = [message for message in messages if message.proof]
        return [message for message, is_signed in zip(with_proof, found, strict=True) if is_signed]
