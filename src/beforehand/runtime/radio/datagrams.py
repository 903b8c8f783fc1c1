"""Frames as encrypted datagrams, which only members can create and read.

    magic | random nonce | AEAD: kind, sender, incarnation, number, tick, frame

This module does no I/O. The AEAD key is derived from the group secret, so any holder of the secret
can send. Within the group, the datagram layer does not authenticate the sender's name.

A sender numbers its datagrams within one incarnation of its process. A receiver drops duplicates
and datagrams of an earlier incarnation. It cannot tell how old a datagram is whose sender it never
heard before. Ticks solve that: a station draws a new random tick with every beacon, and accepts a
host's datagram only if it names a recent one. A host challenges stations (`radio.freshness`).
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable
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
"""Few datagrams exceed a network's MTU, because payloads have a limit of their own."""
WINDOW = 1024
"""By how many numbers a datagram may be late."""
SENDERS_MAX = 4096
"""Senders whose numbers are remembered; beyond that, the oldest is forgotten."""
INCARNATIONS_MAX = 16
"""Earlier incarnations of one sender that are remembered."""
TICK_MAX = 1 << 62

Kind = Literal["beacon", "down", "probe", "up"]

_encode = msgspec.msgpack.encode
_seal = bindings.crypto_aead_xchacha20poly1305_ietf_encrypt
_open = bindings.crypto_aead_xchacha20poly1305_ietf_decrypt


class Datagram(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The content of a datagram."""

    kind: Kind
    sender: str
    incarnation: Count
    number: Count
    tick: Count
    frame: bytes


class AirCounters(msgspec.Struct):
    """Datagrams sent and received in a cell, and the reasons why some were dropped."""

    sent: int = 0
    received: int = 0
    unsent: int = 0
    """Datagrams that the network refused. The protocol retransmits as after a loss."""
    too_large: int = 0
    """Frames that did not fit into a datagram."""
    foreign: int = 0
    """Datagrams that failed to decrypt with this group's key, or have invalid content."""
    repeated: int = 0
    """Duplicates and datagrams of an earlier incarnation, made by the network or by a replay."""
    stale: int = 0
    """At a station: datagrams that name no recent tick, because they were replayed, or because the
    host hears no beacons. At a host: datagrams of stations that have not shown yet that they are
    there, which a few of each station are."""
    namesakes: int = 0
    """Datagrams under our name from another process: another host of that name, or an earlier
    incarnation of ours."""
    restarted: int = 0
    """Restarts of the cell's station without its state: the messages it kept for us are lost."""


def new_number() -> int:
    """Return a random tick or incarnation."""
    return secrets.randbelow(TICK_MAX)


_decode = msgspec.msgpack.Decoder(Datagram).decode


class DatagramSealer:
    """The sending end of one incarnation: numbers and encrypts datagrams."""

    def __init__(self, key: GroupKey, name: str) -> None:
        self.name = name
        self._key = _cell_key(key)
        self.incarnation, self._number = new_number(), 0

    def seal(self, kind: Kind, tick: int, frame: bytes) -> bytes:
        """Return the next datagram, encrypted."""
        self._number += 1
        content = Datagram(kind, self.name, self.incarnation, self._number, tick, frame)
        nonce = secrets.token_bytes(NONCE_BYTES)
        return MAGIC + nonce + _seal(_encode(content), MAGIC, nonce, self._key)


class _Sender:
    """The incarnation and the numbers received of one sender."""

    def __init__(self, incarnation: int) -> None:
        self.incarnation = incarnation
        self.over: deque[int] = deque(maxlen=INCARNATIONS_MAX)
        self.highest = 0
        self.window = 0  # bit i: number `highest - i` was received

    def is_new(self, content: Datagram) -> bool:
        """Return whether the datagram is no duplicate and of no earlier incarnation."""
        if content.incarnation != self.incarnation:
            if content.incarnation in self.over:
                return False
            self.over.append(self.incarnation)
            self.incarnation, self.highest, self.window = content.incarnation, 0, 0
        ahead = content.number - self.highest
        if ahead > 0:
            self.highest = content.number
            kept = (self.window << ahead) if ahead < WINDOW else 0
            self.window = (kept | 1) & ((1 << WINDOW) - 1)
            return True
        if -ahead >= WINDOW or self.window >> -ahead & 1:
            return False
        self.window |= 1 << -ahead
        return True


class DatagramOpener:
    """The receiving end: decrypts datagrams and accepts each once."""

    def __init__(
        self,
        key: GroupKey,
        own: DatagramSealer,
        counters: AirCounters,
        is_fresh: Callable[[Datagram], bool],
    ) -> None:
        """is_fresh: returns whether a datagram is no recording. Others change no state here."""
        self._is_fresh = is_fresh
        self._key = _cell_key(key)
        self._own = own
        self._counters = counters
        self._senders: dict[str, _Sender] = {}

    def open(self, datagram: bytes) -> Datagram | None:
        """Return the datagram's content, or None if it is dropped; the counters tell why."""
        head = len(MAGIC) + NONCE_BYTES
        if datagram[: len(MAGIC)] != MAGIC or len(datagram) > DATAGRAM_BYTES_MAX:
            self._counters.foreign += 1
            return None
        nonce = datagram[len(MAGIC) : head]
        try:
            content = _decode(_open(datagram[head:], MAGIC, nonce, self._key))
        except (CryptoError, msgspec.MsgspecError, ValueError, TypeError):
            self._counters.foreign += 1
            return None
        if content.sender == self._own.name:
            if (
                content.incarnation != self._own.incarnation
            ):  # otherwise the multicast loop returned our own
                self._counters.namesakes += 1
            return None
        if flaw_of_name(content.sender):
            self._counters.foreign += 1
            return None
        if not self._is_fresh(content):
            self._counters.stale += 1
            return None
        if not self._sender(content).is_new(content):
            self._counters.repeated += 1
            return None
        self._counters.received += 1
        return content

    def _sender(self, content: Datagram) -> _Sender:
        if content.sender not in self._senders:
            if len(self._senders) >= SENDERS_MAX:
                del self._senders[next(iter(self._senders))]
            self._senders[content.sender] = _Sender(content.incarnation)
        return self._senders[content.sender]


def _cell_key(key: GroupKey) -> bytes:
    return derive(key.secret, b"beforehand cell", key.name.encode())
