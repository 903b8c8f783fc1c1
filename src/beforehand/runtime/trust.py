"""Whose key is whose: a name is bound to the first key it is seen with."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from beforehand.core.base import NodeId
from beforehand.runtime.keys import MemberKey

NAMES_MAX = 65_536


class TrustCounters(msgspec.Struct):
    bound: int = 0
    """Names seen for the first time."""
    wrong_key: int = 0
    """Another key for a name that is bound."""
    forged: int = 0
    """A signature that is not that of its key."""
    malformed: int = 0
    """No proof at all: another length, or an origin that is no name."""
    too_many_names: int = 0
    """A first sight when NAMES_MAX names were known."""


class Trust:
    """`sign` and `check` are what `core.proof.Proofs` takes."""

    def __init__(
        self,
        own_name: str,
        own: MemberKey,
        bound: Mapping[str, bytes],
        on_bind: Callable[[str, bytes], None],
    ) -> None:
        self.counters = TrustCounters()

    def sign(self, data: bytes) -> bytes:
        """Public key and signature, 96 bytes: who never met the origin can check it."""
        raise NotImplementedError

    def check(self, origin: NodeId, data: bytes, proof: bytes) -> bool:
        raise NotImplementedError

    def meet(self, name: str, public: bytes) -> bool:
        """Of somebody who has proven to hold the key: may it go by that name?"""
        raise NotImplementedError
