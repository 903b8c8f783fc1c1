"""Challenges by which a host recognises that a station is there now, and not a recording of it.

A host that hears an unconfirmed incarnation of a station sends a random nonce. The station repeats
it in its next beacon. A recorded beacon does not contain it. So a replay neither draws a host into
a cell whose station is gone, nor makes it take an earlier incarnation for a restart.
"""

from __future__ import annotations

import secrets

from beforehand.runtime.radio.datagrams import Datagram

NONCE_BYTES = 8
ECHOES_MAX = 256
"""Nonces in one beacon. The hosts of further ones ask again."""
STATIONS_MAX = 64
"""Stations that a host asks at a time."""


class Echoes:
    """The nonces that a station repeats in its next beacon."""

    def __init__(self, name: str) -> None:
        self._name = name.encode()
        self._nonces: dict[bytes, None] = {}

    def add(self, frame: bytes) -> None:
        """Take a probe, if it is for this station."""
        nonce, name = frame[:NONCE_BYTES], frame[NONCE_BYTES:]
        if name == self._name and len(self._nonces) < ECHOES_MAX:
            self._nonces[nonce] = None

    def take(self) -> bytes:
        """Return the content of the next beacon."""
        found = b"".join(self._nonces)
        self._nonces.clear()
        return found


class Challenges:
    """The stations of which a host knows that they are there."""

    def __init__(self) -> None:
        self._nonces: dict[str, bytes] = {}
        self._confirmed: dict[str, int] = {}
        """The incarnation of each station that has repeated a nonce."""

    def is_fresh(self, datagram: Datagram) -> bool:
        """Return whether the station is known to be there, in this incarnation."""
        if self._confirmed.get(datagram.sender) == datagram.incarnation:
            return True
        nonce = self._nonces.get(datagram.sender)
        if datagram.kind != "beacon" or nonce is None or not _contains(datagram.frame, nonce):
            return False
        del self._nonces[datagram.sender]
        self._confirmed[datagram.sender] = datagram.incarnation
        return True

    def probe(self, station: str) -> bytes:
        """Return the probe for a station; the same until it is answered or forgotten."""
        if station not in self._nonces:
            if len(self._nonces) >= STATIONS_MAX:
                del self._nonces[next(iter(self._nonces))]
            self._nonces[station] = secrets.token_bytes(NONCE_BYTES)
        return self._nonces[station] + station.encode()

    def forget(self, station: str) -> None:
        """Forget a station whose beacons have stopped: it has to repeat another nonce."""
        self._confirmed.pop(station, None)
        self._nonces.pop(station, None)

    def clear(self) -> None:
        """Forget all stations."""
        self._confirmed.clear()
        self._nonces.clear()


def _contains(frame: bytes, nonce: bytes) -> bool:
    starts = range(0, len(frame), NONCE_BYTES)
    return any(frame[at : at + NONCE_BYTES] == nonce for at in starts)
