"""Registration of hosts: joins, three-phase handoffs, leaves (MOB sections 4.2, 4.3 and 4.5).

The state of a host exists at one station at a time. A join creates it, and handoffs move it from
station to station in the order of the host's connections. A station answers every request
(correction 13): at once, or after its own handoff of that host, which is an older one. So no
station waits for ever. A newer connection asks all stations at which an older one may have left
state.

sp and sn are the old and the new station of the paper. All frames travel over the tree, in FIFO
order with the messages (correction 12). So when Request1 arrives, sp has all messages that sn had.
The frames go to the stations that the host names (MOB), or to all stations (MOB-TR, *flooded*).
"""

from __future__ import annotations

from beforehand.errors import RemoteError
from beforehand.protocols.contract.base import EVERYBODY, NodeId
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.mobile.pace import Pace
from beforehand.protocols.mobile.was.cell import Cell, Guest
from beforehand.protocols.mobile.was.frames import (
    CatchUp,
    Connect,
    ConnectAck,
    Delete,
    Frame,
    Join,
    Leave,
    LeaveAck,
    Place,
    Request1,
    Request2,
    Response1,
    Response2,
    Routed,
)

Ends = tuple[tuple[NodeId | None, int], ...]
"""(station, or EVERYBODY for all others; connection up to which it is to unregister a host)."""
LEFT_MAX = 1_000
"""How many hosts that left a station remembers."""


class Handoff:
    """The part of a station that registers hosts."""

    def __init__(
        self, node: NodeId, cell: Cell, via: dict[NodeId, NodeId], pace: Pace, *, floods: bool
    ) -> None:
        self.node = node
        self._cell = cell
        self._via = via
        self._pace = pace
        self._wired = tuple(dict.fromkeys(via.values()))
        self._floods = floods
        self._left: dict[NodeId, None] = {}

    # ---- from hosts -----------------------------------------------------------------------------

    def on_join(self, now_us: int, frame: Join, out: Outbox[Frame]) -> None:
        """Register a new host (section 4.2). It starts with the messages that are kept here."""
        cell, host = self._cell, frame.host
        guest = cell.guests.get(host)
        if host in self._left:
            return
        if guest is None:
            guest = Guest(host, frame.ses, cell.oldest(), 1, now_us, is_fresh=True)
            cell.guests[host] = guest
            self._delete(host, self._visits(frame), out)
        elif guest.ses > frame.ses or guest.phase != "here":
            return
        elif guest.ses < frame.ses:
            guest.ses = frame.ses
            self._delete(host, self._visits(frame), out)
        self._accept(guest, out)

    def on_connect(self, now_us: int, frame: Connect, out: Outbox[Frame]) -> None:
        """Handle Connect (sn.1-10). Ignore it during a handoff of this host, which repeats it."""
        guest = self._cell.guests.get(frame.host)
        if frame.host in self._left:
            return
        if guest is not None:
            if guest.phase != "here" or guest.ses > frame.ses:
                return
            guest.last_frame_us = now_us
            if guest.ses == frame.ses:
                self._accept(guest, out)
                return
            if not _is_worthless(guest, frame.place):
                self._use_as_ack(guest, frame.place)
                guest.ses, guest.is_fresh = frame.ses, False
                guest.early.clear()
                guest.has = ()  # the host dropped its out-of-order messages (correction 6)
                guest.catch_up = dict(enumerate(guest.catch_up.values()))
                self._delete(frame.host, self._visits(frame), out)
                self._accept(guest, out)
                return
            self._cell.unregister(frame.host)
        self._start(now_us, frame, out)

    def on_leave(self, frame: Leave, out: Outbox[Frame]) -> None:
        """Unregister a host at all stations, and remember that it left (correction 19).

        A Join or Connect sent before the Leave may arrive after it. It would register the host once
        more, and no later frame would end that registration.
        """
        self._left[frame.host] = None
        if len(self._left) > LEFT_MAX:
            del self._left[next(iter(self._left))]
        ends = tuple((station, frame.ses) for station, _ in self._visits(frame))
        self._delete(frame.host, ends, out)
        self.on_delete(Delete(self.node, self.node, frame.host, frame.ses), out)
        out.sends.append((EVERYBODY, LeaveAck(self.node, frame.host, frame.ses)))

    # ---- phase 1: find the station that knows the host, and what the host has not delivered -----

    def _start(self, now_us: int, frame: Connect, out: Outbox[Frame]) -> None:
        cell = self._cell
        targets = [station for station, _ in self._visits(frame)]
        # correction 14: from here on, the station discards no kept message.
        guest = Guest(frame.host, frame.ses, cell.oldest(), frame.next_broadcast, now_us, "asking")
        guest.asked = (
            [*self._via] if EVERYBODY in targets else [s for s in targets if s is not None]
        )
        cell.guests[frame.host] = guest
        for station in targets:
            request = Request1(self.node, station, frame.host, frame.ses, frame.place)
            self._route(request, out)
        if not guest.asked:
            self._go_on(guest, out)

    def on_request1(self, frame: Request1, out: Outbox[Frame]) -> None:
        """Answer Request1 (sp.1-8)."""
        guest = self._cell.guests.get(frame.host)
        unknown = Response1(self.node, frame.source, frame.host, frame.ses)
        if guest is None or guest.ses >= frame.ses or guest.phase == "going":
            # Answer at once if the host was never registered here, if a newer connection exists
            # (its station asks the source as well), or if the host was handed on (the source also
            # asks the station that has it).
            self._route(unknown, out)
        elif guest.phase != "here":
            later = guest.waiting
            if later is not None and later.ses > frame.ses:
                self._route(unknown, out)
                return
            guest.waiting = frame
            if later is not None:
                self._route(Response1(self.node, later.source, later.host, later.ses), out)
        elif _is_worthless(guest, frame.place):
            self._cell.unregister(frame.host)
            self._route(unknown, out)
        else:
            self._answer_request1(guest, frame, out)

    def _answer_request1(self, guest: Guest, frame: Request1, out: Outbox[Frame]) -> None:
        self._use_as_ack(guest, frame.place)
        missing = [message.id for message in guest.catch_up.values()]
        missing += [kept.message.id for _, kept in self._cell.undelivered(guest)]
        answer = Response1(
            *(self.node, frame.source, frame.host, frame.ses),
            is_known=True,
            held_ses=guest.ses,
            next_broadcast=guest.next_broadcast,
            missing=tuple(missing),
        )
        # correction 8: from here on, no frame of the host's old connection counts.
        guest.phase, guest.ses, guest.cut = "going", frame.ses, self._cell.next
        guest.early.clear()
        self._route(answer, out)

    def on_response1(self, frame: Response1, out: Outbox[Frame]) -> None:
        """Collect an answer to Request1; go on once all stations have answered (sn.11-13)."""
        guest = self._in_handoff(frame, "asking")
        if guest is None or frame.source not in guest.asked:
            return
        guest.asked.remove(frame.source)
        if frame.is_known:
            guest.known.append(frame)
        if not guest.asked:
            self._go_on(guest, out)

    def _go_on(self, guest: Guest, out: Outbox[Frame]) -> None:
        known = sorted(guest.known, key=lambda answer: answer.held_ses)
        guest.known = []
        if guest.is_doomed or not known:
            ends = tuple((answer.source, guest.ses) for answer in known)
            self._delete(guest.host, ends, out)
            self._take_as_new(guest, out)
            return
        *others, best = known
        self._delete(guest.host, tuple((answer.source, guest.ses) for answer in others), out)
        guest.phase, guest.next_broadcast, guest.missing = (
            "fetching",
            best.next_broadcast,
            best.missing,
        )
        guest.cut = self._cell.next
        here = {kept.message.id for kept in self._cell.kept.values()}
        wanted = tuple(id for id in best.missing if id not in here)
        request = Request2(self.node, best.source, guest.host, guest.ses, wanted)
        self._route(request, out)

    def _take_as_new(self, guest: Guest, out: Outbox[Frame]) -> None:
        """Register the host as new, because no station knows it (any more).

        It starts with the next message (corrections 10 and 15). All messages that it can have
        delivered elsewhere are here already, because the answers came after them on FIFO wires.
        """
        guest.next = self._cell.next
        guest.is_fresh = True
        self._finish(guest, out)

    # ---- phase 2: fetch discarded messages, find which kept ones the host has delivered ---------

    def on_request2(self, frame: Request2, out: Outbox[Frame]) -> None:
        """Answer Request2 and hand the host over (sp.9-12)."""
        guest = self._in_handoff(frame, "going")
        if guest is None:  # the host has left
            self._route(Response2(self.node, frame.source, frame.host, frame.ses, (), ()), out)
            return
        wanted = set(frame.wanted)
        own = [*guest.catch_up.values(), *(kept.message for kept in self._cell.kept.values())]
        messages = tuple(message for message in own if message.id in wanted)
        since = tuple(k.message.id for seq, k in self._cell.kept.items() if seq >= guest.cut)
        self._cell.unregister(frame.host)
        answer = Response2(self.node, frame.source, frame.host, frame.ses, messages, since)
        self._route(answer, out)

    def on_response2(self, frame: Response2, out: Outbox[Frame]) -> None:
        """Mark the kept messages that the host has delivered elsewhere (sn.14-20)."""
        guest = self._in_handoff(frame, "fetching")
        if guest is None:
            return
        undelivered = {*guest.missing, *frame.since}
        for seq, kept in self._cell.kept.items():
            # The host cannot have delivered a message that arrived after Request2.
            is_delivered = seq < guest.cut and kept.message.id not in undelivered
            if is_delivered and guest.host not in kept.delivered_by:
                kept.delivered_by += (guest.host,)
        guest.catch_up = dict(enumerate(frame.messages))
        self._finish(guest, out)

    # ---- phase 3: the host goes on here ---------------------------------------------------------

    def _finish(self, guest: Guest, out: Outbox[Frame]) -> None:
        guest.phase = "here"
        guest.next = self._cell.first_undelivered(guest)
        self._cell.discard()
        waiting, guest.waiting, guest.missing = guest.waiting, None, ()
        if guest.is_doomed:
            self._cell.unregister(guest.host)
        if waiting is not None:
            self.on_request1(waiting, out)
        elif not guest.is_doomed:
            self._accept(guest, out)

    def _accept(self, guest: Guest, out: Outbox[Frame]) -> None:
        """Send the messages to catch up on; if there are none, send ConnectAck."""
        for seq, message in guest.first_to_catch_up(self._pace.inflight_max):
            catch_up = CatchUp(self.node, guest.host, guest.ses, seq, message)
            out.sends.append((EVERYBODY, catch_up))
        if not guest.catch_up:
            guest.next = self._cell.first_undelivered(guest)
            ack = ConnectAck(
                *(self.node, guest.host, guest.ses, guest.next_broadcast, guest.next),
                delivered=self._cell.delivered_elsewhere(guest),
                is_new=guest.is_fresh,
            )
            out.sends.append((EVERYBODY, ack))

    def on_caught_up(self, guest: Guest, before: int, out: Outbox[Frame]) -> None:
        """Handle the host's acknowledgement of the catch-up messages before number `before`."""
        if guest.catch_up:
            guest.catch_up = {s: m for s, m in guest.catch_up.items() if s >= before}
        if not guest.catch_up:
            self._accept(guest, out)

    # ---- the end of a registration --------------------------------------------------------------

    def on_delete(self, frame: Delete, out: Outbox[Frame]) -> None:
        """Unregister the host, but during a handoff only at its end (correction 13).

        Another station may wait for this one, or for messages that this one holds.
        """
        guest = self._cell.guests.get(frame.host)
        if guest is None or guest.ses > frame.ses:
            return
        if guest.phase in ("asking", "fetching"):
            guest.is_doomed = True
        else:
            self._cell.unregister(frame.host)

    def _delete(self, host: NodeId, ends: Ends, out: Outbox[Frame]) -> None:
        for station, ses in ends:
            self._route(Delete(self.node, station, host, ses), out)

    # ---- shared parts ---------------------------------------------------------------------------

    def _visits(self, frame: Join | Connect | Leave) -> Ends:
        """Return the other stations that may have registered the host."""
        before = max(0, frame.ses - 1)  # a correct host counts from 1
        if self._floods:
            return ((EVERYBODY, before),)
        if frame.visits is None:
            return tuple((station, before) for station in self._via)
        return tuple(visit for visit in frame.visits if visit[0] in self._via)

    def _use_as_ack(self, guest: Guest, place: Place) -> None:
        """Use the host's place as an acknowledgement if it is of this very connection.

        Section 4.3.2: the host may have delivered messages that it has not acknowledged yet.
        """
        if place.ses != guest.ses:
            return
        if place.is_catching:
            guest.catch_up = {s: m for s, m in guest.catch_up.items() if s >= place.next}
        else:
            guest.catch_up = {}
            guest.next = max(guest.next, place.next)
        self._cell.discard()

    def _in_handoff(self, frame: Routed, phase: str) -> Guest | None:
        guest = self._cell.guests.get(frame.host)
        is_it = guest is not None and guest.ses == frame.ses and guest.phase == phase
        return guest if is_it else None

    def refuse_strangers(self, source: NodeId, frame: Routed) -> None:
        """Raise RemoteError if a frame names a station outside of the tree.

        This comes before any effect. Otherwise the answer to such a source could not be routed
        after the frame was forwarded and partly handled.
        """
        known = (*self._via, self.node)
        unknown: list[NodeId | None] = []
        if frame.source not in self._via:
            unknown.append(frame.source)
        if frame.target not in (*known, EVERYBODY):
            unknown.append(frame.target)
        if unknown:
            hint = "all stations must know the same tree"
            where = f"station {self.node}, from {source}"
            raise RemoteError(f"no such station: {unknown[0]}", where=where, hint=hint)

    def _route(self, frame: Routed, out: Outbox[Frame]) -> None:
        self.pass_on(self.node, frame, out)

    def pass_on(self, source: NodeId, frame: Routed, out: Outbox[Frame]) -> None:
        """Forward a frame by one hop, in FIFO order with the messages (correction 12).

        MOB-TR does not count answers and has no frame for "host unknown". So this answer always
        takes the direct route, whether or not handoffs are flooded.
        """
        knows_nothing = isinstance(frame, Response1) and not frame.is_known
        if frame.target is not EVERYBODY and (knows_nothing or not self._floods):
            out.sends.append((self._via[frame.target], frame))
        else:
            out.sends += [(peer, frame) for peer in self._wired if peer != source]


def _is_worthless(guest: Guest, place: Place) -> bool:
    """Return whether the registration is void (correction 18).

    It is if the host was registered elsewhere since, or if it was registered as new and never
    received the ConnectAck.
    """
    return place.ses > guest.ses or (guest.is_fresh and place.ses < guest.ses)
