"""What a station of CK knows of one host of its cell: what it lacks, and what of that it may get.

What may not be sent yet waits under one message that must be acknowledged before it, so that an
acknowledgement touches only what waits for it.
"""

from __future__ import annotations

import msgspec

from beforehand.protocols.contract.base import Message, NodeId
from beforehand.protocols.mobile.ck.frames import Id, Say, Vector
from beforehand.protocols.mobile.ck.seen import Seen


class Kept(msgspec.Struct):
    """A message that not all hosts have."""

    message: Message
    needs: Vector
    place: int
    """In the order in which messages came to this station."""
    rests: int
    """It is not repeated in so many rounds of repetitions to come."""


class Guest(msgspec.Struct):
    """A host that is registered here."""

    host: NodeId
    ses: int
    seen: Seen
    """What it has acknowledged."""
    next_said: int = 1
    spoken: Id = (0, 0)
    """Its last message: the next one comes after it, delivered or not."""
    turn: int = 0
    is_joining: bool = False
    """It never heard from us: it needs to be told where it starts."""
    early: dict[int, Say] = {}
    """What it said ahead of its turn."""
    blocked: dict[Id, Kept] = {}
    """What it lacks, and was not sent yet."""
    free: dict[Id, None] = {}
    """Of that, what depends on nothing that is not acknowledged."""
    waiting: dict[Id, list[Id]] = {}
    """The rest, under what must be acknowledged first; and some that is no longer blocked."""
    in_flight: dict[Id, None] = {}
    """What it lacks, and was or is to be transmitted."""

    @property
    def lacks(self) -> int:
        return len(self.blocked) + len(self.in_flight)

    def miss(self, id: Id, kept: Kept) -> None:
        """There is a message that it has not acknowledged."""
        self.blocked[id] = kept
        self._file(id, kept)

    def acknowledge(self, id: Id) -> None:
        """It has delivered this, so that others may follow."""
        self.drop(id)
        for counted in self.seen.add(id):
            for after in self.waiting.pop(counted, ()):
                if after in self.blocked:
                    self._file(after, self.blocked[after])

    def drop(self, id: Id) -> None:
        """It need not be sent, or not again."""
        self.in_flight.pop(id, None)
        if self.blocked.pop(id, None) is not None:
            self.free.pop(id, None)

    def launch(self, inflight_max: int) -> list[Id]:
        """What is in flight from now on, in the order in which it came to the station."""
        room = inflight_max - len(self.in_flight)
        ready = sorted(self.free, key=lambda id: self.blocked[id].place)[: max(room, 0)]
        for id in ready:
            self._launch(id)
        return ready

    def launch_one(self, id: Id, inflight_max: int) -> bool:
        """Whether this is in flight from now on."""
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
