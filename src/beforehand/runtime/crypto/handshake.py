"""The handshake between two members of a group, and the AEAD that protects their connection.

This module does no I/O. Link version 2:

    listener  cookie: 32 fresh random bytes, to everyone that connects
    dialer    hello: Noise NNpsk0, first message                               48 bytes
    listener  answer: its second message, with the encrypted introduction     688 bytes
    dialer    its encrypted introduction, as the first record

The pre-shared key is derived from the group's name and secret. The prologue contains the cookie, so
a recorded hello opens at no other connection. A listener that cannot open the hello sends nothing.

An introduction is a name, an Ed25519 public key, and a signature with that key over the handshake
hash, the role (dialer or listener) and the name. The hash covers the cookie, both ephemeral keys
and, for the dialer's signature, the listener's introduction. All introductions have one length.

Each direction has its own key, and the nonce is the record number. A record that was altered,
dropped, duplicated or reordered fails to decrypt. docs/security.md states the resulting guarantees.
"""

from __future__ import annotations

import hashlib
import secrets

import msgspec

from beforehand.runtime.crypto.keys import (
    PUBLIC_BYTES,
    SIGNATURE_BYTES,
    GroupKey,
    GroupSecret,
    MemberKey,
    flaw_of_name,
)
from beforehand.runtime.crypto.noise import (
    KEY_BYTES,
    TAG_BYTES,
    DecryptError,
    NNpsk0,
    decrypt,
    encrypt,
    rekey,
)
from beforehand.runtime.crypto.trust import is_signed
from beforehand.runtime.transport.disconnects import Refused

PROLOGUE = b"beforehand link 2"
SIGNED_PREFIX = b"beforehand link 2\n"
FIRST_VERSION = b"bfh\n"
"""The start of a hello of link version 1, in which the dialer sent first."""
COOKIE_BYTES = 32
HELLO_BYTES = KEY_BYTES + TAG_BYTES
INTRODUCTION_BYTES = 640
"""A name of 128 characters takes up to 512 bytes; key, signature and lengths the rest."""
ANSWER_BYTES = KEY_BYTES + INTRODUCTION_BYTES + TAG_BYTES
SEAL_BYTES = TAG_BYTES
"""Bytes that the AEAD tag adds to a record."""
REKEY_RECORDS = 1 << 20
"""Records after which a direction derives a new key. The nonce counter itself would last for 2⁶⁴
records."""
SIZE_BYTES = 2
ROTATED = b"rotated"
"""An answer instead of an introduction: the dialer's secret has ended."""
SECRET_ENDED = "the group has another secret since a rotation, and ours has ended"

_encode = msgspec.msgpack.encode


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
        sealed = encrypt(self._key, self._count, None, content)
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
        try:
            content = decrypt(self._key, self._count, None, sealed)
        except DecryptError as error:
            problem = f"record {self._count} failed to decrypt: altered, missing or out of order"
            raise Refused("altered", problem) from error
        self._key, self._count = _next(self._key, self._count)
        return content


def _next(key: bytes, count: int) -> tuple[bytes, int]:
    """Return key and counter of the next record, with a new key every REKEY_RECORDS."""
    count += 1
    return (key if count % REKEY_RECORDS else rekey(key)), count


class Handshake:
    """One end of one connection: the identity of this end, and the check of the peer's.

    `DialerHandshake` and `ListenerHandshake` have the messages. Use each object for one connection.
    """

    secret: GroupSecret
    """The secret of this connection. A listener knows it after the hello."""
    role: bytes
    """The role of this end, which its signature covers."""
    peer_role: bytes

    def __init__(self, key: GroupKey, name: str, member: MemberKey) -> None:
        self._key, self._name, self._member = key, name, member

    def _begin(self, secret: GroupSecret, cookie: bytes) -> NNpsk0:
        """Return the state of the Noise handshake under one secret of the group."""
        psk = derive(secret.secret, b"link", self._key.name.encode())
        return NNpsk0(psk, PROLOGUE + cookie)

    def _introduce(self, hash_: bytes) -> bytes:
        """Return our padded introduction, not yet encrypted."""
        signature = self._member.sign(_signed(hash_, self.role, self._name))
        return pad(_encode(Introduction(self._name, self._member.public, signature)))

    def _check(self, content: bytes, hash_: bytes) -> Introduction:
        """Return the peer's introduction.

        Raise `Refused` unless it is well-formed and signed for this connection and the peer's role.
        """
        try:
            found = _decode_introduction(unpad(content))
        except (msgspec.MsgspecError, ValueError) as error:  # ValueError: not UTF-8
            raise Refused("malformed", f"not an introduction: {error}") from error
        if flaw := flaw_of_name(found.name):
            raise Refused("malformed", f"not an introduction: {flaw}")
        if len(found.public) != PUBLIC_BYTES or len(found.signature) != SIGNATURE_BYTES:
            raise Refused("malformed", "not an introduction: a key or signature of another length")
        signed = _signed(hash_, self.peer_role, found.name)
        if not is_signed(found.public, signed, found.signature):
            raise Refused("forged", f"it does not hold the key that it presents as `{found.name}`")
        return found


class DialerHandshake(Handshake):
    """The dialer's end: `on_cookie`, `on_answer`, `introduction`."""

    role, peer_role = b"dialer", b"listener"

    def __init__(
        self, key: GroupKey, name: str, member: MemberKey, secret: GroupSecret | None = None
    ) -> None:
        """secret: which secret of the key to use; the newest by default."""
        super().__init__(key, name, member)
        self.secret = secret or key.newest

    def on_cookie(self, cookie: bytes) -> bytes:
        """Return the hello for this cookie."""
        self._noise = self._begin(self.secret, cookie)
        return self._noise.send_tokens() + self._noise.seal_payload(b"")

    def on_answer(self, answer: bytes) -> tuple[Sealer, Opener]:
        """Take the listener's answer and return the AEAD states for sending and receiving.

        Raise `Refused` unless it was made for our hello with the group's secret, or if it says that
        this secret has ended.
        """
        noise = self._noise
        try:
            noise.receive_tokens(answer[:KEY_BYTES])
            self._hash = noise.hash
            self._listeners = noise.open_payload(answer[KEY_BYTES:])
        except DecryptError as error:
            problem = "its answer was not made with the group's secret for this connection"
            raise Refused("wrong_key", problem) from error
        if self._listeners == pad(ROTATED):
            raise Refused("rotated", SECRET_ENDED, hint="get the group's current key")
        sending, receiving = noise.split()
        return Sealer(sending), Opener(receiving)

    def peer(self) -> Introduction:
        """Return the listener's introduction, which its answer contained, after checking it."""
        return self._check(self._listeners, self._hash)

    def introduction(self) -> bytes:
        """Return our padded introduction, not yet encrypted. It follows the listener's."""
        return self._introduce(self._noise.hash)


class ListenerHandshake(Handshake):
    """The listener's end: `cookie`, `on_hello`, `on_introduction`."""

    role, peer_role = b"listener", b"dialer"

    def __init__(self, key: GroupKey, name: str, member: MemberKey, now_us: int) -> None:
        """now_us: the time, which decides which secrets have ended."""
        super().__init__(key, name, member)
        self._now_us = now_us
        self.cookie = secrets.token_bytes(COOKIE_BYTES)

    def on_hello(self, hello: bytes) -> tuple[bytes, Sealer, Opener]:
        """Return our answer and the AEAD states for sending and receiving.

        Raise `LateMember` if it was made with a secret that has ended. Raise `Refused` unless it
        was made with a secret of the group and for our cookie.
        """
        for secret in self._key.live(self._now_us):
            if (noise := self._open_hello(secret, hello)) is not None:
                self.secret = secret
                return self._answer(noise)
        for secret in self._key.ended(self._now_us):
            if (noise := self._open_hello(secret, hello)) is not None:
                raise LateMember(_tokens(noise) + noise.seal_payload(pad(ROTATED)))
        raise _refusal(hello)

    def _open_hello(self, secret: GroupSecret, hello: bytes) -> NNpsk0 | None:
        """Return the state of the handshake if the hello was made with this secret."""
        noise = self._begin(secret, self.cookie)
        try:
            noise.receive_tokens(hello[:KEY_BYTES])
            noise.open_payload(hello[KEY_BYTES:])
        except DecryptError:
            return None
        return noise

    def _answer(self, noise: NNpsk0) -> tuple[bytes, Sealer, Opener]:
        answer = _tokens(noise)
        answer += noise.seal_payload(self._introduce(noise.hash))
        self._hash = noise.hash
        receiving, sending = noise.split()
        return answer, Sealer(sending), Opener(receiving)

    def on_introduction(self, content: bytes) -> Introduction:
        """Return the dialer's introduction after checking it."""
        return self._check(content, self._hash)


class LateMember(Refused):
    """The dialer has a secret that has ended; `answer` tells it so."""

    def __init__(self, answer: bytes) -> None:
        super().__init__("late_members", "it has a secret that has ended")
        self.answer = answer


def _tokens(noise: NNpsk0) -> bytes:
    try:
        return noise.send_tokens()
    except DecryptError as error:
        raise Refused("wrong_key", "its ephemeral key is not valid") from error


def pad(content: bytes) -> bytes:
    """Return the content with its length, in INTRODUCTION_BYTES."""
    padded = len(content).to_bytes(SIZE_BYTES, "little") + content
    return padded.ljust(INTRODUCTION_BYTES, b"\0")


def unpad(padded: bytes) -> bytes:
    """Return the content; raise `Refused` unless `pad` made these bytes."""
    size = int.from_bytes(padded[:SIZE_BYTES], "little")
    content = padded[SIZE_BYTES : SIZE_BYTES + size]
    if pad(content) != padded:
        raise Refused("malformed", "not an introduction: it is padded in another way")
    return content


def _signed(hash_: bytes, role: bytes, name: str) -> bytes:
    """Return the bytes that an introduction's signature covers."""
    return SIGNED_PREFIX + hash_ + role + b"\n" + name.encode()


def _refusal(hello: bytes) -> Refused:
    """Return why a hello does not open. Without the secret only version 1 can be recognised."""
    if hello.startswith(FIRST_VERSION):
        problem = "it uses version 1 of the link protocol, this node uses 2"
        return Refused("another_version", problem, hint="update it")
    problem = "its hello has another secret: another group, one before a rotation, or a replay"
    return Refused("wrong_key", problem, hint="does it have the group's current key?")
