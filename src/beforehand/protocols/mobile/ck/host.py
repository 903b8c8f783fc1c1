"""A CK host: it delivers the messages of its station and acknowledges them, each at once or all
periodically.

It buffers nothing: a message addressed to the host comes after all its causes are delivered, and
the host ignores all others. It does not survive a crash, because it saves nothing.
"""

from __future__ import annotations

from typing import Literal

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
from beforehand.protocols.mobile.ck.frames import (
    Ack,
    Cast,
    Connect,
    ConnectAck,
    Downlink,
    Frame,
    HostBroadcast,
    Join,
    SeenAck,
    Vector,
)
from beforehand.protocols.mobile.ck.options import CkOptions
from beforehand.protocols.mobile.ck.seen import Seen
from beforehand.protocols.mobile.pace import Pace
from beforehand.protocols.mobile.was.frames import StationAck

CONNECT: Timer = ("ck connect", None)
RETRY: Timer = ("ck broadcast again", None)
HOST_ACK: Timer = ("ck host ack", None)

State = Literal["away", "connecting", "connected"]


class CkHost:
    """A host that joins as soon as it is in a cell. It keeps its broadcasts until then."""

    tables: tuple[Table, ...] = ()

    def __init__(
        self, node: NodeId, pace: Pace | None = None, *, options: CkOptions | None = None
    ) -> None:
        self.node = node
        self.needs = Needs({"cell": Link()})
        self.counters = Counters()
        self.state: State = "away"
        self.cell: NodeId | None = None
        self._pace = pace or Pace()
        self._options = options or CkOptions()
        self._ses = 0
        self._turn = 0
        self._old: NodeId | None = None  # the last station known to have registered this host
        self._seen: Seen | None = None  # None: never joined
        self._next_broadcast = 1
        self._broadcasts: dict[int, tuple[Message, Vector]] = {}
        self._unacked: dict[int, None] = {}  # own broadcasts not acknowledged by the station
        self._is_repeating = False
        self._owes_ack = False  # if acknowledgements are periodic

    # ---- inputs ---------------------------------------------------------------------------------

    def on_link(self, now_us: int, peer: NodeId, up: bool, out: Outbox[Frame]) -> None:
        """Connect to the station whose cell the host entered, or disconnect on leaving it."""
        if up and peer != self.cell:
            self._quit(out)
            self.cell = peer
            self._ses += 1
            self.state = "connecting"
            self._ask(now_us, out)
        elif not up and peer == self.cell:
            self._quit(out)

    def on_broadcast(
        self, now_us: int, payload: bytes, out: Outbox[Frame], lifetime_us: int | None = None
    ) -> MessageId:
        """Broadcast a message, and return its id. The host delivers it when the station sends it
        back."""
        if lifetime_us is not None:
            raise LocalError("messages have no lifetimes here", hint="leave `lifetime_us` out")
        seq = self._next_broadcast
        self._next_broadcast += 1
        message = Message((self.node, seq), (), payload)
        is_named = self._options.needs == "host"
        past = self._seen.last() if is_named and self._seen is not None else ()
        self._broadcasts[seq] = (message, past)
        self._unacked[seq] = None
        self.counters.broadcast += 1
        if self.state == "connected" and seq < min(self._broadcasts) + self._pace.inflight_max:
            self._send_broadcast(seq, out)
        self._repeat(now_us, out)
        return message.id

    def on_message(self, now_us: int, source: NodeId, frame: Frame, out: Outbox[Frame]) -> None:
        """Handle a frame of the station of the host's cell; ignore all others."""
        if source != self.cell:
            return
        if isinstance(frame, Cast):  # checked first, because most frames are of this type
            if frame.cell == source and self.state == "connected":
                self._on_cast(now_us, frame, out)
        elif isinstance(frame, Downlink) and frame.cell == source:
            if isinstance(frame, ConnectAck):
                self._on_connect_ack(now_us, frame, out)
            elif self.state == "connected":
                self._on_station_ack(frame)

    def on_timer(self, now_us: int, timer: Timer, out: Outbox[Frame]) -> None:
        """Repeat the connection request, or the broadcasts that are not acknowledged."""
        if timer == CONNECT and self.state == "connecting":
            self._ask(now_us, out)
        elif timer == RETRY and self._is_repeating:
            self._is_repeating = False
            self._send_all(out)
            self._repeat(now_us, out)
        elif timer == HOST_ACK and self._owes_ack:
            self._acknowledge(now_us, out)

    def restore(self, now_us: int, rows: Rows, out: Outbox[Frame]) -> None:
        """Do nothing: a CK host saves nothing."""

    def explain(self, message: MessageId) -> MessageStatus:
        """Return "waiting" for an unacknowledged own broadcast, else "unknown".

        A host does not remember messages, only how many of each station it has delivered.
        """
        is_waiting = message[0] == self.node and message[1] in self._broadcasts
        return MessageStatus("waiting" if is_waiting else "unknown")

    def gauges(self, now_us: int) -> dict[str, int]:
        extra = () if self._seen is None else self._seen.extra
        return {"unacked": len(self._broadcasts), "early": 0, "beyond_gaps": len(extra)}

    # ---- connections ----------------------------------------------------------------------------

    def _quit(self, out: Outbox[Frame]) -> None:
        if self.cell is not None:
            self.cell, self.state, self._is_repeating = None, "away", False
            self._owes_ack = False
            out.timers += [(CONNECT, CANCEL), (RETRY, CANCEL), (HOST_ACK, CANCEL)]

    def _ask(self, now_us: int, out: Outbox[Frame]) -> None:
        assert self.cell is not None
        frame: Frame
        if self._old is None:
            frame = Join(self.cell, self.node, self._ses)
        else:
            frame = Connect(self.cell, self.node, self._ses, self._old)
        out.sends.append((self.cell, frame))
        out.timers.append((CONNECT, now_us + self._pace.retry_us_min))

    def _on_connect_ack(self, now_us: int, frame: ConnectAck, out: Outbox[Frame]) -> None:
        is_mine = frame.host == self.node and frame.ses == self._ses
        if not is_mine or self.state != "connecting":
            return
        self.state = "connected"
        self._turn = frame.turn
        self._old = self.cell
        if self._seen is None:
            # Broadcasts from before the join depend on nothing.
            self._seen = Seen(frame.start)
            nothing = (0,) * (len(frame.start) if self._options.needs == "host" else 0)
            self._broadcasts = {
                seq: (message, nothing) for seq, (message, _) in self._broadcasts.items()
            }
        out.timers.append((CONNECT, CANCEL))
        self._drop_acked(frame.next_broadcast)
        self._unacked = dict.fromkeys(self._broadcasts)
        self._send_all(out)
        self._repeat(now_us, out)
        if self._options.acks_always:
            self._owe_ack(now_us, out)

    # ---- incoming -------------------------------------------------------------------------------

    def _on_cast(self, now_us: int, frame: Cast, out: Outbox[Frame]) -> None:
        """Deliver and acknowledge a message if it is for this host.

        It is if it names the host, or if it is for all registered hosts and the host was registered
        at its transmission.
        """
        is_for_us = self.node in frame.hosts if frame.hosts else frame.turn >= self._turn
        if not is_for_us:
            return
        assert self.cell is not None
        assert self._seen is not None
        id = (frame.site, frame.number)
        if id in self._seen:
            self.counters.duplicate += 1
        else:
            self._seen.add(id)
            self.counters.received += 1
            self.counters.delivered += 1
            out.receives.append(frame.message)
            out.deliveries.append(frame.message)
        if self._options.ack_us:
            self._owe_ack(now_us, out)
        else:
            out.sends.append((self.cell, Ack(self.cell, self.node, self._ses, *id)))

    def _owe_ack(self, now_us: int, out: Outbox[Frame]) -> None:
        if not self._owes_ack:
            self._owes_ack = True
            out.timers.append((HOST_ACK, now_us + self._options.ack_us))

    def _acknowledge(self, now_us: int, out: Outbox[Frame]) -> None:
        assert self.cell is not None
        assert self._seen is not None
        self._owes_ack = False
        seen = self._seen
        ack = SeenAck(self.cell, self.node, self._ses, seen.counts, seen.extra)
        out.sends.append((self.cell, ack))
        if self._options.acks_always:
            self._owe_ack(now_us, out)

    def _on_station_ack(self, frame: StationAck) -> None:
        for ack in frame.acks:
            if ack.host == self.node and ack.ses == self._ses:
                self._drop_acked(ack.next)
                for first, last in ack.ranges:
                    for seq in range(first, last + 1):
                        self._unacked.pop(seq, None)

    # ---- outgoing -------------------------------------------------------------------------------

    def _drop_acked(self, before: int) -> None:
        for seq in [seq for seq in self._broadcasts if seq < before]:
            del self._broadcasts[seq]
            self._unacked.pop(seq, None)

    def _send_broadcast(self, seq: int, out: Outbox[Frame]) -> None:
        assert self.cell is not None
        message, past = self._broadcasts[seq]
        out.sends.append((self.cell, HostBroadcast(self.cell, self.node, self._ses, message, past)))

    def _send_all(self, out: Outbox[Frame]) -> None:
        end = min(self._broadcasts, default=0) + self._pace.inflight_max
        for seq in self._unacked:
            if seq < end:
                self._send_broadcast(seq, out)

    def _repeat(self, now_us: int, out: Outbox[Frame]) -> None:
        if self.state == "connected" and self._unacked and not self._is_repeating:
            self._is_repeating = True
            out.timers.append((RETRY, now_us + self._pace.retry_us(len(self._broadcasts))))
