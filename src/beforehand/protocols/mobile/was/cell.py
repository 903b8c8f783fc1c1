"""A station's cell: the numbers it gives to messages, what it keeps, and for whom.

A message is kept until all hosts that are registered here have acknowledged it, and no longer: no
other station is asked (MOB section 4.1). What is discarded is always the oldest: so whatever was
discarded precedes, or is concurrent with, all that is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Literal

import msgspec

from beforehand.protocols.contract.base import Message, MessageId, NodeId
from beforehand.protocols.mobile.pace import ranges_of
from beforehand.protocols.mobile.was.frames import Ranges, Request1, Response1

Phase = Literal["here", "asking", "fetching", "going"]
"""*here*: registered, no handoff. The new station is *asking* until all answers to Request1 are in,
and *fetching* until Response2; the old one is *going* from Response1 to Request2."""


class Kept(msgspec.Struct):
    """A message of the cell."""

    message: Message
    delivered_by: tuple[NodeId, ...] = ()
    """Hosts that are registered here and have delivered it elsewhere."""
    rests: int = 0
    """It is not repeated in so many rounds of repetitions to come."""


class Guest(msgspec.Struct):
    """A host that is registered here."""

    host: NodeId
    ses: int
    next: int
    """Its next message by the cell's numbers. All from here on is kept for it."""
    next_said: int
    heard_us: int
    phase: Phase = "here"
    is_fresh: bool = False
    """Registered as a new one. As long as the host has not heard of it, that is worth nothing."""
    early: dict[int, Message] = {}
    """What it said ahead of its turn."""
    has: Ranges = ()
    """What it has out of order."""
    catch_up: dict[int, Message] = {}
    """What it must deliver first, because it was discarded here."""
    owes_ack: bool = False
    # In a handoff:
    asked: list[NodeId] = []
    """Who has not answered Request1."""
    known: list[Response1] = []
    cut: int = 0
    """The cell's next number at Request2 (at the new station) or at Request1 (at the old one)."""
    missing: tuple[MessageId, ...] = ()
    waiting: Request1 | None = None
    """Of a newer connection, to be answered after this handoff."""
    is_doomed: bool = False
    """A Delete came during the handoff."""

    def first_to_catch_up(self, count: int) -> list[tuple[int, Message]]:
        """No more than may be in flight; the others when these are acknowledged."""
        return list(islice(self.catch_up.items(), count))


class Cell:
    """The registry of hosts, and the messages that are kept for them."""

    def __init__(self) -> None:
        self.guests: dict[NodeId, Guest] = {}
        self.kept: dict[int, Kept] = {}
        self.next = 0

    def add(self, message: Message) -> int:
        """The number of a message in this cell. It is kept if there is anybody to keep it for."""
        seq = self.next
        self.next += 1
        self.kept[seq] = Kept(message)
        self.discard()
        return seq

    def oldest(self) -> int:
        """From here on, everything is there."""
        return next(iter(self.kept), self.next)

    def discard(self) -> None:
        """What all who are registered have acknowledged. Who is in the middle of a handoff counts
        from the moment of its connect (correction 14)."""
        until = min((guest.next for guest in self.guests.values()), default=self.next)
        for seq in list(self.kept):
            if seq >= until:
                break
            del self.kept[seq]

    def undelivered(self, guest: Guest) -> Iterator[tuple[int, Kept]]:
        for seq, kept in self.kept.items():
            if seq >= guest.next and guest.host not in kept.delivered_by:
                yield seq, kept

    def first_undelivered(self, guest: Guest) -> int:
        return next((seq for seq, _ in self.undelivered(guest)), self.next)

    def delivered_elsewhere(self, guest: Guest) -> Ranges:
        kept = self.kept.items()
        return ranges_of(s for s, k in kept if s >= guest.next and guest.host in k.delivered_by)

    def unregister(self, host: NodeId) -> None:
        self.guests.pop(host, None)
        self.discard()

    def is_wanted(self, seq: int) -> bool:
        """Whether somebody who can hear it has not acknowledged it."""
        elsewhere = self.kept[seq].delivered_by
        return any(
            guest.phase == "here"
            and not guest.catch_up
            and seq >= guest.next
            and guest.host not in elsewhere
            and not any(first <= seq <= last for first, last in guest.has)
            for guest in self.guests.values()
        )
