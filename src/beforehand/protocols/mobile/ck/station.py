"""A CK station, the baseline of MOB section 5: it knows for each host what the host may deliver.

On the wires a message carries a vector: how many messages of each station precede it. A station
tracks, for every host of its cell, which messages the host has acknowledged. It transmits a message
to a host only after the host has acknowledged all its causes. So hosts deliver each message on
receipt and buffer nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from beforehand.protocols.contract.base import (
    EVERYBODY,
    Counters,
    MessageId,
    MessageStatus,
    NodeId,
    Timer,
)
from beforehand.protocols.contract.needs import Link, Needs
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.contract.tables import Rows, Table
from beforehand.protocols.mobile.ck.discard import FLUSH, Discard
from beforehand.protocols.mobile.ck.frames import (
    Bundle,
    Cast,
    Connect,
    Frame,
    HostBroadcast,
    Id,
    Join,
    Joined,
    Receipt,
    Relay,
    Routed,
    SeenAck,
    Uplink,
)
from beforehand.protocols.mobile.ck.guest import Guest, Kept
from beforehand.protocols.mobile.ck.handoff import Handoff
from beforehand.protocols.mobile.ck.options import CkOptions
from beforehand.protocols.mobile.ck.seen import Seen
from beforehand.protocols.mobile.pace import Pace, ranges_of
from beforehand.protocols.mobile.station_tree import routes
from beforehand.protocols.mobile.was.frames import BroadcastAck, StationAck

ACK: Timer = ("ck station ack", None)
RETRY: Timer = ("ck cast again", None)
GATHER: Timer = ("ck gather", None)
GATHER_US = 10_000
"""The acknowledgements of one message arrive within this time. The station waits for them, so that
it transmits the messages after it once for all hosts."""


class CkStation:
    """One station of a tree. All stations know the whole tree."""

    tables: tuple[Table, ...] = ()

    def __init__(
        self,
        node: NodeId,
        wires: Sequence[tuple[NodeId, NodeId]],
        pace: Pace | None = None,
        *,
        options: CkOptions | None = None,
    ) -> None:
        self.node = node
        self.needs = Needs({"cell": Link(), "wire": Link(fifo=True, reliable=True)})
        self.counters = Counters()
        self.kept: dict[Id, Kept] = {}
        via = routes(node, wires)
        sites = sorted((node, *via), key=repr)
        self._site = sites.index(node)
        self._wired = tuple(dict.fromkeys(via.values()))
        self._pace = pace or Pace()
        self._options = options or CkOptions()
        self._received = [0] * len(sites)  # how many messages of each station
        self._discard = Discard(self._site, sites, via, self._drop)
        self.handoff = Handoff(node, sites, via, self.kept, self._discard)
        self._arrived = 0
        self._ready: dict[Id, None] = {}  # to be transmitted when the gather timer fires
        self._unanswered: dict[NodeId, Guest] = {}  # hosts that are owed an ack
        self._is_gathering = False
        self._is_repeating = False
        self._owes_ack = False

    # ---- inputs ---------------------------------------------------------------------------------

    def on_message(self, now_us: int, source: NodeId, frame: Frame, out: Outbox[Frame]) -> None:
        """Handle a frame that came by radio from a host, or by wire from a peer station."""
        if isinstance(frame, Uplink):
            if frame.cell == self.node and frame.host == source:
                self._on_uplink(frame, out)
        elif isinstance(frame, Relay):
            self.counters.received += 1
            out.receives.append(frame.message)
            self._disseminate(frame, source, out)
        elif isinstance(frame, Bundle):
            self._discard.on_bundle(source, frame)
        elif isinstance(frame, Joined):
            self.handoff.on_joined(source, frame, out)
        elif isinstance(frame, Routed):
            self.handoff.on_routed(frame, out)
        self._keep_up(now_us, out)

    def on_timer(self, now_us: int, timer: Timer, out: Outbox[Frame]) -> None:
        """Acknowledge, transmit gathered messages, retransmit, or flush receipts and deletes."""
        if timer == ACK and self._owes_ack:
            self._acknowledge(out)
        elif timer == GATHER and self._is_gathering:
            self._cast_ready(out)
        elif timer == RETRY and self._is_repeating:
            self._is_repeating = False
            self._cast_ready(out)
            self._cast_again(out)
            self._keep_up(now_us, out)
        elif timer == FLUSH:
            self._discard.on_timer(out)

    def restore(self, now_us: int, rows: Rows, out: Outbox[Frame]) -> None:
        """Do nothing: a station saves nothing."""

    def explain(self, message: MessageId) -> MessageStatus:
        """Return "unknown": a station delivers nothing to an application."""
        return MessageStatus("unknown")

    def gauges(self, now_us: int) -> dict[str, int]:
        guests = self.handoff.guests.values()
        return {
            "guests": len(guests),
            "kept": len(self.kept),
            "early": sum(len(guest.early) for guest in guests),
            "lacking": sum(guest.lacks for guest in guests),
            "handoffs": len(self.handoff.pending),
            **self._discard.gauges(),
        }

    # ---- hosts ----------------------------------------------------------------------------------

    def _on_uplink(self, frame: Uplink, out: Outbox[Frame]) -> None:
        if isinstance(frame, Join):
            self.handoff.on_join(frame, out)
        elif isinstance(frame, Connect):
            self.handoff.on_connect(frame, out)
        else:
            guest = self.handoff.guests.get(frame.host)
            if guest is None or guest.ses != frame.ses:
                return
            if isinstance(frame, HostBroadcast):
                self._on_host_broadcast(guest, frame, out)
            elif isinstance(frame, SeenAck):
                self._on_seen_ack(guest, frame)
            else:
                self._on_ack(guest, (frame.site, frame.number))

    def _on_host_broadcast(self, guest: Guest, frame: HostBroadcast, out: Outbox[Frame]) -> None:
        self._unanswered[guest.host] = guest
        seq = frame.message.seq
        if seq < guest.next_broadcast or seq in guest.early:
            self.counters.duplicate += 1
            return
        guest.early[seq] = frame
        self.counters.received += 1
        out.receives.append(frame.message)
        while guest.next_broadcast in guest.early:
            ready = guest.early.pop(guest.next_broadcast)
            guest.next_broadcast += 1
            self._initiate(guest, ready, out)

    def _initiate(self, guest: Guest, frame: HostBroadcast, out: Outbox[Frame]) -> None:
        """Number a host's broadcast and disseminate it.

        It depends on the messages that its host had delivered and on the host's earlier broadcasts;
        or on all messages that this station has received. These are among them: the record of a
        host comes behind them, on FIFO wires.
        """
        if self._options.needs == "station":
            needs = [*self._received]
        else:
            site, last = guest.last_broadcast
            needs = list(frame.past)
            needs[site] = max(needs[site], last)
        guest.last_broadcast = (self._site, self._discard.initiate())
        relay = Relay(*guest.last_broadcast, tuple(needs), frame.message)
        self._disseminate(relay, None, out)

    def _on_ack(self, guest: Guest, id: Id) -> None:
        if id not in guest.seen:
            guest.acknowledge(id)
            self.handoff.changed.append(guest)
            self._discard.on_receipt(Receipt(id[0], guest.host, id[1]))

    def _on_seen_ack(self, guest: Guest, frame: SeenAck) -> None:
        """Acknowledge the messages of the vector that the host lacks, as far as it is known here.

        A wrong host may send a count of any size, so the messages are enumerated and not the count.
        """
        if len(frame.counts) != len(self._received):
            self.counters.refused += 1
            return
        seen = Seen(frame.counts, frame.extra)
        for id in [id for id in (*guest.blocked, *guest.in_flight) if id in seen]:
            self._on_ack(guest, id)

    # ---- messages -------------------------------------------------------------------------------

    def _disseminate(self, relay: Relay, source: NodeId | None, out: Outbox[Frame]) -> None:
        """Forward a message in the tree, and transmit it to the hosts that may deliver it."""
        out.sends += [(peer, relay) for peer in self._wired if peer != source]
        id = (relay.site, relay.number)
        self._received[relay.site] = relay.number
        self._arrived += 1
        kept = Kept(relay.message, relay.needs, self._arrived, rests=self._pace.rounds)
        self.kept[id] = kept
        ready = []
        for guest in self.handoff.guests.values():
            if id not in guest.seen:
                guest.miss(id, kept)
                if guest.launch_one(id, self._pace.inflight_max):
                    ready.append(guest.host)
        self._cast(id, ready, out)

    def _drop(self, id: Id) -> None:
        self.kept.pop(id, None)
        for guest in self.handoff.guests.values():
            guest.drop(id)

    # ---- radio, down ----------------------------------------------------------------------------

    def _keep_up(self, now_us: int, out: Outbox[Frame]) -> None:
        """Collect the messages that became ready, and set the timers that are needed."""
        guests = self.handoff.guests.values()
        for guest in self.handoff.changed:
            if self._is_here(guest):
                self._ready.update(dict.fromkeys(guest.launch(self._pace.inflight_max)))
        self.handoff.changed.clear()
        if self._ready and not self._is_gathering:
            self._is_gathering = True
            out.timers.append((GATHER, now_us + GATHER_US))
        if not self._is_repeating and any(guest.in_flight for guest in guests):
            self._is_repeating = True
            lacking = max(guest.lacks for guest in guests)
            out.timers.append((RETRY, now_us + self._pace.round_us(lacking)))
        if self._unanswered and not self._owes_ack:
            self._owes_ack = True
            out.timers.append((ACK, now_us + self._pace.ack_us))
        self._discard.keep_up(now_us, out)

    def _cast_ready(self, out: Outbox[Frame]) -> None:
        """Transmit each ready message for all hosts that lack it and may deliver it.

        One transmission for all of them costs no more than for one.
        """
        self._is_gathering = False
        ready, self._ready = self._ready, {}
        for id in ready:
            if id in self.kept:
                self._cast(id, self._lacking(id), out)
                self.kept[id].rests = self._pace.rounds

    def _cast_again(self, out: Outbox[Frame]) -> None:
        for id, kept in self.kept.items():
            if kept.rests:
                kept.rests -= 1
            else:
                self._cast(id, self._lacking(id), out)
                kept.rests = self._pace.rounds - 1

    def _lacking(self, id: Id) -> list[NodeId]:
        guests = self.handoff.guests.values()
        return [guest.host for guest in guests if id in guest.in_flight]

    def _cast(self, id: Id, hosts: Iterable[NodeId], out: Outbox[Frame]) -> None:
        names = tuple(hosts)
        if names:
            is_for_all = len(names) == len(self.handoff.guests)
            cast = Cast(
                *(self.node, self.handoff.turn, *id, self.kept[id].message),
                hosts=() if is_for_all else names,
            )
            out.sends.append((EVERYBODY, cast))

    def _acknowledge(self, out: Outbox[Frame]) -> None:
        self._owes_ack = False
        acks = []
        for guest in filter(self._is_here, self._unanswered.values()):
            ranges = ranges_of(sorted(guest.early))
            acks.append(BroadcastAck(guest.host, guest.ses, guest.next_broadcast, ranges))
        self._unanswered.clear()
        if acks:
            out.sends.append((EVERYBODY, StationAck(self.node, tuple(acks))))

    def _is_here(self, guest: Guest) -> bool:
        """Return whether the guest is still registered here: its host may be handed on since."""
        return self.handoff.guests.get(guest.host) is guest
