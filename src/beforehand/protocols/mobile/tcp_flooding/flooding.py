"""TCP-Flooding, the baseline of MOB-TR section V.A: flooding over reliable FIFO channels.

Every host is a leaf below its station in the tree of stations. All edges of the tree are FIFO and
reliable, and that alone gives causal order. The edge between a station and a host is a TCP
connection, so the station sends each message to each host separately.

Hosts are static. A host that changes its cell starts anew, as if it were another host. It does not
get the messages that its old station still had for it. It drops its broadcasts that were sent and
not acknowledged (a loss). It may receive again messages that it delivered before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Literal

import msgspec

from beforehand.errors import LocalError
from beforehand.protocols.contract.base import (
    CANCEL,
    Counters,
    Message,
    MessageId,
    MessageStatus,
    NodeId,
    Timer,
)
from beforehand.protocols.contract.needs import Link, Needs
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.contract.tables import Rows, Table
from beforehand.protocols.mobile.pace import Pace
from beforehand.protocols.mobile.station_tree import routes
from beforehand.protocols.mobile.tcp_flooding.connection import Connection, Tcp
from beforehand.protocols.mobile.tcp_flooding.frames import Frame, Segment, Syn, SynAck
from beforehand.protocols.mobile.was.frames import Relay

CONNECT: Timer = ("tcp connect", None)
GAP: Timer = ("tcp gap", None)


class Guest(msgspec.Struct):
    """A host connected to the station."""

    connection: Connection
    held: deque[tuple[int, Message]] = msgspec.field(default_factory=deque)
    """(due time in µs, message), in order: messages not offered to the connection yet."""


class TcpStation:
    """One station of a tree. It relays messages; its connections are its only state."""

    tables: tuple[Table, ...] = ()

    def __init__(
        self,
        node: NodeId,
        wires: Sequence[tuple[NodeId, NodeId]],
        pace: Pace | None = None,
        tcp: Tcp | None = None,
    ) -> None:
        """pace: ignored; TCP has its own parameters. The other systems use it."""
        self.node = node
        self.needs = Needs({"cell": Link(), "wire": Link(fifo=True, reliable=True)})
        self.counters = Counters()
        self._wired = tuple(dict.fromkeys(routes(node, wires).values()))
        self._tcp = tcp or Tcp()
        self.guests: dict[NodeId, Guest] = {}
        self._has_gap = False

    def on_message(self, now_us: int, source: NodeId, frame: Frame, out: Outbox[Frame]) -> None:
        """Handle a frame that came by radio from a host, or by wire from a peer station."""
        if isinstance(frame, Relay):
            self.counters.received += 1
            out.receives.append(frame.message)
            self._disseminate(now_us, frame.message, source, out)
        elif frame.cell != self.node or frame.host != source:
            return
        elif isinstance(frame, Syn):
            self._on_syn(frame, out)
        elif isinstance(frame, Segment):
            guest = self.guests.get(source)
            if guest is not None and guest.connection.ses == frame.ses:
                before = len(out.receives)
                for message in guest.connection.on_segment(now_us, frame, out):
                    self._disseminate(now_us, message, source, out)
                self.counters.received += len(out.receives) - before

    def on_timer(self, now_us: int, timer: Timer, out: Outbox[Frame]) -> None:
        """Release held messages to the next hosts; or pass the timer to its connection."""
        if timer == GAP and self._has_gap:
            self._release(now_us, out)
        elif timer[1] is not None and timer[1] in self.guests:
            self.guests[timer[1]].connection.on_timer(now_us, timer, out)

    def restore(self, now_us: int, rows: Rows, out: Outbox[Frame]) -> None:
        """Do nothing: a station saves nothing."""

    def explain(self, message: MessageId) -> MessageStatus:
        """Return "unknown": a station delivers nothing to an application."""
        return MessageStatus("unknown")

    def gauges(self, now_us: int) -> dict[str, int]:
        guests = self.guests.values()
        sizes = [guest.connection.gauges() for guest in guests]
        return {
            "guests": len(guests),
            "kept": sum(unacked for unacked, _ in sizes) + sum(len(g.held) for g in guests),
            "early": sum(early for _, early in sizes),
        }

    def _on_syn(self, frame: Syn, out: Outbox[Frame]) -> None:
        guest = self.guests.get(frame.host)
        if guest is not None and guest.connection.ses > frame.ses:
            return
        if guest is None or guest.connection.ses < frame.ses:
            connection = Connection(self.node, self.node, frame.host, frame.ses, self._tcp)
            self.guests[frame.host] = Guest(connection)
        out.sends.append((frame.host, SynAck(self.node, frame.host, frame.ses)))

    def _disseminate(
        self, now_us: int, message: Message, source: NodeId, out: Outbox[Frame]
    ) -> None:
        """Send a message on all edges but the one that it came from, to the hosts one by one."""
        out.sends += [(peer, Relay(message)) for peer in self._wired if peer != source]
        due_us = now_us
        for host, guest in self.guests.items():
            if host != source:
                guest.held.append((due_us, message))
                due_us += self._tcp.gap_us
        self._release(now_us, out)

    def _release(self, now_us: int, out: Outbox[Frame]) -> None:
        # A due time more than one round through the cell ahead is from before the clock was set
        # back: release the message at once.
        latest_us = now_us + self._tcp.gap_us * len(self.guests)
        nexts_us = []
        for guest in self.guests.values():
            held = guest.held
            if held and not now_us < held[0][0] <= latest_us:
                while held and not now_us < held[0][0] <= latest_us:
                    guest.connection.offer(held.popleft()[1])
                guest.connection.push(now_us, out)
            if held:
                nexts_us.append(held[0][0])
        self._has_gap = bool(nexts_us)
        if nexts_us:
            out.timers.append((GAP, min(nexts_us)))


class TcpHost:
    """A host that connects as soon as it is in a cell. It delivers its own messages at once."""

    tables: tuple[Table, ...] = ()

    def __init__(self, node: NodeId, pace: Pace | None = None, tcp: Tcp | None = None) -> None:
        """pace: ignored; TCP has its own parameters. The other systems use it."""
        self.node = node
        self.needs = Needs({"cell": Link()})
        self.counters = Counters()
        self.state: Literal["away", "connecting", "connected"] = "away"
        self.cell: NodeId | None = None
        self._tcp = tcp or Tcp()
        self._ses = 0
        self._timeout_us = 0
        self._next_broadcast = 1
        self._unsent: list[Message] = []
        self._connection: Connection | None = None

    def on_link(self, now_us: int, peer: NodeId, up: bool, out: Outbox[Frame]) -> None:
        """Connect to the station whose cell the host entered, or disconnect on leaving it."""
        if up and peer != self.cell:
            self._quit(out)
            self.cell = peer
            self._ses += 1
            self.state = "connecting"
            self._timeout_us = self._tcp.timeout_us_first
            self._ask(now_us, out)
        elif not up and peer == self.cell:
            self._quit(out)

    def on_broadcast(
        self, now_us: int, payload: bytes, out: Outbox[Frame], lifetime_us: int | None = None
    ) -> MessageId:
        """Deliver and send a new message, and return its id.

        The host delivers it at once, because flooding does not return a message to its origin.
        """
        if lifetime_us is not None:
            raise LocalError("messages have no lifetimes here", hint="leave `lifetime_us` out")
        message = Message((self.node, self._next_broadcast), (), payload)
        self._next_broadcast += 1
        self.counters.broadcast += 1
        self.counters.delivered += 1
        out.deliveries.append(message)
        if self._connection is None:
            self._unsent.append(message)
        else:
            self._connection.offer(message)
            self._connection.push(now_us, out)
        return message.id

    def on_message(self, now_us: int, source: NodeId, frame: Frame, out: Outbox[Frame]) -> None:
        """Handle a frame of this connection from the station of the cell; ignore all others."""
        if isinstance(frame, Relay) or not (source == frame.cell == self.cell):
            return
        if frame.host != self.node or frame.ses != self._ses:
            return
        if isinstance(frame, SynAck) and self.state == "connecting":
            self._open(now_us, out)
        elif isinstance(frame, Segment) and self._connection is not None:
            before = len(out.receives)
            ordered = self._connection.on_segment(now_us, frame, out)
            out.deliveries += ordered
            self.counters.received += len(out.receives) - before
            self.counters.delivered += len(ordered)

    def on_timer(self, now_us: int, timer: Timer, out: Outbox[Frame]) -> None:
        """Repeat the connection request; or pass the timer to the connection."""
        if timer == CONNECT and self.state == "connecting":
            self._timeout_us = min(2 * self._timeout_us, self._tcp.timeout_us_max)
            self._ask(now_us, out)
        elif self._connection is not None:
            self._connection.on_timer(now_us, timer, out)

    def restore(self, now_us: int, rows: Rows, out: Outbox[Frame]) -> None:
        """Do nothing: a host of TCP-Flooding saves nothing."""

    def explain(self, message: MessageId) -> MessageStatus:
        """Return "delivered" for an own message, else "unknown".

        A host remembers only its own messages, by their number.
        """
        is_own = message[0] == self.node and 0 < message[1] < self._next_broadcast
        return MessageStatus("delivered" if is_own else "unknown")

    def gauges(self, now_us: int) -> dict[str, int]:
        unacked, early = (0, 0) if self._connection is None else self._connection.gauges()
        return {"unacked": unacked + len(self._unsent), "early": early}

    def _ask(self, now_us: int, out: Outbox[Frame]) -> None:
        assert self.cell is not None
        out.sends.append((self.cell, Syn(self.cell, self.node, self._ses)))
        out.timers.append((CONNECT, now_us + self._timeout_us))

    def _open(self, now_us: int, out: Outbox[Frame]) -> None:
        assert self.cell is not None
        self.state = "connected"
        out.timers.append((CONNECT, CANCEL))
        self._connection = Connection(self.node, self.cell, self.node, self._ses, self._tcp)
        for message in self._unsent:
            self._connection.offer(message)
        self._unsent = []
        self._connection.push(now_us, out)

    def _quit(self, out: Outbox[Frame]) -> None:
        """Close the connection, and drop the messages sent but not acknowledged.

        The station may have flooded them already. To send them again could deliver them twice.
        """
        if self.cell is None:
            return
        connection, self._connection = self._connection, None
        self.cell, self.state = None, "away"
        out.timers.append((CONNECT, CANCEL))
        if connection is not None:
            self._unsent = connection.unsent()
            unsure = connection.unsure()
            out.losses += [("drop", message.id) for message in unsure]
            self.counters.dropped += len(unsure)
