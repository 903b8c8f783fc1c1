"""Frames as datagrams that only members can make and read. No socket in here.

    magic | a random nonce | sealed: kind, sender, life, number, tick, frame

The key comes from the group's secret, so that whoever has it is heard; within the group a sender
is who it says it is. A sender numbers its datagrams within one life of its process: what comes a
second time, or from a life that is over, is not heard. Of a sender that was never heard before one
cannot know how old its words are: that is what ticks are for. A station renews its tick with every
beacon, and hears hosts only if they name one of the last.
"""

from __future__ import annotations

import secrets
from collections import deque
from typing import Literal

import msgspec
from nacl import bindings
from nacl.exceptions import CryptoError

from beforehand.protocols.contract.base import Count
from beforehand.runtime.crypto.handshake import derive
from beforehand.runtime.crypto.keys import GroupKey, flaw_of_name

MAGIC = b"bfc\1"
NONCE_BYTES = 24
DATAGRAM_BYTES_MAX = 8192
"""Few are longer than what a network carries in one piece: a payload has a bound of its own."""
WINDOW = 1024
"""How far back a datagram may come late."""
SENDERS_MAX = 4096
LIVES_MAX = 16
"""Of one sender, that are remembered to be over."""
TICK_MAX = 1 << 62

Kind = Literal["beacon", "down", "up"]

_encode = msgspec.msgpack.encode
_seal = bindings.crypto_aead_xchacha20poly1305_ietf_encrypt
_open = bindings.crypto_aead_xchacha20poly1305_ietf_decrypt


class Datagram(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What is in a datagram."""

    kind: Kind
    sender: str
    incarnation: Count
    number: Count
    tick: Count
    frame: bytes


class AirCounters(msgspec.Struct):
    """What was heard in a cell, and what was not."""

    sent: int = 0
    heard: int = 0
    unsent: int = 0
    """The network did not take it; it is said again as if it had been lost."""
    too_large: int = 0
    foreign: int = 0
    """Not sealed with this group's key, or not what a member would say."""
    repeated: int = 0
    """Came again, or from a life that is over: a network that doubles, or a replay."""
    stale: int = 0
    """A host that names no tick of late: a replay, or one that hears nothing."""
    namesakes: int = 0
    """Datagrams in our name that are not ours: somebody else has it, or a life of ours before."""
    restarted: int = 0
    """The station of the cell came back without its memory: what it kept for us is lost."""


def new_number() -> int:
    return secrets.randbelow(TICK_MAX)


_decode = msgspec.msgpack.Decoder(Datagram).decode


class Voice:
    """One life of a sender."""

    def __init__(self, key: GroupKey, name: str) -> None:
        self.name = name
        self._key = _cell_key(key)
        self.incarnation, self._number = new_number(), 0

    def seal(self, kind: Kind, tick: int, frame: bytes) -> bytes:
        self._number += 1
        said = Datagram(kind, self.name, self.incarnation, self._number, tick, frame)
        nonce = secrets.token_bytes(NONCE_BYTES)
        return MAGIC + nonce + _seal(_encode(said), MAGIC, nonce, self._key)


class _Sender:
    """What was heard of one sender."""

    def __init__(self, incarnation: int) -> None:
        self.incarnation = incarnation
        self.over: deque[int] = deque(maxlen=LIVES_MAX)
        self.highest = 0
        self.window = 0  # bit i: highest - i was heard

    def is_new(self, said: Datagram) -> bool:
        if said.incarnation != self.incarnation:
            if said.incarnation in self.over:
                return False
            self.over.append(self.incarnation)
            self.incarnation, self.highest, self.window = said.incarnation, 0, 0
        ahead = said.number - self.highest
        if ahead > 0:
            self.highest = said.number
            kept = (self.window << ahead) if ahead < WINDOW else 0
            self.window = (kept | 1) & ((1 << WINDOW) - 1)
            return True
        if -ahead >= WINDOW or self.window >> -ahead & 1:
            return False
        self.window |= 1 << -ahead
        return True


class Ear:
    """Opens what others seal, each datagram once."""

    def __init__(self, key: GroupKey, own: Voice, counters: AirCounters) -> None:
        self._key = _cell_key(key)
        self._own = own
        self._counters = counters
        self._senders: dict[str, _Sender] = {}

    def hear(self, datagram: bytes) -> Datagram | None:
        """None for what is not heard; the counters say why."""
        head = len(MAGIC) + NONCE_BYTES
        if datagram[: len(MAGIC)] != MAGIC or len(datagram) > DATAGRAM_BYTES_MAX:
            self._counters.foreign += 1
            return None
        nonce = datagram[len(MAGIC) : head]
        try:
            said = _decode(_open(datagram[head:], MAGIC, nonce, self._key))
        except (CryptoError, msgspec.MsgspecError, ValueError, TypeError):
            self._counters.foreign += 1
            return None
        if said.sender == self._own.name:
            if (
                said.incarnation != self._own.incarnation
            ):  # else it is our own, which a multicast brings back
                self._counters.namesakes += 1
            return None
        if flaw_of_name(said.sender):
            self._counters.foreign += 1
            return None
        if not self._sender(said).is_new(said):
            self._counters.repeated += 1
            return None
        self._counters.heard += 1
        return said

    def _sender(self, said: Datagram) -> _Sender:
        if said.sender not in self._senders:
            if len(self._senders) >= SENDERS_MAX:
                del self._senders[next(iter(self._senders))]
            self._senders[said.sender] = _Sender(said.incarnation)
        return self._senders[said.sender]


def _cell_key(key: GroupKey) -> bytes:
    return derive(key.secret, b"beforehand cell", key.name.encode())
