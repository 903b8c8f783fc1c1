"""A mobile host: it communicates only with the station of its cell (MOB section 4).

A host keeps little: its unacknowledged broadcasts, messages received out of order, and a few
numbers. The stations keep everything else. The host delivers its own messages when its station
sends them back, in the station's order.

*Crashes.* A host saves its broadcasts, its connection and its place. The paper saves the place with
every acknowledgement, so a host delivers again after a crash what it delivered since then
(correction 11). `saves="delivery"` saves it with each delivery, and the host repeats nothing.
"""

from __future__ import annotations

from typing import Literal, assert_never

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
from beforehand.protocols.contract.proof import Proofs
from beforehand.protocols.contract.tables import Rows, Table
from beforehand.protocols.mobile.bounds import refuse_long
from beforehand.protocols.mobile.pace import Pace
from beforehand.protocols.mobile.was.frames import (
    Cast,
    CatchUp,
    Connect,
    ConnectAck,
    Downlink,
    Forgotten,
    Frame,
    HostAck,
    HostBroadcast,
    Join,
    Leave,
    LeaveAck,
    Place,
    Ranges,
    StationAck,
    is_proven,
)

CONNECT: Timer = ("connect", None)
ACK: Timer = ("host ack", None)
RETRY: Timer = ("broadcast again", None)

State = Literal["away", "connecting", "catching", "connected", "leaving", "gone"]


class Memory(msgspec.Struct, frozen=True):
    """The state of a host that survives a crash."""

    ses: int
    place: Place
    next_broadcast: int = msgspec.field(name="next_said")
    has_left: bool = False


MEMORY = Table("host", str, Memory)
BROADCASTS = Table("said", int, Message)


class Host:
    """A host that joins as soon as it is in a cell."""

    def __init__(
        self,
        node: NodeId,
        pace: Pace | None = None,
        *,
        saves: Literal["delivery", "acknowledgement"] = "delivery",
        names_stations: bool = True,
        durable: bool = False,
        proofs: Proofs | None = None,
        message_bytes_max: int | None = None,
    ) -> None:
        """names_stations: the host lists the stations that may have registered it (MOB); otherwise
        a station asks all others (MOB-TR). proofs: the host signs its messages and ignores unproven
        ones. message_bytes_max: limit of an encoded message, the same as at the stations."""
        self.node = node
        self.needs = Needs({"cell": Link()})
        self.tables = (MEMORY, BROADCASTS) if durable else ()
        self.counters = Counters()
        self.state: State = "away"
        self.cell: NodeId | None = None
        self._pace = pace or Pace()
        self._saves_deliveries = saves == "delivery"
        self._ses = 0
        self._place = Place()
        self._proofs = proofs
        self._message_bytes_max = message_bytes_max
        self._names_stations = names_stations
        self._visits: dict[NodeId, int] | None = {} if names_stations else None
        self._next_broadcast = 1
        self._broadcasts: dict[int, Message] = {}
        self._unacked: set[int] = set()  # own broadcasts not acknowledged by the station
        self._early: dict[int, Cast | CatchUp] = {}
        self._elsewhere: Ranges = ()  # numbers of this cell already delivered in another one
        self._owes_ack = False
        self._is_repeating = False

    # ---- inputs ---------------------------------------------------------------------------------

    def on_link(self, now_us: int, peer: NodeId, up: bool, out: Outbox[Frame]) -> None:
        """Connect to the station whose cell the host entered, or disconnect on leaving it."""
        if up and peer != self.cell:
            self._quit(out)
            self.cell = peer
            self._open(now_us, out)
        elif not up and peer == self.cell:
            self._quit(out)

    def on_broadcast(
        self, now_us: int, payload: bytes, out: Outbox[Frame], lifetime_us: int | None = None
    ) -> MessageId:
        """Broadcast a message and return its id. The station's copy is delivered later."""
        if self.state in ("leaving", "gone"):
            raise LocalError("a host that has left cannot broadcast", hint="join under a new name")
        if lifetime_us is not None:
            raise LocalError("messages have no lifetimes here", hint="leave `lifetime_us` out")
        seq = self._next_broadcast
        message = Message((self.node, seq), (), payload)
        if self._proofs is not None:
            message = self._proofs.prove(message)
        refuse_long(message, self._message_bytes_max)
        self._next_broadcast += 1  # correction 1
        self._broadcasts[seq] = message
        self._unacked.add(seq)
        self.counters.broadcast += 1
        if self.tables:
            out.saves.append((BROADCASTS.name, seq, message))
            self._save(out)
        if self.state == "connected" and seq < min(self._broadcasts) + self._pace.inflight_max:
            self._send_broadcast(seq, out)
        self._repeat(now_us, out)
        return message.id

    def on_leave(self, now_us: int, out: Outbox[Frame]) -> None:
        """Leave for good. The host may return only under a new name (correction 10)."""
        if self.state == "gone":
            return
        self.state = "leaving"
        self._save(out)
        self._clear_cell(out)
        if self.cell is not None:
            self._ask(now_us, out)

    def on_message(self, now_us: int, source: NodeId, frame: Frame, out: Outbox[Frame]) -> None:
        """Handle a frame of the station of the host's cell; ignore all others (correction 9)."""
        if not isinstance(frame, Downlink) or frame.cell != self.cell or source != self.cell:
            return
        if self._proofs is not None and not is_proven(frame, self._proofs):
            self.counters.refused += 1
            return
        if isinstance(frame, Cast):
            self._on_cast(now_us, frame, out)
        elif isinstance(frame, CatchUp):
            self._on_catch_up(now_us, frame, out)
        elif isinstance(frame, StationAck):
            self._on_station_ack(frame, out)
        elif isinstance(frame, ConnectAck):
            self._on_connect_ack(now_us, frame, out)
        elif isinstance(frame, LeaveAck):
            if self._is_mine(frame) and self.state == "leaving":
                self.state = "gone"
                self._forget(out)
        elif isinstance(frame, Forgotten):
            if self._is_mine(frame) and self.state in ("connected", "catching"):
                self._clear_cell(out)
                self._open(now_us, out)
        else:
            assert_never(frame)

    def on_timer(self, now_us: int, timer: Timer, out: Outbox[Frame]) -> None:
        """Repeat the frame that was not answered, or send an acknowledgement that is due."""
        if timer == CONNECT and self.cell is not None and self.state in ("connecting", "leaving"):
            self._ask(now_us, out)
        elif timer == ACK and (self._owes_ack or self._is_beating()):
            self._acknowledge(now_us, out)
        elif timer == RETRY and self._is_repeating:
            self._is_repeating = False
            end = min(self._broadcasts, default=0) + self._pace.inflight_max
            for seq in sorted(self._unacked):
                if seq < end:
                    self._send_broadcast(seq, out)
            self._repeat(now_us, out)

    def restore(self, now_us: int, rows: Rows, out: Outbox[Frame]) -> None:
        """Load the saved state. Visits are not saved, so all stations are asked (correction 15)."""
        memory = rows.get(MEMORY.name, {}).get("")
        if memory is not None:
            self._ses, self._place = memory.ses, memory.place
            self._next_broadcast = memory.next_broadcast
            self._visits = None
            if memory.has_left:
                self.state = "leaving"
        self._broadcasts = dict(sorted(rows.get(BROADCASTS.name, {}).items()))

    def explain(self, message: MessageId) -> MessageStatus:
        """Return "waiting" or "unknown": a host does not remember what it has delivered."""
        is_waiting = message[0] == self.node and message[1] in self._broadcasts
        if is_waiting or any(early.message.id == message for early in self._early.values()):
            return MessageStatus("waiting")
        return MessageStatus("unknown")

    def gauges(self, now_us: int) -> dict[str, int]:
        return {
            "unacked": len(self._broadcasts),
            "early": len(self._early),
            "visits": len(self._visits or ()),
        }

    # ---- connections ----------------------------------------------------------------------------

    def _quit(self, out: Outbox[Frame]) -> None:
        """Leave the cell. Note its station if the host does not know whether it is registered."""
        if self.cell is None:
            return
        if self.state in ("connecting", "catching", "leaving") and self._visits is not None:
            self._visits[self.cell] = self._ses
        self.cell = None
        if self.state not in ("leaving", "gone"):
            self.state = "away"
        self._clear_cell(out)

    def _clear_cell(self, out: Outbox[Frame]) -> None:
        """Clear the state of the old cell, and cancel acknowledgements: they would refer to its
        numbers. So do the messages received out of order (correction 6)."""
        self._early.clear()
        self._elsewhere = ()
        self._owes_ack = self._is_repeating = False
        out.timers += [(CONNECT, CANCEL), (ACK, CANCEL), (RETRY, CANCEL)]

    def _open(self, now_us: int, out: Outbox[Frame]) -> None:
        """Start a new connection in the current cell."""
        if self.state == "gone":
            return
        self._ses += 1
        if self.state != "leaving":
            self.state = "connecting"
        self._save(out)
        self._ask(now_us, out)

    def _ask(self, now_us: int, out: Outbox[Frame]) -> None:
        assert self.cell is not None
        visits = None if self._visits is None else tuple(self._visits.items())
        frame: Frame
        if self.state == "leaving":
            frame = Leave(self.cell, self.node, self._ses, visits)
        elif self._place.ses == 0:
            frame = Join(self.cell, self.node, self._ses, visits)
        else:
            frame = Connect(
                self.cell, self.node, self._ses, self._place, self._next_broadcast, visits
            )
        out.sends.append((self.cell, frame))
        out.timers.append((CONNECT, now_us + self._pace.retry_us_min))

    def _on_connect_ack(self, now_us: int, frame: ConnectAck, out: Outbox[Frame]) -> None:
        if not self._is_mine(frame) or self.state not in ("connecting", "catching"):
            return
        assert self.cell is not None
        self.state = "connected"
        self._owes_ack = False
        self._place = Place(self._ses, False, frame.next)
        self._elsewhere = frame.delivered
        if self._names_stations:
            self._visits = {self.cell: self._ses}
        self._save(out)
        out.timers.append((ACK, CANCEL))
        self._drop_acked(frame.next_broadcast, out, is_lost=frame.is_new)
        out.timers.append((CONNECT, CANCEL))
        self._unacked = set(self._broadcasts)
        for seq in list(self._broadcasts)[: self._pace.inflight_max]:
            self._send_broadcast(seq, out)
        self._repeat(now_us, out)
        self._beat(now_us, out)

    def _is_mine(self, frame: CatchUp | ConnectAck | LeaveAck | Forgotten) -> bool:
        return frame.host == self.node and frame.ses == self._ses

    # ---- incoming -------------------------------------------------------------------------------

    def _on_cast(self, now_us: int, frame: Cast, out: Outbox[Frame]) -> None:
        if self.state == "connected":  # else the cell's numbers do not apply yet
            self._take(now_us, frame, out)

    def _on_catch_up(self, now_us: int, frame: CatchUp, out: Outbox[Frame]) -> None:
        if not self._is_mine(frame) or self.state not in ("connecting", "catching"):
            return
        if self.state == "connecting":
            self.state = "catching"
            self._place = Place(self._ses, True, 0)
            out.timers.append((CONNECT, CANCEL))
        self._take(now_us, frame, out)

    def _take(self, now_us: int, frame: Cast | CatchUp, out: Outbox[Frame]) -> None:
        place = self._place
        is_old = frame.seq < place.next or self._after_elsewhere(frame.seq) > frame.seq
        if is_old or frame.seq in self._early:
            self.counters.duplicate += 1
        else:
            self._early[frame.seq] = frame
            self.counters.received += 1
            out.receives.append(frame.message)
        after = place.next
        while after in self._early:
            out.deliveries.append(self._early.pop(after).message)
            self.counters.delivered += 1
            after = self._after_elsewhere(after + 1)  # correction 2
        if after > place.next:
            self._place = Place(place.ses, place.is_catching, after)
            if self._saves_deliveries:
                self._save(out)
        if not self._owes_ack:
            self._owes_ack = True
            out.timers.append((ACK, now_us + self._pace.ack_us))

    def _after_elsewhere(self, seq: int) -> int:
        """Return the first number from `seq` on that was not delivered in another cell."""
        for first, last in self._elsewhere:
            if first <= seq <= last:
                return last + 1
        return seq

    def _is_beating(self) -> bool:
        return self._pace.patience_us is not None and self.state in ("catching", "connected")

    def _beat(self, now_us: int, out: Outbox[Frame]) -> None:
        """If stations unregister silent hosts, let even an idle host send acknowledgements. A host
        alone in its cell would else never learn that it was unregistered."""
        if self._is_beating() and not self._owes_ack:
            assert self._pace.patience_us is not None
            out.timers.append((ACK, now_us + self._pace.patience_us // 3))

    def _acknowledge(self, now_us: int, out: Outbox[Frame]) -> None:
        assert self.cell is not None
        self._owes_ack = self.state == "catching"  # until ConnectAck (correction 16)
        self._save(out)
        ranges = self._pace.ranges(self._early)
        out.sends.append((self.cell, HostAck(self.cell, self.node, self._place, ranges)))
        if self._owes_ack:
            out.timers.append((ACK, now_us + self._pace.ack_us))
        self._beat(now_us, out)

    # ---- outgoing -------------------------------------------------------------------------------

    def _on_station_ack(self, frame: StationAck, out: Outbox[Frame]) -> None:
        """Clear the acknowledged broadcasts, and nothing else (correction 3)."""
        if self.state != "connected":
            return
        for ack in frame.acks:
            if ack.host == self.node and ack.ses == self._ses:
                self._drop_acked(ack.next, out)
                # Test each member: a wrong station may send a range of any length.
                for first, last in ack.ranges:
                    self._unacked -= {seq for seq in self._unacked if first <= seq <= last}

    def _drop_acked(self, before: int, out: Outbox[Frame], is_lost: bool = False) -> None:
        for seq in [seq for seq in self._broadcasts if seq < before]:
            del self._broadcasts[seq]
            self._unacked.discard(seq)
            if self.tables:
                out.saves.append((BROADCASTS.name, seq, None))
            if is_lost:
                out.losses.append(("drop", (self.node, seq)))
                self.counters.dropped += 1

    def _send_broadcast(self, seq: int, out: Outbox[Frame]) -> None:
        assert self.cell is not None
        frame = HostBroadcast(self.cell, self.node, self._ses, self._broadcasts[seq])
        out.sends.append((self.cell, frame))

    def _repeat(self, now_us: int, out: Outbox[Frame]) -> None:
        if self.state == "connected" and self._unacked and not self._is_repeating:
            self._is_repeating = True
            out.timers.append((RETRY, now_us + self._pace.retry_us(len(self._broadcasts))))

    # ---- saves ----------------------------------------------------------------------------------

    def _save(self, out: Outbox[Frame]) -> None:
        if self.tables:
            has_left = self.state in ("leaving", "gone")
            memory = Memory(self._ses, self._place, self._next_broadcast, has_left)
            out.saves.append((MEMORY.name, "", memory))

    def _forget(self, out: Outbox[Frame]) -> None:
        self._clear_cell(out)
        self._drop_acked(self._next_broadcast, out, is_lost=True)
