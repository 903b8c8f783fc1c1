"""Signatures for the checkers: fast, deterministic, and from a signer that may fail.

They are not cryptographically secure. A hostile net only needs to detect a message that was
altered, or that another node signed.
"""

from __future__ import annotations

import hashlib
from typing import Literal

from beforehand.errors import LocalError
from beforehand.protocols.contract.base import NodeId
from beforehand.protocols.contract.proof import Proofs
from beforehand.sim.streams import mix

Signing = Literal["none", "sound", "failing"]
PROOF_BYTES = 8
FAILS_ONE_IN = 3


class Signer:
    """Signs for one node. Its only state is a call count, so its node can be copied."""

    def __init__(self, node: NodeId, *, fails: bool, seed: int) -> None:
        self._node = node
        self._fails = fails
        self._seed = seed
        self._calls = 0

    def __call__(self, data: bytes) -> bytes:
        self._calls += 1
        if self._fails and mix(self._seed, self._calls) % FAILS_ONE_IN == 0:
            raise LocalError("the signer failed", where=f"node {self._node}", hint="try again")
        return _signature(self._node, data)


def make_proofs(signing: Signing, node: NodeId, seed: int) -> Proofs | None:
    """Return what a node needs to sign and verify messages, or None if they are unsigned."""
    if signing == "none":
        return None
    return Proofs("net", Signer(node, fails=signing == "failing", seed=seed), is_signature)


def is_signature(origin: NodeId, data: bytes, proof: bytes) -> bool:
    return proof == _signature(origin, data)


def _signature(node: NodeId, data: bytes) -> bytes:
    key = str(node).encode()[-64:]
    return hashlib.blake2b(data, digest_size=PROOF_BYTES, key=key).digest()
