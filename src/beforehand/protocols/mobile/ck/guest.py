"""The state of a CK station for one host of its cell: which messages it lacks and may receive.

A message that may not be sent yet is indexed under one message that the host must acknowledge
first. So an acknowledgement touches only the messages that wait for it.
"""

from __future__ import annotations

import msgspec

from beforehand.protocols.contract.base import Message, NodeId
from beforehand.protocols.mobile.ck.frames import HostBroadcast, Id, Vector
from beforehand.protocols.mobile.ck.seen import Seen


class Kept(msgspec.Struct):
    """A message that not all hosts have acknowledged."""

    message: Message
    needs: Vector
    place: int
    """Arrival number at this station."""
    rests: int
    """How many coming retransmission rounds leave it out."""


class Guest(msgspec.Struct):
    """A host that is registered here."""

    host: NodeId
    ses: int
    seen: Seen
    """The messages that the host has acknowledged."""
    next_broadcast: int = 1
    """The sequence number of the broadcast that the station expects next from the host."""
    last_broadcast: Id = (0, 0)
    """The host's last message. Its next one depends on it, whether or not it is delivered."""
    turn: int = 0
    is_joining: bool = False
    """Whether the host is new, so that `ConnectAck` must tell it where it starts."""
    early: dict[int, HostBroadcast] = {}
    """Broadcasts received from the host ahead of a missing one."""
    blocked: dict[Id, Kept] = {}
    """Messages that the host lacks and that were not sent to it yet."""
    free: dict[Id, None] = {}
    """Blocked messages of which the host has acknowledged all causes."""
    waiting: dict[Id, list[Id]] = {}
    """The other blocked messages, by a cause that the host must acknowledge first. Messages that
    are no longer blocked may remain in it."""
    in_flight: dict[Id, None] = {}
    """Messages that the host lacks and that were, or are about to be, transmitted."""

    @property
    def lacks(self) -> int:
        return len(self.blocked) + len(self.in_flight)

    def miss(self, id: Id, kept: Kept) -> None:
        """Add a message that the host has not acknowledged."""
        self.blocked[id] = kept
        self._file(id, kept)

    def acknowledge(self, id: Id) -> None:
        """Note that the host has delivered a message, which may unblock others."""
        self.drop(id)
        for counted in self.seen.add(id):
            for after in self.waiting.pop(counted, ()):
                if after in self.blocked:
                    self._file(after, self.blocked[after])

    def drop(self, id: Id) -> None:
        """Stop sending a message to this host."""
        self.in_flight.pop(id, None)
        if self.blocked.pop(id, None) is not None:
            self.free.pop(id, None)

    def launch(self, inflight_max: int) -> list[Id]:
        """Put free messages in flight as the window allows; return them in order of arrival."""
        room = inflight_max - len(self.in_flight)
        ready = sorted(self.free, key=lambda id: self.blocked[id].place)[: max(room, 0)]
        for id in ready:
            self._launch(id)
        return ready

    def launch_one(self, id: Id, inflight_max: int) -> bool:
        """Put a message in flight if it is free and the window has room; return whether it did."""
        is_ready = id in self.free and len(self.in_flight) < inflight_max
        if is_ready:
            self._launch(id)
        return is_ready

    def _file(self, id: Id, kept: Kept) -> None:
        cause = self.seen.first_missing(kept.needs)
        if cause is None:
            self.free[id] = None
        else:
            self.waiting.setdefault(cause, []).append(id)

    def _launch(self, id: Id) -> None:
        del self.blocked[id], self.free[id]
        self.in_flight[id] = None
