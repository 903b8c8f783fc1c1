"""Whose key is whose: a name is bound to the first key it is seen with, and stays so.

There is nobody to ask who somebody is. Who comes first with a name has it, and from then on nobody
else can speak in it: not on a link, not in a message. The proof of a message carries the key, so
that a message can be checked by those who never met its origin.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, pairwise

import msgspec
from nacl import bindings
from nacl.exceptions import CryptoError

from beforehand.errors import InputError
from beforehand.protocols.contract.base import NodeId
from beforehand.protocols.contract.proof import Signed
from beforehand.runtime.crypto import merkle
from beforehand.runtime.crypto.keys import PUBLIC_BYTES, SIGNATURE_BYTES, MemberKey, flaw_of_name

NAMES_MAX = 65_536
"""That one node keeps keys for: a bound on what a member can make the others remember."""
PROOF_BYTES = PUBLIC_BYTES + SIGNATURE_BYTES
PROOF_PREFIX = b"beforehand proof 1\n"
"""Nothing that is signed here can pass for what is signed elsewhere."""


ROOT_PREFIX = b"beforehand tree 1\n"
SHOWN_MAX = 2048
"""Steps on paths that lead to a signature: those of some dozens of trees."""


class TrustCounters(msgspec.Struct):
    """First sights, and why proofs and introductions were refused."""

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
    """`sign` and `check` are what `protocols.contract.proof.Proofs` takes."""

    def __init__(
        self,
        own_name: str,
        own: MemberKey,
        bound: Mapping[str, bytes],
        on_bind: Callable[[str, bytes], None],
    ) -> None:
        """bound: what was bound before this start. on_bind: called once for each new name."""
        if flaw := flaw_of_name(own_name):
            raise InputError(f"no name for a member: {flaw}", hint="choose another name")
        self.counters = TrustCounters()
        self._own = own
        self._keys = dict(bound)
        self._on_bind = on_bind
        self._shown: set[bytes] = set()
        """Of trees: a signature, and a step on a path that leads to what is signed. With other
        bytes for either, a message would be passed on to those who do not remember, and refuse."""
        self._shown_before: set[bytes] = set()
        """The same, until there were too many of them."""
        if self._keys.setdefault(own_name, own.public) != own.public:
            problem = f"the name `{own_name}` is bound to another key"
            raise InputError(problem, hint="take another name, or the store that has its key")

    def sign(self, data: bytes) -> bytes:
        """Public key and signature, 96 bytes: who never met the origin can check it."""
        return self._own.public + self._own.sign(_digest(data))

    def sign_all(self, datas: Sequence[bytes]) -> list[bytes]:
        """A proof for each; those that are signed together share the signature of a tree."""
        if len(datas) == 1:
            return [self.sign(datas[0])]
        count = len(datas)
        parts = -(-count // merkle.LEAVES_MAX)
        cuts = [part * count // parts for part in range(parts + 1)]  # none of them of one alone
        return [proof for cut in pairwise(cuts) for proof in self._sign_tree(datas[slice(*cut)])]

    def _sign_tree(self, datas: Sequence[bytes]) -> list[bytes]:
        root, paths = merkle.grow([merkle.leaf_of(data) for data in datas])
        start = self._own.public + self._own.sign(ROOT_PREFIX + root)
        return [start + path for path in paths]

    def check(self, origin: NodeId, data: bytes, proof: bytes, leaf: bytes = b"") -> bool:
        """Did the owner of that name sign the data? A first sight binds the name. leaf: of the
        data, if somebody has found it already.

        What it costs is one signature, whoever asks: what was refused because of its key alone is
        refused before that.
        """
        is_alone = len(proof) == PROOF_BYTES
        if not is_alone and not merkle.is_path(proof[PROOF_BYTES:]):
            self.counters.malformed += 1
            return False
        known = self._keys.get(origin) if isinstance(origin, str) else None
        if not isinstance(origin, str) or (known is None and flaw_of_name(origin)):
            self.counters.malformed += 1
            return False
        public = proof[:PUBLIC_BYTES]
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
        """Like `check`, of each. Where all that was signed together comes together, as it does from
        who said it, the tree is grown again, which costs half of climbing it leaf by leaf."""
        found: list[bool] = []
        for (origin, start), group in groupby(signed, key=_signer):
            together = list(group)
            is_known = isinstance(origin, str) and self._keys.get(origin) == start[:PUBLIC_BYTES]
            leaves = [b""] * len(together)
            if is_known and 2 <= len(together) <= merkle.LEAVES_MAX:
                leaves = [merkle.leaf_of(data) for _, data, _ in together]
                if _is_whole_tree(start, leaves, [proof[PROOF_BYTES:] for *_, proof in together]):
                    found += [True] * len(together)
                    continue
            # It may be in order even so, or one of them may not.
            found += [self.check(*one, leaf) for one, leaf in zip(together, leaves, strict=True)]
        return found

    def _leads_to_signed(self, leaf: bytes, proof: bytes) -> bool:
        start, step, climbed = proof[:PROOF_BYTES], b"", []
        for step in merkle.climb(leaf, proof[PROOF_BYTES:]):
            place = start + step
            if place in self._shown or place in self._shown_before:
                break
            climbed.append(place)
        else:
            signed = ROOT_PREFIX + step.removeprefix(merkle.TOP)
            if not is_signed(proof[:PUBLIC_BYTES], signed, proof[PUBLIC_BYTES:PROOF_BYTES]):
                return False
        self._shown.update(climbed)
        if len(self._shown) > SHOWN_MAX:
            self._shown_before, self._shown = self._shown, set()
        return True

    def meet(self, name: str, public: bytes) -> bool:
        """Of somebody who has proven to hold the key: may it go by that name?"""
        known = self._keys.get(name)
        if known is not None:
            self.counters.wrong_key += known != public
            return known == public
        if len(self._keys) >= NAMES_MAX:
            self.counters.too_many_names += 1
            return False
        self._on_bind(name, public)  # first: what could not be saved is not bound
        self._keys[name] = public
        self.counters.bound += 1
        return True

    def key_of(self, name: str) -> bytes | None:
        """The key that the name is bound to."""
        return self._keys.get(name)


def is_signed(public: bytes, data: bytes, signature: bytes) -> bool:
    """Is it the signature of that key, over the data?"""
    try:
        bindings.crypto_sign_open(signature + data, public)
    except CryptoError:
        return False
    return True


def _digest(data: bytes) -> bytes:
    # Ed25519 goes over its data with SHA-512, twice to sign; BLAKE2b once is faster for long ones.
    return PROOF_PREFIX + hashlib.blake2b(data).digest()


def _signer(signed: Signed) -> tuple[NodeId, bytes]:
    origin, _, proof = signed
    return origin, proof[:PROOF_BYTES]


def _is_whole_tree(start: bytes, leaves: Sequence[bytes], paths: Sequence[bytes]) -> bool:
    """Are these all the leaves of one tree, in their order, each with its path, and its root
    signed by the key that they show?"""
    root, grown = merkle.grow(leaves)
    if paths != grown:
        return False
    return is_signed(start[:PUBLIC_BYTES], ROOT_PREFIX + root, start[PUBLIC_BYTES:])
