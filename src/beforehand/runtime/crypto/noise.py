"""The Noise handshake pattern NNpsk0 and the ciphers of its transport phase.

Noise_NNpsk0_25519_ChaChaPoly_BLAKE2b, revision 34 of the Noise Protocol Framework:

    -> psk, e
    <- e, ee

Neither end has a static key in the pattern. Both prove that they hold the pre-shared key, and the
session keys depend on both ephemeral keys. `tests/runtime/crypto/test_noise.py` compares this
module with the published test vectors. This module does no I/O.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from nacl import bindings
from nacl.exceptions import CryptoError

PROTOCOL_NAME = b"Noise_NNpsk0_25519_ChaChaPoly_BLAKE2b"
KEY_BYTES = 32
TAG_BYTES = 16
"""Bytes that the AEAD adds to what it encrypts."""
HASH_BYTES = 64
COUNT_MAX = (1 << 64) - 1
"""The record number that is reserved for deriving the next key."""

_seal = bindings.crypto_aead_chacha20poly1305_ietf_encrypt
_open = bindings.crypto_aead_chacha20poly1305_ietf_decrypt


class DecryptError(Exception):
    """The content was not encrypted with this key, number and associated data."""


def encrypt(key: bytes, count: int, associated: bytes | None, content: bytes) -> bytes:
    """Return the content encrypted as number `count` under this key."""
    # The nonce is 4 zero bytes and the number as 8 bytes, little-endian.
    sealed: bytes = _seal(content, associated, (count << 32).to_bytes(12, "little"), key)
    return sealed


def decrypt(key: bytes, count: int, associated: bytes | None, sealed: bytes) -> bytes:
    """Return what `encrypt` was given; raise `DecryptError` if that is not possible."""
    if len(sealed) < TAG_BYTES:
        raise DecryptError("shorter than a tag")
    try:
        content: bytes = _open(sealed, associated, (count << 32).to_bytes(12, "little"), key)
    except CryptoError as error:
        raise DecryptError("another key, number or content") from error
    return content


def rekey(key: bytes) -> bytes:
    """Return the key that follows this one (`REKEY` of the specification)."""
    return encrypt(key, COUNT_MAX, None, bytes(KEY_BYTES))[:KEY_BYTES]


def public_of(private: bytes) -> bytes:
    """Return the X25519 public key."""
    public: bytes = bindings.crypto_scalarmult_base(private)
    return public


class NNpsk0:
    """One end of a handshake, message by message.

    A message is its tokens followed by its payload. So an end calls `send_tokens` and then
    `seal_payload`, or `receive_tokens` and then `open_payload`. `hash` in between covers the tokens
    of the message and all that preceded them.
    """

    def __init__(self, psk: bytes, prologue: bytes, *, ephemeral: bytes = b"") -> None:
        """psk: the pre-shared key, 32 bytes.
        prologue: bytes that both ends must agree on.
        ephemeral: this end's private key, for test vectors; a fresh one if it is empty."""
        self.hash = PROTOCOL_NAME.ljust(HASH_BYTES, b"\0")
        self._chaining = self.hash
        self._key, self._count = b"", 0
        self._ephemeral = ephemeral or secrets.token_bytes(KEY_BYTES)
        self._remote = b""
        self._psk = psk
        self._mix_hash(prologue)

    def send_tokens(self) -> bytes:
        """Return the tokens of the next message: this end's ephemeral public key."""
        public = public_of(self._ephemeral)
        self._mix_tokens(public)
        return public

    def receive_tokens(self, tokens: bytes) -> None:
        """Take the tokens of the peer's next message.

        Raise `DecryptError` if its ephemeral key would make the shared secret predictable.
        """
        self._remote = tokens
        self._mix_tokens(tokens)

    def seal_payload(self, payload: bytes) -> bytes:
        """Return the payload of the current message, encrypted."""
        sealed = encrypt(self._key, self._count, self.hash, payload)
        self._count += 1
        self._mix_hash(sealed)
        return sealed

    def open_payload(self, sealed: bytes) -> bytes:
        """Return the payload of the peer's message; raise `DecryptError` if it does not decrypt."""
        payload = decrypt(self._key, self._count, self.hash, sealed)
        self._count += 1
        self._mix_hash(sealed)
        return payload

    def split(self) -> tuple[bytes, bytes]:
        """Return the keys of the transport phase: of the initiator's records, of the responder's.

        The handshake is over; its private key is dropped.
        """
        first, second = _derive(self._chaining, b"", 2)
        self._chaining = self._key = b""
        return first[:KEY_BYTES], second[:KEY_BYTES]

    def _mix_tokens(self, public: bytes) -> None:
        is_first = bool(self._psk)
        if is_first:  # the first message begins with the token psk
            self._chaining, for_hash, _ = _derive(self._chaining, self._psk, 3)
            self._mix_hash(for_hash)
            self._psk = b""
        self._mix_hash(public)
        self._mix_key(public)  # as in all patterns with a pre-shared key
        if not is_first:
            self._mix_shared()

    def _mix_shared(self) -> None:
        """Mix the result of the token `ee`, which ends the second message."""
        try:
            shared = bindings.crypto_scalarmult(self._ephemeral, self._remote)
        except (CryptoError, RuntimeError) as error:
            raise DecryptError("an ephemeral key of low order") from error
        self._ephemeral = b""
        self._mix_key(shared)

    def _mix_key(self, material: bytes) -> None:
        self._chaining, key = _derive(self._chaining, material, 2)
        self._key, self._count = key[:KEY_BYTES], 0

    def _mix_hash(self, data: bytes) -> None:
        self.hash = hashlib.blake2b(self.hash + data).digest()


def _derive(chaining: bytes, material: bytes, count: int) -> list[bytes]:
    """Return `count` outputs of the specification's HKDF."""
    temporary = hmac.digest(chaining, material, "blake2b")
    outputs, last = [], b""
    for number in range(1, count + 1):
        last = hmac.digest(temporary, last + bytes([number]), "blake2b")
        outputs.append(last)
    return outputs
