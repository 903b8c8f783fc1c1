"""Joins and handoffs in CK: the state of a host moves from station to station.

One station at a time holds the state of a host, and the state follows the host (MOB section 6).
There, a host leaves only when its new station has the whole state. Here, hosts leave without
asking. So the state stays at the old station until it is fetched.

A station that has handed a host on knows to which station and in which connection. The connection
numbers grow along this chain, so a `Fetch` that follows it reaches the end. A station refuses a
`Fetch` of an older connection than it knows of. When handoffs wait for each other, each waits for
an older one, so there is no deadlock.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from beforehand.protocols.contract.base import EVERYBODY, NodeId
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.mobile.ck.discard import Discard
from beforehand.protocols.mobile.ck.frames import (
    Connect,
    ConnectAck,
    Fetch,
    Frame,
    HostState,
    Id,
    Join,
    Joined,
    Refused,
    Routed,
    Welcome,
)
from beforehand.protocols.mobile.ck.guest import Guest, Kept
from beforehand.protocols.mobile.ck.seen import Seen


class Pending(msgspec.Struct):
    """A registration that waits for other stations: a join if `old` is None, else a handoff."""

    host: NodeId
    ses: int
    old: NodeId | None = None
    starts: dict[NodeId, int] = {}
    """In a join: the count that each station has answered."""
    waiting: Fetch | None = None
    """A `Fetch` of a newer connection, to be answered when this registration is over."""


class Handoff:
    """The part of a station that registers hosts."""

    def __init__(
        self,
        node: NodeId,
        sites: list[NodeId],
        via: dict[NodeId, NodeId],
        kept: Mapping[Id, Kept],
        discard: Discard,
    ) -> None:
        """kept: the messages that the station keeps."""
        self.node = node
        self.guests: dict[NodeId, Guest] = {}
        self.pending: dict[NodeId, Pending] = {}
        self.changed: list[Guest] = []
        """Hosts for which messages may have become ready to send."""
        self.turn = 0
        self._sites = sites
        self._via = via
        self._wired = tuple(dict.fromkeys(via.values()))
        self._kept = kept
        self._discard = discard
        self._handed_on: dict[NodeId, tuple[NodeId, int]] = {}  # host -> (station, connection)

    # ---- from hosts -----------------------------------------------------------------------------

    def on_join(self, frame: Join, out: Outbox[Frame]) -> None:
        """Register a new host. It has delivered nothing, so an earlier attempt is discarded."""
        host, ses = frame.host, frame.ses
        guest, pending = self.guests.get(host), self.pending.get(host)
        if guest is not None and guest.ses == ses:
            self._accept(guest, out)
        elif (guest is None or guest.ses < ses) and (pending is None or pending.ses < ses):
            self._forget(host)
            self._discard.on_joined(host, ses)
            pending = Pending(host, ses, starts={self.node: self._discard.count})
            self.pending[host] = pending
            joined = Joined(self.node, host, ses)
            out.sends += [(peer, joined) for peer in self._wired]
            self._finish_join(pending, out)

    def on_connect(self, frame: Connect, out: Outbox[Frame]) -> None:
        guest, pending = self.guests.get(frame.host), self.pending.get(frame.host)
        if guest is not None:
            if guest.ses < frame.ses:
                self.turn += 1
                guest.ses, guest.turn = frame.ses, self.turn
                guest.is_joining = False
                guest.early.clear()
            if guest.ses == frame.ses:
                self._accept(guest, out)
        elif pending is not None:
            pending.ses = max(pending.ses, frame.ses)
        else:
            pending = Pending(frame.host, frame.ses, frame.old)
            self.pending[frame.host] = pending
            self._fetch(pending, out)

    # ---- joins ----------------------------------------------------------------------------------

    def on_joined(self, source: NodeId, frame: Joined, out: Outbox[Frame]) -> None:
        """Answer with the number of messages initiated so far.

        On the FIFO wires of a tree, the flooded frame divides all messages into those before and
        those after the join.
        """
        out.sends += [(peer, frame) for peer in self._wired if peer != source]
        if self._discard.on_joined(frame.host, frame.ses):
            self._forget(frame.host)
            count = self._discard.count
            self._route(Welcome(self.node, frame.source, frame.host, frame.ses, count), out)

    def _on_welcome(self, frame: Welcome, out: Outbox[Frame]) -> None:
        pending = self.pending.get(frame.host)
        if pending is not None and pending.ses == frame.ses:
            pending.starts[frame.source] = frame.count
            self._finish_join(pending, out)

    def _finish_join(self, pending: Pending, out: Outbox[Frame]) -> None:
        if len(pending.starts) == len(self._sites):
            del self.pending[pending.host]
            seen = Seen(pending.starts[station] for station in self._sites)
            self._register(Guest(pending.host, pending.ses, seen, is_joining=True), out)

    def _forget(self, host: NodeId) -> None:
        self.guests.pop(host, None)
        self.pending.pop(host, None)

    # ---- handoffs -------------------------------------------------------------------------------

    def on_routed(self, frame: Routed, out: Outbox[Frame]) -> None:
        """Handle a frame for this station; forward others one hop, in FIFO order with messages."""
        if frame.target != self.node:
            out.sends.append((self._via[frame.target], frame))
        elif isinstance(frame, Welcome):
            self._on_welcome(frame, out)
        elif isinstance(frame, Fetch):
            self._on_fetch(frame, out)
        elif isinstance(frame, HostState):
            self._on_host_state(frame, out)
        else:
            self._on_refused(frame, out)

    def _fetch(self, pending: Pending, out: Outbox[Frame]) -> None:
        assert pending.old is not None
        target = pending.old
        fetch = Fetch(self.node, target, pending.host, pending.ses)
        if target == self.node:
            self._follow(fetch, out)
        else:
            self._route(fetch, out)

    def _follow(self, frame: Fetch, out: Outbox[Frame]) -> None:
        """Forward the `Fetch` to the station to which this one handed the host on."""
        target, ses = self._handed_on[frame.host]
        if ses < frame.ses:
            self._route(Fetch(frame.source, target, frame.host, frame.ses), out)
        else:
            self._refuse(frame, out)

    def _on_fetch(self, frame: Fetch, out: Outbox[Frame]) -> None:
        guest, pending = self.guests.get(frame.host), self.pending.get(frame.host)
        if guest is not None:
            if guest.ses < frame.ses:
                self._give(guest, frame, out)
            else:
                self._refuse(frame, out)
        elif pending is None or frame.source == self.node:
            self._follow(frame, out)
        elif pending.ses > frame.ses:
            self._refuse(frame, out)
        else:
            older, newer = pending.waiting, frame
            if older is not None and older.ses > newer.ses:
                older, newer = newer, older
            pending.waiting = newer
            if older is not None:
                self._refuse(older, out)

    def _give(self, guest: Guest, frame: Fetch, out: Outbox[Frame]) -> None:
        del self.guests[guest.host]
        self._handed_on[guest.host] = (frame.source, frame.ses)
        seen = guest.seen
        state = HostState(
            *(self.node, frame.source, guest.host, frame.ses),
            *(guest.next_broadcast, guest.last_broadcast, seen.counts, seen.extra),
        )
        self._route(state, out)

    def _on_host_state(self, frame: HostState, out: Outbox[Frame]) -> None:
        pending = self.pending.pop(frame.host)
        self._handed_on.pop(frame.host, None)
        seen = Seen(frame.counts, frame.extra)
        guest = Guest(frame.host, pending.ses, seen, frame.next_broadcast, frame.last_broadcast)
        self._register(guest, out)
        if pending.waiting is not None:
            self._on_fetch(pending.waiting, out)

    def _refuse(self, frame: Fetch, out: Outbox[Frame]) -> None:
        refused = Refused(self.node, frame.source, frame.host, frame.ses)
        if frame.source == self.node:
            self._on_refused(refused, out)
        else:
            self._route(refused, out)

    def _on_refused(self, frame: Refused, out: Outbox[Frame]) -> None:
        """Abandon the handoff, unless the host has come back here in a newer connection since."""
        pending = self.pending[frame.host]
        if pending.ses > frame.ses:
            self._fetch(pending, out)
            return
        del self.pending[frame.host]
        if pending.waiting is not None:
            self._follow(pending.waiting, out)

    # ---- registration ---------------------------------------------------------------------------

    def _register(self, guest: Guest, out: Outbox[Frame]) -> None:
        self.turn += 1
        guest.turn = self.turn
        for id, kept in self._kept.items():
            if id not in guest.seen:
                guest.miss(id, kept)
        self.guests[guest.host] = guest
        self.changed.append(guest)
        self._accept(guest, out)

    def _accept(self, guest: Guest, out: Outbox[Frame]) -> None:
        start = guest.seen.counts if guest.is_joining else ()
        ack = ConnectAck(
            *(self.node, guest.host, guest.ses, guest.next_broadcast, guest.turn), start=start
        )
        out.sends.append((EVERYBODY, ack))

    def _route(self, frame: Routed, out: Outbox[Frame]) -> None:
        out.sends.append((self._via[frame.target], frame))
