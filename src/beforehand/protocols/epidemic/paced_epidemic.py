"""The epidemic layer with flow control: the core that `Group` runs on real links.

Its inputs tell it how many bytes the wire takes, whether the application reads, and which steps are
on the disk. `protocols.epidemic.flow_control` has the rules that follow from them.
"""

from __future__ import annotations

from collections.abc import Sequence

from beforehand.errors import RemoteError
from beforehand.protocols.contract.base import BroadcastRequest, MessageId, NodeId, Timer
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.contract.proof import Proofs
from beforehand.protocols.epidemic.draws import Draws
from beforehand.protocols.epidemic.epidemic import Epidemic
from beforehand.protocols.epidemic.flow_control import FlowControl
from beforehand.protocols.epidemic.frames import Announce, Data, Digest, Frame, Push, SyncHello
from beforehand.protocols.epidemic.options import Flow, Options
from beforehand.protocols.epidemic.sender import Sender
from beforehand.protocols.orders.barrier import Barrier
from beforehand.protocols.orders.order import Lifetimes, Order

FRAME_BYTES_MAX = 65_536
"""The size up to which a frame is filled. On a reliable wire fewer frames mean fewer steps, and
messages that were signed as a batch arrive as a batch."""
DIGEST_AFTER = 8
"""A peer that requested none of this many announced messages of an origin gets digests instead. A
peer that gets messages of an origin only from this node requests each of its messages."""


class PacedEpidemic(Epidemic):
    """One node with flow control. Its options must set `flow`, `push` and `digest_after`."""

    flow: FlowControl

    def on_room(self, now_us: int, peer: NodeId, room: int, out: Outbox[Frame]) -> None:
        self.flow.on_room(peer, room)
        self._flush(now_us, out)

    def on_open(self, now_us: int, is_open: bool, out: Outbox[Frame]) -> None:
        self.flow.on_open(is_open)
        self._flush(now_us, out)

    def on_saved(self, now_us: int, step: int, out: Outbox[Frame]) -> None:
        self.flow.on_saved(step)
        self._flush(now_us, out)

    def on_progress(self, now_us: int, peer: NodeId, out: Outbox[Frame]) -> None:
        self.flow.on_progress(peer)

    def saving_step(self) -> int:
        return self.flow.step

    def room_left(self, peer: NodeId) -> int:
        flow = self.flow.flows.get(peer)
        return 0 if flow is None else flow.room

    def on_broadcasts(
        self, now_us: int, broadcasts: Sequence[BroadcastRequest], out: Outbox[Frame]
    ) -> list[MessageId]:
        ids = super().on_broadcasts(now_us, broadcasts, out)
        self._flush(now_us, out)
        return ids

    def on_link(self, now_us: int, peer: NodeId, up: bool, out: Outbox[Frame]) -> None:
        super().on_link(now_us, peer, up, out)
        self._flush(now_us, out)

    def on_timer(self, now_us: int, timer: Timer, out: Outbox[Frame]) -> None:
        super().on_timer(now_us, timer, out)
        self._flush(now_us, out)

    def on_message(self, now_us: int, source: NodeId, frame: Frame, out: Outbox[Frame]) -> None:
        if source not in self._links:
            return  # sent before the link-down
        if isinstance(frame, SyncHello):
            self._take_hello(source, frame)
        else:
            super().on_message(now_us, source, self._noted(source, frame), out)
        self._flush(now_us, out)

    def _noted(self, source: NodeId, frame: Frame) -> Frame:
        """Note what the peer has. Return the frame that the epidemic layer processes: while the
        application does not read, a push becomes an announcement."""
        if isinstance(frame, Announce):
            self.flow.note_known(source, frame.ids)
        elif isinstance(frame, Data):
            ids = [message.id for message in frame.messages]
            self.flow.note_known(source, ids)
            self.flow.answered(source, [*ids, *frame.gone])
        elif isinstance(frame, Push):
            ids = [message.id for message in frame.messages]
            self.flow.note_known(source, ids)
            if not self.flow.is_open:
                return Announce(0, frozenset(ids))
            if asked := self._links[source].requested.intersection(ids):
                self.flow.overtaken(source, asked)  # a push answers no request
        elif isinstance(frame, Digest):
            self.flow.note_digest(source, frame.ids)
        return frame

    def _take_hello(self, source: NodeId, frame: SyncHello) -> None:
        if not self.flow.on_hello(source, self._links[source], frame.ids):
            raise RemoteError(
                "a second version vector without dropped offers",
                where=f"node {self.node}, from {source}",
                hint="drop the link: the peer runs something else, or is hostile",
            )

    def _make_sender(self) -> Sender:
        self.flow = FlowControl(
            *(self._options, self._cache, self._requested_from, self._rng),
            links=self._links,
            is_durable=self._durable,
        )
        return self.flow

    def _flush(self, now_us: int, out: Outbox[Frame]) -> None:
        """Send what flow control allows, at the end of every input."""
        if not self.flow.has_work:
            return  # an unknown timer must not even move the horizon
        horizon_us = self._horizon(now_us)
        floor, entries, evicted = (
            self.order.id_floor(horizon_us),
            self._cache.entries,
            self._evicted,
        )
        self.flow.flush(
            *(now_us, horizon_us, out, self._version_vectors.known),
            lambda peer, link, ids: self._version_vectors.unfold_all(
                peer, link, ids, horizon_us, out
            ),
            lambda id: id[1] > floor and id not in entries and not evicted.has(id),
        )


def group_core(
    name: NodeId,
    lifetimes: Lifetimes,
    rng: Draws,
    *,
    capacity: int | None,
    capacity_bytes: int | None,
    proofs: Proofs,
    flow: Flow | None = None,
    digest_after: int = DIGEST_AFTER,
    frame_bytes_max: int = FRAME_BYTES_MAX,
    durable: bool = True,
    order: Order | None = None,
    patience_us: int | None = None,
) -> PacedEpidemic:
    """Return the core that `Group` runs.

    Only checkers set the other arguments: they use small bounds, and other orders.
    """
    options = Options(
        capacity=capacity,
        capacity_bytes=capacity_bytes,
        eviction="shares",
        transfer="oldest",
        frame_bytes_max=frame_bytes_max,
        push=True,
        digest_after=digest_after,
        flow=flow or Flow(),
        patience_us=patience_us,
    )
    order = order or Barrier(name, lifetimes)
    return PacedEpidemic(name, order, rng, options, durable=durable, proofs=proofs)
