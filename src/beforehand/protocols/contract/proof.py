"""The proof that a message comes from its origin: a signature over id, past, payload and stamp.

The proof travels with the message and is the same at every hop, so no forwarding node can change
the message. This module does not know how signatures are made and checked: a group passes in two
pure functions, which hold the keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from beforehand.errors import LocalError
from beforehand.protocols.contract.base import PROOF_BYTES_MAX, Message, NodeId

Sign = Callable[[bytes], bytes]
"""Returns the signature of this node over the bytes."""
SignAll = Callable[[Sequence[bytes]], Sequence[bytes]]
"""Returns one signature for each of several byte strings; each can be checked alone."""
Signed = tuple[NodeId, bytes, bytes]
"""(origin, bytes, signature)"""
CheckSignature = Callable[[NodeId, bytes, bytes], bool]
"""Returns whether the signature is the origin's; False for an unknown origin. It never raises,
however long the signature is."""
CheckAll = Callable[[Sequence[Signed]], Sequence[bool]]
"""Returns the same for each of several signatures."""

SIGNED_PREFIX = b"beforehand message 1\n"
"""The prefix of all signed bytes (domain separation): a signature is valid for nothing else. The
number is the version of this layout."""

PROOF_HEAD_BYTES = 96
"""Public key and signature. Proofs of messages that were signed together have the same head."""

MessageT = TypeVar("MessageT", bound=Message)

_encode = msgspec.msgpack.encode


def signed_bytes(group: str, message: Message) -> bytes:
    """Return the bytes that the origin signs. They differ for any two messages and any two
    groups."""
    return SIGNED_PREFIX + _encode((group, *message.signed_fields()))


class Proofs:
    """Signs own messages and checks the proofs of others, for one group."""

    def __init__(
        self,
        group: str,
        sign: Sign,
        check: CheckSignature,
        sign_all: SignAll | None = None,
        check_all: CheckAll | None = None,
    ) -> None:
        """Take the functions that sign and check.

        group: its name is signed too, so that a message of one group is not valid in another.
        sign_all, check_all: given where a batch costs less than its members one by one.
        """
        self.group = group
        self._sign = sign
        self._check = check
        self._sign_all = sign_all
        self._check_all = check_all

    def prove(self, message: MessageT) -> MessageT:
        """Return the message with this node's proof; all other fields stay."""
        return self._with(message, self._sign(signed_bytes(self.group, message)))

    def prove_all(self, messages: Sequence[MessageT]) -> list[MessageT]:
        """Return each message with this node's proof."""
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
        """Return whether the origin broadcast exactly this message in this group."""
        if not message.proof:
            return False
        return self._check(message.origin, signed_bytes(self.group, message), message.proof)

    def proven(self, messages: Sequence[MessageT]) -> Sequence[MessageT]:
        """Return the messages that have a valid proof."""
        if self._check_all is None:
            return [message for message in messages if self.is_proven(message)]
        group = self.group
        signed = [(m.origin, signed_bytes(group, m), m.proof) for m in messages if m.proof]
        found = self._check_all(signed)
        if len(signed) == len(messages) and all(found):
            return messages
        with_proof = [message for message in messages if message.proof]
        return [message for message, is_signed in zip(with_proof, found, strict=True) if is_signed]
