"""A station: it numbers the messages of the network in its cell and keeps them for its hosts.

Causal order comes from FIFO flooding over the tree of stations and from FIFO numbers in each cell
(MOB section 4.1). A station is reliable: it does not crash, and it saves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from beforehand.protocols.contract.base import (
    EVERYBODY,
    Counters,
    Message,
    MessageId,
    MessageStatus,
    NodeId,
    Timer,
)
from beforehand.protocols.contract.needs import Link, Needs
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.contract.proof import Proofs
from beforehand.protocols.contract.tables import Rows, Table
from beforehand.protocols.mobile.bounds import are_short
from beforehand.protocols.mobile.pace import Pace
from beforehand.protocols.mobile.station_tree import routes
from beforehand.protocols.mobile.was.cell import Cell, Guest
from beforehand.protocols.mobile.was.frames import (
    BroadcastAck,
    Cast,
    CatchUp,
    Connect,
    Delete,
    Forgotten,
    Frame,
    HostAck,
    HostBroadcast,
    Join,
    Leave,
    Relay,
    Request1,
    Request2,
    Response1,
    Response2,
    Routed,
    StationAck,
    Uplink,
    is_proven,
)
from beforehand.protocols.mobile.was.guard import Guard
from beforehand.protocols.mobile.was.handoff import Handoff

ACK: Timer = ("station ack", None)
RETRY: Timer = ("cast again", None)


class Station:
    """One station of a tree. All stations know the whole tree."""

    tables: tuple[Table, ...] = ()

    def __init__(
        self,
        node: NodeId,
        wires: Sequence[tuple[NodeId, NodeId]],
        pace: Pace | None = None,
        *,
        floods: bool = False,
        proofs: Proofs | None = None,
        message_bytes_max: int | None = None,
    ) -> None:
        """Create a station.

        floods: handoffs ask all stations, as in MOB-TR, and not only those that a host names.
        proofs: the station forwards only messages that are proven to be of their host.
        message_bytes_max: the station refuses longer encoded messages, because they would not fit
        into every radio frame (`bounds`).
        """
        self.node = node
        self.needs = Needs({"cell": Link(), "wire": Link(fifo=True, reliable=True)})
        self.counters = Counters()
        self._via = routes(node, wires)
        self._wired = tuple(dict.fromkeys(self._via.values()))
        self._pace = pace or Pace()
        self.cell = Cell()
        self.guard = Guard(self.cell, self._pace)
        self._handoff = Handoff(node, self.cell, self._via, self._pace, floods=floods)
        self._proofs = proofs
        self._message_bytes_max = message_bytes_max
        self._is_repeating = False
        self._round = 0
        self._cast_before = 0  # messages with numbers from here on were not transmitted yet
        self._owes_ack = False

    # ---- inputs ---------------------------------------------------------------------------------

    def on_message(self, now_us: int, source: NodeId, frame: Frame, out: Outbox[Frame]) -> None:
        """Handle a frame that came by radio from a host, or by wire from a peer station."""
        if not self._is_acceptable(frame):
            self.counters.refused += 1
        elif isinstance(frame, Uplink):
            if frame.cell == self.node and frame.host == source:  # correction 9
                self._on_uplink(now_us, frame, out)
        elif isinstance(frame, Relay):
            self.counters.received += 1
            out.receives.append(frame.message)
            self._disseminate(frame.message, source, out)
        elif isinstance(frame, Routed):
            self._handoff.refuse_strangers(source, frame)
            if frame.target != self.node:
                self._handoff.pass_on(source, frame, out)
            if frame.target in (self.node, EVERYBODY):
                self._on_routed(frame, out)
        self._keep_up(now_us, out)

    def on_timer(self, now_us: int, timer: Timer, out: Outbox[Frame]) -> None:
        """Acknowledge broadcasts of hosts, or retransmit messages that hosts lack."""
        if timer == ACK and self._owes_ack:
            self._acknowledge(out)
        elif timer == RETRY and self._is_repeating:
            self._is_repeating = False
            self.guard.unregister(now_us)
            self._cast_again(out)
            self._keep_up(now_us, out)

    def restore(self, now_us: int, rows: Rows, out: Outbox[Frame]) -> None:
        """Do nothing: a station saves nothing."""

    def explain(self, message: MessageId) -> MessageStatus:
        """Return "unknown": a station delivers nothing to an application."""
        return MessageStatus("unknown")

    def gauges(self, now_us: int) -> dict[str, int]:
        guests = self.cell.guests.values()
        return {
            "guests": len(guests),
            "kept": len(self.cell.kept),
            "early": sum(len(guest.early) for guest in guests),
            "catch_up": sum(len(guest.catch_up) for guest in guests),
            "handoffs": sum(guest.phase != "here" for guest in guests),
        }

    # ---- hosts and other stations ---------------------------------------------------------------

    def _is_acceptable(self, frame: Frame) -> bool:
        """Return whether the frame's messages fit into any frame, are proven, and are the host's.

        If a host could send the message of another host, it would be delivered twice.
        """
        if not are_short(frame, self._message_bytes_max):
            return False
        if isinstance(frame, HostBroadcast) and frame.message.origin != frame.host:
            return False
        return self._proofs is None or is_proven(frame, self._proofs)

    def _on_uplink(self, now_us: int, frame: Uplink, out: Outbox[Frame]) -> None:
        if isinstance(frame, Join):
            self._handoff.on_join(now_us, frame, out)
        elif isinstance(frame, Connect):
            self._handoff.on_connect(now_us, frame, out)
        elif isinstance(frame, Leave):
            self._handoff.on_leave(frame, out)
        else:
            self._on_guest(now_us, frame, out)

    def _on_guest(self, now_us: int, frame: HostBroadcast | HostAck, out: Outbox[Frame]) -> None:
        ses = frame.ses if isinstance(frame, HostBroadcast) else frame.place.ses
        guest = self.cell.guests.get(frame.host)
        if guest is None:
            out.sends.append((EVERYBODY, Forgotten(self.node, frame.host, ses)))
        elif (
            guest.ses == ses and guest.phase == "here"
        ):  # correction 8: nothing of another connection
            guest.last_frame_us = now_us
            if isinstance(frame, HostBroadcast):
                self._on_host_broadcast(guest, frame.message, out)
            elif frame.place.is_catching:
                self._handoff.on_caught_up(guest, frame.place.next, out)
            elif not guest.catch_up:
                guest.next = max(guest.next, frame.place.next)
                guest.has = frame.ranges
                self.cell.discard()

    def _on_routed(self, frame: Routed, out: Outbox[Frame]) -> None:
        if isinstance(frame, Request1):
            self._handoff.on_request1(frame, out)
        elif isinstance(frame, Response1):
            self._handoff.on_response1(frame, out)
        elif isinstance(frame, Request2):
            self._handoff.on_request2(frame, out)
        elif isinstance(frame, Response2):
            self._handoff.on_response2(frame, out)
        elif isinstance(frame, Delete):
            self._handoff.on_delete(frame, out)

    # ---- dissemination --------------------------------------------------------------------------

    def _on_host_broadcast(self, guest: Guest, message: Message, out: Outbox[Frame]) -> None:
        guest.owes_ack = True
        if message.seq < guest.next_broadcast or message.seq in guest.early:
            self.counters.duplicate += 1
            return
        if message.seq >= guest.next_broadcast + self._pace.inflight_max:
            # No correct host is so far ahead. Its acknowledgement must fit into a frame.
            self.counters.refused += 1
            return
        guest.early[message.seq] = message
        self.counters.received += 1
        out.receives.append(message)
        while guest.next_broadcast in guest.early:
            ready = guest.early.pop(guest.next_broadcast)
            guest.next_broadcast += 1
            self._disseminate(ready, None, out)

    def _disseminate(self, message: Message, source: NodeId | None, out: Outbox[Frame]) -> None:
        """Forward a message over the tree, and add it to the cell."""
        out.sends += [(peer, Relay(message)) for peer in self._wired if peer != source]
        self.cell.add(message)

    # ---- radio, down ----------------------------------------------------------------------------

    def _keep_up(self, now_us: int, out: Outbox[Frame]) -> None:
        """Transmit new messages as far as the send window allows; set the timers needed."""
        cell = self.cell
        end = min(cell.next, cell.oldest() + self._pace.inflight_max)
        for seq in range(max(self._cast_before, cell.oldest()), end):
            self._cast(seq, out)
            cell.kept[seq].rests = self._pace.rounds
            self.guard.note(is_repetition=False)
        self._cast_before = max(self._cast_before, end)
        catching = any(guest.catch_up for guest in cell.guests.values())
        if (cell.kept or catching) and not self._is_repeating:
            self._is_repeating = True
            out.timers.append((RETRY, now_us + self._pace.round_us(len(cell.kept))))
        if not self._owes_ack and any(guest.owes_ack for guest in cell.guests.values()):
            self._owes_ack = True
            out.timers.append((ACK, now_us + self._pace.ack_us))

    def _cast(self, seq: int, out: Outbox[Frame]) -> None:
        kept = self.cell.kept[seq]
        out.sends.append((EVERYBODY, Cast(self.node, seq, kept.message)))

    def _cast_again(self, out: Outbox[Frame]) -> None:
        """Retransmit the messages that were transmitted an interval ago and that a host lacks."""
        cell, rounds = self.cell, self._pace.rounds
        for seq, kept in cell.kept.items():
            if seq >= self._cast_before:
                break
            if kept.rests:
                kept.rests -= 1
            elif cell.is_wanted(seq):
                self._cast(seq, out)
                kept.rests = rounds - 1
                self.guard.note(is_repetition=True)
        self._round = (self._round + 1) % rounds
        for guest in cell.guests.values():
            if guest.phase == "here" and not self._round:
                for seq, message in guest.first_to_catch_up(self._pace.inflight_max):
                    catch_up = CatchUp(self.node, guest.host, guest.ses, seq, message)
                    out.sends.append((EVERYBODY, catch_up))
                    self.guard.note(is_repetition=True)

    def _acknowledge(self, out: Outbox[Frame]) -> None:
        self._owes_ack = False
        acks = []
        for guest in self.cell.guests.values():
            if guest.owes_ack:
                guest.owes_ack = False
                ranges = self._pace.ranges(guest.early)
                acks.append(BroadcastAck(guest.host, guest.ses, guest.next_broadcast, ranges))
        if acks:
            out.sends.append((EVERYBODY, StationAck(self.node, tuple(acks))))
