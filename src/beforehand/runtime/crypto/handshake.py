"""The handshake between two members of a group, and the AEAD that protects their connection.

This module does no I/O. The dialer sends first. The listener sends nothing until the dialer has
proven that it holds the group secret:

    dialer    hello: magic, version, ephemeral X25519 key, a tag keyed with the group secret
    listener  hello: the same, its tag over both hellos; then its encrypted introduction
    dialer    its encrypted introduction

An introduction is a name, an Ed25519 public key, and a signature with that key over both hellos,
the role (dialer or listener) and the name. The AEAD keys are derived from:

- both ephemeral keys: a secret that is stolen later decrypts no recorded traffic;
- the group's name and secret: only members can take part;
- both hellos: the two ends have seen the same handshake.

Each direction has its own key, and the nonce is the record number. A record that was altered,
dropped, duplicated or reordered fails to decrypt. docs/security.md states the resulting guarantees.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

import msgspec
from nacl import bindings
from nacl.exceptions import CryptoError

from beforehand.runtime.crypto.keys import (
    PUBLIC_BYTES,
    SIGNATURE_BYTES,
    GroupKey,
    MemberKey,
    flaw_of_name,
)
from beforehand.runtime.crypto.trust import is_signed
from beforehand.runtime.transport.disconnects import Refused

MAGIC = b"bfh\n"
VERSION = 1
EPHEMERAL_BYTES = 32
HELLO_TAG_BYTES = 16
HELLO_BYTES = len(MAGIC) + 1 + EPHEMERAL_BYTES + HELLO_TAG_BYTES
SEAL_BYTES = 16
"""Bytes that the AEAD tag adds to a record."""
REKEY_RECORDS = 1 << 20
"""Records after which a direction derives a new key. The nonce counter itself would last for 2⁶⁴
records."""
SIGNED_PREFIX = b"beforehand link 1\n"

_encode = msgspec.msgpack.encode
_seal = bindings.crypto_aead_chacha20poly1305_ietf_encrypt
_open = bindings.crypto_aead_chacha20poly1305_ietf_decrypt


class Introduction(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The identity that a peer has proven to hold the private key for.

    `Trust` decides whether the name is bound to this key.
    """

    name: str
    public: bytes
    signature: bytes


_decode_introduction = msgspec.msgpack.Decoder(Introduction).decode


def derive(key: bytes, purpose: bytes, *parts: bytes) -> bytes:
    """Derive 32 bytes from `key` for one purpose.

    Other purposes and other parts give independent bytes.
    """
    state = hashlib.blake2b(key=key, digest_size=32, person=purpose)
    for part in parts:
        state.update(len(part).to_bytes(8, "little") + part)
    return state.digest()


class Sealer:
    """The sending end of one direction of a connection."""

    def __init__(self, key: bytes) -> None:
        self._key, self._count = key, 0

    def seal(self, content: bytes) -> bytes:
        """Encrypt the next record."""
        nonce = self._count.to_bytes(12, "little")
        sealed = _seal(content, None, nonce, self._key)
        self._key, self._count = _next(self._key, self._count)
        return sealed


class Opener:
    """The receiving end of one direction of a connection."""

    def __init__(self, key: bytes) -> None:
        self._key, self._count = key, 0

    def open(self, sealed: bytes) -> bytes:
        """Decrypt the next record.

        Raise `Refused` unless it is exactly the record that the peer encrypted next.
        """
        nonce = self._count.to_bytes(12, "little")
        if len(sealed) < SEAL_BYTES:
            raise Refused("altered", f"a record of {len(sealed)} bytes is none")
        try:
            content = _open(sealed, None, nonce, self._key)
        except CryptoError as error:
            problem = f"record {self._count} failed to decrypt: altered, missing or out of order"
            raise Refused("altered", problem) from error
        self._key, self._count = _next(self._key, self._count)
        return content


def _next(key: bytes, count: int) -> tuple[bytes, int]:
    """Return key and counter of the next record, with a new key every REKEY_RECORDS."""
    count += 1
    return (key if count % REKEY_RECORDS else derive(key, b"next key")), count


class Handshake:
    """One end of one connection, from the hello to the verified introduction of the peer.

    Use each object for one connection, and call its methods in the order of the module docstring.
    """

    def __init__(self, key: GroupKey, name: str, member: MemberKey, *, is_dialer: bool) -> None:
        self.is_dialer = is_dialer
        self._name, self._member = name, member
        group = key.name.encode()
        self._hello_key = derive(key.secret, b"greeting", group)
        self._sealing_key = derive(key.secret, b"sealing", group)
        self._ephemeral = secrets.token_bytes(EPHEMERAL_BYTES)
        self._transcript = b""
        self.hello = b""
        """The hello that this end sends. A listener has one only after `on_hello`."""
        if is_dialer:
            self.hello = self._make_hello(b"")

    def on_hello(self, hello: bytes) -> tuple[Sealer, Opener]:
        """Check the peer's hello and return the AEAD states for sending and receiving.

        Raise `Refused` unless the hello was made with the group's secret and for this connection.
        """
        check_magic(hello)
        content = hello[:-HELLO_TAG_BYTES]
        # The listener's tag covers the dialer's hello, so its hello is valid on this connection
        # only.
        before = self.hello if self.is_dialer else b""
        tag = self._tag(not self.is_dialer, before, content)
        if len(hello) != HELLO_BYTES or not hmac.compare_digest(hello[len(content) :], tag):
            problem = "its hello has another secret: another group, or one before a rotation"
            raise Refused("wrong_key", problem, hint="give it the current key of the group")
        if not self.is_dialer:
            self.hello = self._make_hello(hello)
        first, second = (self.hello, hello) if self.is_dialer else (hello, self.hello)
        self._transcript = first + second
        try:
            shared = bindings.crypto_scalarmult(self._ephemeral, content[-EPHEMERAL_BYTES:])
        except (CryptoError, RuntimeError) as error:
            raise Refused("altered", "its ephemeral key is not valid") from error
        self._ephemeral = b""
        root = derive(self._sealing_key, b"root", shared, self._transcript)
        dialer, listener = derive(root, b"dialer"), derive(root, b"listener")
        own, other = (dialer, listener) if self.is_dialer else (listener, dialer)
        return Sealer(own), Opener(other)

    def introduction(self) -> bytes:
        """Return our signed introduction, not yet encrypted."""
        signature = self._member.sign(self._signed(self._name, self.is_dialer))
        return _encode(Introduction(self._name, self._member.public, signature))

    def on_introduction(self, content: bytes) -> Introduction:
        """Return the peer's introduction after checking it.

        Raise `Refused` unless it is well-formed and signed for this connection and the peer's role.
        """
        try:
            found = _decode_introduction(content)
        except (msgspec.MsgspecError, ValueError) as error:  # ValueError: not UTF-8
            raise Refused("malformed", f"not an introduction: {error}") from error
        if flaw := flaw_of_name(found.name):
            raise Refused("malformed", f"not an introduction: {flaw}")
        if len(found.public) != PUBLIC_BYTES or len(found.signature) != SIGNATURE_BYTES:
            raise Refused("malformed", "not an introduction: a key or signature of another length")
        signed = self._signed(found.name, not self.is_dialer)
        if not is_signed(found.public, signed, found.signature):
            raise Refused("forged", f"it does not hold the key that it presents as `{found.name}`")
        return found

    def _make_hello(self, before: bytes) -> bytes:
        """Return our hello; `before` is the peer's hello that it answers, or empty."""
        content = MAGIC + bytes([VERSION]) + bindings.crypto_scalarmult_base(self._ephemeral)
        return content + self._tag(self.is_dialer, before, content)

    def _tag(self, is_dialer: bool, before: bytes, content: bytes) -> bytes:
        """Return the tag by which the sender of a hello proves that it holds the secret."""
        role = b"dialer" if is_dialer else b"listener"
        return derive(self._hello_key, role, before, content)[:HELLO_TAG_BYTES]

    def _signed(self, name: str, is_dialer: bool) -> bytes:
        """Return the bytes that an introduction's signature covers."""
        role = b"dialer\n" if is_dialer else b"listener\n"
        return SIGNED_PREFIX + role + self._transcript + name.encode()


def check_magic(start: bytes) -> None:
    """Raise `Refused` as soon as the first bytes received cannot begin a valid hello."""
    if start[: len(MAGIC)] != MAGIC[: len(start)]:
        raise Refused(
            "no_key", "not a hello: another program, or a node without the group's secret"
        )
    version = start[len(MAGIC) : len(MAGIC) + 1]
    if version and version[0] != VERSION:
        problem = f"it uses version {version[0]} of the link protocol, this node uses {VERSION}"
        raise Refused("another_version", problem, hint="update the older of the two")
