"""Bindings of names to public keys: trust on first use.

There is no authority that assigns names. A node binds a name to the first key that it sees with it,
and keeps the binding. From then on no other key can use the name, neither on a link nor in a
message. The proof of a message contains the origin's public key, so that a node that never had a
link with the origin can verify it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import groupby, pairwise

import msgspec
from nacl import bindings
from nacl.exceptions import CryptoError

from beforehand.errors import InputError
from beforehand.protocols.contract.base import NodeId
from beforehand.protocols.contract.proof import PROOF_HEAD_BYTES, Signed
from beforehand.runtime.crypto import merkle
from beforehand.runtime.crypto.keys import PUBLIC_BYTES, MemberKey, flaw_of_name

NAMES_MAX = 65_536
"""Bindings that a node keeps. It bounds the memory that a malicious member can consume."""
PROOF_PREFIX = b"beforehand proof 1\n"
"""Domain separation: a signature over a message is valid for nothing else."""


ROOT_PREFIX = b"beforehand tree 1\n"
SHOWN_MAX = 2048
"""Entries of the cache of verified path steps: those of some dozens of Merkle trees."""


class TrustCounters(msgspec.Struct):
    """Bindings made, and the reasons why proofs and introductions were rejected."""

    bound: int = 0
    """Names bound on first use."""
    wrong_key: int = 0
    """Uses of a bound name with another key."""
    blocked: int = 0
    """Messages and introductions with a key that the application has blocked."""
    forged: int = 0
    """Signatures that the public key does not verify."""
    malformed: int = 0
    """Proofs of a wrong length, and origins that are not valid names."""
    too_many_names: int = 0
    """First uses of a name that were rejected because NAMES_MAX names were bound."""


class Trust:
    """The name bindings of one node, and the signatures made and checked with them.

    `sign` and `check` are the functions that `protocols.contract.proof.Proofs` takes.
    """

    def __init__(
        self,
        own_name: str,
        own: MemberKey,
        bound: Mapping[str, bytes],
        on_bind: Callable[[str, bytes], None],
        blocked: Collection[bytes] = (),
    ) -> None:
        """Raise `InputError` if `own_name` is not valid, or is bound to another key than `own`.

        bound: the bindings saved by earlier incarnations.
        on_bind: called once for each new binding, before it takes effect.
        blocked: the public keys of which nothing is accepted.
        """
        if flaw := flaw_of_name(own_name):
            raise InputError(f"no name for a member: {flaw}", hint="choose another name")
        self.counters = TrustCounters()
        self._own = own
        self._keys = dict(bound)
        self._on_bind = on_bind
        self.blocked = set(blocked)
        self._shown: set[bytes] = set()
        """The cache of verified steps. An entry is the public key, the signature, and a step of a
        path that leads to a verified root. It contains all of them: with another signature or path,
        this node would accept and forward a proof that peers without the cache entry reject."""
        self._shown_before: set[bytes] = set()
        """The previous generation of `_shown`, which was replaced when it exceeded SHOWN_MAX."""
        if self._keys.setdefault(own_name, own.public) != own.public:
            problem = f"the name `{own_name}` is bound to another key"
            raise InputError(problem, hint="take another name, or the store that has its key")

    def sign(self, data: bytes) -> bytes:
        """Return a proof of 96 bytes: public key and signature."""
        return self._own.public + self._own.sign(_digest(data))

    def sign_all(self, datas: Sequence[bytes]) -> list[bytes]:
        """Return a proof for each; messages in one batch share the signature of a Merkle tree."""
        if len(datas) == 1:
            return [self.sign(datas[0])]
        count = len(datas)
        parts = -(-count // merkle.LEAVES_MAX)
        cuts = [part * count // parts for part in range(parts + 1)]  # no part has a single message
        return [proof for cut in pairwise(cuts) for proof in self._sign_tree(datas[slice(*cut)])]

    def _sign_tree(self, datas: Sequence[bytes]) -> list[bytes]:
        """Return one proof per message, all with the signature of one Merkle root."""
        root, paths = merkle.grow([merkle.leaf_of(data) for data in datas])
        start = self._own.public + self._own.sign(ROOT_PREFIX + root)
        return [start + path for path in paths]

    def check(self, origin: NodeId, data: bytes, proof: bytes, leaf: bytes = b"") -> bool:
        """Return whether the owner of the name `origin` signed the data.

        Bind the name on its first use.

        leaf: the Merkle leaf hash of the data, if the caller has computed it already.

        A call verifies at most one signature. A proof with the wrong key for a bound name is
        rejected before that.
        """
        is_alone = len(proof) == PROOF_HEAD_BYTES
        if not is_alone and not merkle.is_path(proof[PROOF_HEAD_BYTES:]):
            self.counters.malformed += 1
            return False
        known = self._keys.get(origin) if isinstance(origin, str) else None
        if not isinstance(origin, str) or (known is None and flaw_of_name(origin)):
            self.counters.malformed += 1
            return False
        public = proof[:PUBLIC_BYTES]
        if public in self.blocked:
            self.counters.blocked += 1
            return False
        if known is not None and known != public:
            self.counters.wrong_key += 1
            return False
        if is_alone:
            is_proven = is_signed(public, _digest(data), proof[PUBLIC_BYTES:])
        else:
            is_proven = self._leads_to_signed(leaf or merkle.leaf_of(data), proof)
        if not is_proven:
            self.counters.forged += 1
            return False
        return known is not None or self.meet(origin, public)

    def check_all(self, signed: Sequence[Signed]) -> list[bool]:
        """Return what `check` returns, for each.

        If a whole batch arrives together, as it does from its origin, the tree is rebuilt from its
        leaves. That costs half of verifying the paths one by one.
        """
        found: list[bool] = []
        for (origin, start), group in groupby(signed, key=_signer):
            together = list(group)
            public = start[:PUBLIC_BYTES]
            is_known = isinstance(origin, str) and self._keys.get(origin) == public
            is_known = is_known and public not in self.blocked
            leaves = [b""] * len(together)
            if is_known and 2 <= len(together) <= merkle.LEAVES_MAX:
                leaves = [merkle.leaf_of(data) for _, data, _ in together]
                if _is_whole_tree(
                    start, leaves, [proof[PROOF_HEAD_BYTES:] for *_, proof in together]
                ):
                    found += [True] * len(together)
                    continue
            # The batch may be incomplete though valid, or one of its messages may be forged.
            found += [self.check(*one, leaf) for one, leaf in zip(together, leaves, strict=True)]
        return found

    def _leads_to_signed(self, leaf: bytes, proof: bytes) -> bool:
        """Return whether the path leads to a root with a valid signature."""
        start, step, climbed = proof[:PROOF_HEAD_BYTES], b"", []
        for step in merkle.climb(leaf, proof[PROOF_HEAD_BYTES:]):
            place = start + step
            if place in self._shown or place in self._shown_before:
                break
            climbed.append(place)
        else:
            signed = ROOT_PREFIX + step.removeprefix(merkle.TOP)
            if not is_signed(proof[:PUBLIC_BYTES], signed, proof[PUBLIC_BYTES:PROOF_HEAD_BYTES]):
                return False
        self._shown.update(climbed)
        if len(self._shown) > SHOWN_MAX:
            self._shown_before, self._shown = self._shown, set()
        return True

    def meet(self, name: str, public: bytes) -> bool:
        """Return whether a peer that has proven to hold the key may use the name.

        Bind the name on its first use.
        """
        if public in self.blocked:
            self.counters.blocked += 1
            return False
        known = self._keys.get(name)
        if known is not None:
            self.counters.wrong_key += known != public
            return known == public
        if len(self._keys) >= NAMES_MAX:
            self.counters.too_many_names += 1
            return False
        self._on_bind(name, public)  # save first: a binding that was not saved must not take effect
        self._keys[name] = public
        self.counters.bound += 1
        return True

    @property
    def own_public(self) -> bytes:
        """The public key of this node."""
        return self._own.public

    def key_of(self, name: str) -> bytes | None:
        """Return the key that the name is bound to, or None."""
        return self._keys.get(name)


def is_signed(public: bytes, data: bytes, signature: bytes) -> bool:
    """Return whether the signature over the data verifies with the public key."""
    try:
        bindings.crypto_sign_open(signature + data, public)
    except CryptoError:
        return False
    return True


def _digest(data: bytes) -> bytes:
    # Ed25519 hashes its input with SHA-512, twice when signing. For long inputs it is faster to
    # hash once with BLAKE2b and to sign the digest.
    return PROOF_PREFIX + hashlib.blake2b(data).digest()


def _signer(signed: Signed) -> tuple[NodeId, bytes]:
    """Return the origin, the public key and the signature: equal for all messages of a batch."""
    origin, _, proof = signed
    return origin, proof[:PROOF_HEAD_BYTES]


def _is_whole_tree(start: bytes, leaves: Sequence[bytes], paths: Sequence[bytes]) -> bool:
    """Return whether these are all leaves of one tree, in order, with a validly signed root."""
    root, grown = merkle.grow(leaves)
    if paths != grown:
        return False
    return is_signed(start[:PUBLIC_BYTES], ROOT_PREFIX + root, start[PUBLIC_BYTES:])
