"""NNpsk0 gives the bytes of the published test vectors, at both ends, and refuses all others."""

from __future__ import annotations

import pytest

from beforehand.runtime.crypto.handshake import Opener, Sealer
from beforehand.runtime.crypto.noise import (
    KEY_BYTES,
    DecryptError,
    NNpsk0,
    decrypt,
    encrypt,
    public_of,
    rekey,
)

# The vector of Noise_NNpsk0_25519_ChaChaPoly_BLAKE2b that is published with cacophony.
PROLOGUE = bytes.fromhex("4a6f686e2047616c74")
PSK = bytes.fromhex("54686973206973206d7920417573747269616e20706572737065637469766521")
FIRST = bytes.fromhex("893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a")
SECOND = bytes.fromhex("bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b")
HASH = (
    "ed5e9692d0ab507b6c2beec3f584fd5b127817a9d20b26cd50aa72c507260fa3"
    "1aa7d88dd3723316338af37ce0b4cfb2923aeb848bbf2b934911306f01ffc963"
)
MESSAGES = [
    (
        "4c756477696720766f6e204d69736573",
        "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944"
        "ed63df2f5a12aee1185ee9c50305f2ecf12421dcb53c047a63b784cf7c54a105",
    ),
    (
        "4d757272617920526f746862617264",
        "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843"
        "0e0fe7d5c0c9b92f7478716c8852f1b4f389edb75e3ebe546fafafd5b6f0f7",
    ),
    ("462e20412e20486179656b", "0fe04b26dcfbb69f8a6a94c61f1a26ef88769218d32f5d17c068a6"),
    ("4361726c204d656e676572", "2239e0c540c01f09eb1f4cc5258fd5acfefff18a5a3773f21b7bfe"),
    (
        "4a65616e2d426170746973746520536179",
        "f216cb03d30fb8af1e561fe02a07552d09b416e27a75e62c77d193718b0bdaae9f",
    ),
    (
        "457567656e2042f6686d20766f6e2042617765726b",
        "6e8baf98b944184dd7dc5ef14d8108cbeca626de118a5460f3308e294d61e17238bce29bd9",
    ),
]


def ends(psk: bytes = PSK) -> tuple[NNpsk0, NNpsk0]:
    return NNpsk0(PSK, PROLOGUE, ephemeral=FIRST), NNpsk0(psk, PROLOGUE, ephemeral=SECOND)


def send(end: NNpsk0, payload: bytes) -> bytes:
    return end.send_tokens() + end.seal_payload(payload)


def receive(end: NNpsk0, message: bytes) -> bytes:
    end.receive_tokens(message[:KEY_BYTES])
    return end.open_payload(message[KEY_BYTES:])


def test_the_published_vector_is_reproduced_at_both_ends():
    first, second = ends()
    contents = [(bytes.fromhex(payload), bytes.fromhex(sealed)) for payload, sealed in MESSAGES]
    for (payload, sealed), (sender, receiver) in zip(
        contents[:2], [(first, second), (second, first)], strict=True
    ):
        assert send(sender, payload) == sealed
        assert receive(receiver, sealed) == payload
    assert first.hash.hex() == second.hash.hex() == HASH
    keys = first.split()
    assert second.split() == keys
    sealers, openers = [Sealer(key) for key in keys], [Opener(key) for key in keys]
    for number, (payload, sealed) in enumerate(contents[2:]):
        assert sealers[number % 2].seal(payload) == sealed
        assert openers[number % 2].open(sealed) == payload


def test_another_key_prologue_or_byte_does_not_open():
    first, _ = ends()
    message = send(first, b"payload")
    for other in (NNpsk0(bytes(32), PROLOGUE), NNpsk0(PSK, PROLOGUE + b"x")):
        with pytest.raises(DecryptError):
            receive(other, message)
    for at in range(len(message)):
        changed = message[:at] + bytes([message[at] ^ 1]) + message[at + 1 :]
        with pytest.raises(DecryptError):
            receive(ends()[1], changed)
    with pytest.raises(DecryptError, match="shorter than a tag"):
        receive(ends()[1], message[: KEY_BYTES + 3])


def test_an_ephemeral_key_of_low_order_is_refused():
    _, second = ends()
    second.receive_tokens(bytes(KEY_BYTES))
    with pytest.raises(DecryptError, match="low order"):
        second.send_tokens()


def test_the_private_ephemeral_key_is_dropped_after_its_use():
    first, second = ends()
    receive(second, send(first, b""))
    receive(first, send(second, b""))
    first.split()
    assert first._ephemeral == second._ephemeral == b""


def test_fresh_ephemeral_keys_differ():
    assert NNpsk0(PSK, b"").send_tokens() != NNpsk0(PSK, b"").send_tokens()


def test_the_next_key_is_the_encryption_of_zeros_under_the_reserved_number():
    key = bytes(range(32))
    assert rekey(key) == encrypt(key, 2**64 - 1, None, bytes(32))[:32]
    assert decrypt(key, 7, b"ad", encrypt(key, 7, b"ad", b"x")) == b"x"
    assert len(public_of(key)) == 32
