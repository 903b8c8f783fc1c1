"""A station's cell: its registered hosts, its message numbers, and the messages kept for the hosts.

The station keeps a message until all hosts registered here have acknowledged it. It then discards
the message without asking another station (MOB section 4.1). It always discards the oldest message
first. So a discarded message precedes, or is concurrent with, every kept one.
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
"""The phase of a host's registration:

- *here*: registered, no handoff.
- *asking*: at the new station, until all answers to Request1 have arrived.
- *fetching*: at the new station, until Response2.
- *going*: at the old station, from Response1 to Request2.
"""


class Kept(msgspec.Struct):
    """A message that the station keeps for its cell."""

    message: Message
    delivered_by: tuple[NodeId, ...] = ()
    """Hosts that are registered here and have delivered it in another cell."""
    rests: int = 0
    """How many coming retransmission rounds leave it out."""


class Guest(msgspec.Struct):
    """A host that is registered here."""

    host: NodeId
    ses: int
    next: int
    """The cell's number of the message that the host needs next. All from here on are kept."""
    next_broadcast: int
    """The sequence number of the broadcast that the station expects next from the host."""
    last_frame_us: int
    """When the last frame of the host arrived."""
    phase: Phase = "here"
    is_fresh: bool = False
    """Whether the host was registered as new. Such a registration is void until the host has
    received the ConnectAck."""
    early: dict[int, Message] = {}
    """Broadcasts received from the host ahead of a missing one."""
    has: Ranges = ()
    """Numbers of the messages that the host has received out of order."""
    catch_up: dict[int, Message] = {}
    """Messages discarded here that the host must deliver first."""
    owes_ack: bool = False
    """Whether the station owes the host an acknowledgement."""
    # In a handoff:
    asked: list[NodeId] = []
    """Stations that have not answered Request1."""
    known: list[Response1] = []
    """Answers of the stations that know the host."""
    cut: int = 0
    """The cell's next number at Request2 (at the new station) or at Request1 (at the old one)."""
    missing: tuple[MessageId, ...] = ()
    """Messages that the host has not delivered, by Response1."""
    waiting: Request1 | None = None
    """A Request1 of a newer connection, to be answered after this handoff."""
    is_doomed: bool = False
    """Whether a Delete arrived during the handoff."""

    def first_to_catch_up(self, count: int) -> list[tuple[int, Message]]:
        """Return the first `count` messages to catch up on. The others follow when these are
        acknowledged."""
        return list(islice(self.catch_up.items(), count))


class Cell:
    """The registered hosts, and the messages that are kept for them."""

    def __init__(self) -> None:
        self.guests: dict[NodeId, Guest] = {}
        self.kept: dict[int, Kept] = {}
        self.next = 0

    def add(self, message: Message) -> int:
        """Number a message in this cell, and return the number. Keep it if any host needs it."""
        seq = self.next
        self.next += 1
        self.kept[seq] = Kept(message)
        self.discard()
        return seq

    def oldest(self) -> int:
        """Return the number of the oldest kept message. All messages from there on are kept."""
        return next(iter(self.kept), self.next)

    def discard(self) -> None:
        """Discard the messages that all registered hosts have acknowledged.

        A host in a handoff counts as registered from the moment of its Connect (correction 14).
        """
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
        """Return whether a host that can receive the message has not acknowledged it."""
        elsewhere = self.kept[seq].delivered_by
        return any(
            guest.phase == "here"
            and not guest.catch_up
            and seq >= guest.next
            and guest.host not in elsewhere
            and not any(first <= seq <= last for first, last in guest.has)
            for guest in self.guests.values()
        )
