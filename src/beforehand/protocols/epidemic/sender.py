"""How the epidemic layer sends frames: at once, with repetition on links that lose frames.

`Direct` is for links that take any number of frames, as simulated ones do.
`protocols.epidemic.flow_control` has the sender for real links.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence

from beforehand.protocols.contract.base import Message, MessageId, NodeId, Timer
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.epidemic.cache import Cache
from beforehand.protocols.epidemic.draws import Draws
from beforehand.protocols.epidemic.frames import (
    FRAME_BYTES,
    ID_BYTES,
    IDS_MAX,
    NONE,
    Announce,
    Data,
    Digest,
    Frame,
    Missing,
    Push,
    Request,
    SkipFrame,
    SyncHello,
    Want,
    batches,
    split_ids,
)
from beforehand.protocols.epidemic.options import Options
from beforehand.protocols.epidemic.peer import Peer

RETRY_TIMER: Timer = ("retry", None)
Links = Mapping[NodeId, Peer]


class Sender(ABC):
    """The interface through which the epidemic layer sends frames. `ids` are never empty."""

    def __init__(
        self,
        options: Options,
        cache: Cache,
        requested_from: dict[MessageId, NodeId],
        rng: Draws,
    ) -> None:
        """Take the state that the sender shares with the epidemic layer.

        requested_from: the peer from which each message is requested. The sender updates it.
        """
        self._options = options
        self._cache = cache
        self._requested_from = requested_from
        self._rng = rng

    @abstractmethod
    def hello(self, peer: NodeId, known: Sequence[MessageId], out: Outbox[Frame]) -> None:
        """Send this node's version vector on link-up."""

    @abstractmethod
    def want(self, peer: NodeId, ids: Collection[MessageId], out: Outbox[Frame]) -> None:
        """Send these version-vector entries, so that the peer announces what it holds beyond."""

    @abstractmethod
    def digest(self, peer: NodeId, ids: Collection[MessageId], out: Outbox[Frame]) -> None:
        """Send the last delivered message of each of these origins."""

    @abstractmethod
    def announce(
        self,
        now_us: int,
        peer: NodeId,
        link: Peer,
        ids: Collection[MessageId],
        out: Outbox[Frame],
    ) -> None:
        """Announce these messages, which this node holds."""

    @abstractmethod
    def request(
        self,
        now_us: int,
        peer: NodeId,
        link: Peer,
        ids: frozenset[MessageId],
        out: Outbox[Frame],
        acknowledged: int = 0,
    ) -> None:
        """Request messages that the peer offers and that are requested from no other peer.

        acknowledged: the announcement that the request acknowledges; then `ids` may be empty.
        """

    @abstractmethod
    def serve(
        self,
        peer: NodeId,
        link: Peer,
        ids: frozenset[MessageId],
        horizon_us: int,
        out: Outbox[Frame],
    ) -> None:
        """Answer a request: send the held messages, and the ids that are not held or expired."""

    @abstractmethod
    def push(self, messages: Sequence[Message], links: Links, out: Outbox[Frame]) -> None:
        """Send own messages to all synced peers."""

    @abstractmethod
    def announce_due_us(self, now_us: int) -> int:
        """Return when to announce new messages: now, or later together with others."""

    @abstractmethod
    def awaits(self, timer: Timer) -> bool:
        """Return whether the sender has set this timer and still waits for it."""

    @abstractmethod
    def on_timer(
        self, now_us: int, timer: Timer, links: Links, horizon_us: int, out: Outbox[Frame]
    ) -> None:
        """Process a timer of the sender that is due."""

    def on_link(self, peer: NodeId, up: bool) -> None:  # noqa: B027
        """Process a link-up or link-down of this peer."""

    def stored(self, messages: Sequence[Message]) -> None:  # noqa: B027
        """Note messages that the node stored in this step."""

    def removed(self, ids: Collection[MessageId]) -> None:  # noqa: B027
        """Note messages that expired or were evicted."""

    def freed(self, peer: NodeId) -> None:  # noqa: B027
        """Note that this peer has answered a request."""

    def overtaken(self, peer: NodeId, ids: Iterable[MessageId]) -> None:  # noqa: B027
        """Note messages requested from this peer that came another way before its answer, or
        expired."""

    def ask(self, peer: NodeId, ids: Collection[MessageId], out: Outbox[Frame]) -> None:
        """Ask the peer for causes that it has not announced."""
        for batch in split_ids(ids, self._options.frame_bytes_max):
            self.note(peer, Missing(batch), out)

    def note(self, peer: NodeId, frame: SkipFrame, out: Outbox[Frame]) -> None:
        """Send a question or an answer."""
        out.sends.append((peer, frame))

    def has_announced_all(self, peer: NodeId, link: Peer) -> bool:
        """Return whether the node has announced all that it holds and the peer may lack."""
        return link.synced

    def has_dropped_offers(self, peer: NodeId) -> bool:
        """Return whether the peer offered more than the node keeps in mind."""
        return False

    def offers(self, peer: NodeId) -> Collection[MessageId]:
        """Return the messages that the peer offered and that were not requested yet."""
        return ()

    def gauges(self) -> dict[str, int]:
        return {}

    def _note_requested(
        self, now_us: int, peer: NodeId, link: Peer, ids: frozenset[MessageId]
    ) -> None:
        self._requested_from.update(dict.fromkeys(ids, peer))
        link.requested.update(ids)
        link.progress_us = now_us


class Direct(Sender):
    """Sends frames at once. With `Options.retry_us`, it repeats frames that are not answered."""

    def __init__(
        self,
        options: Options,
        cache: Cache,
        requested_from: dict[MessageId, NodeId],
        rng: Draws,
    ) -> None:
        super().__init__(options, cache, requested_from, rng)
        self._number = 0
        self._retry_armed = False
        period_us = options.announce_us
        self._phase_us = rng.randrange(period_us) if period_us else 0

    def announce_due_us(self, now_us: int) -> int:
        period_us = self._options.announce_us
        if not period_us:
            return now_us
        return now_us + period_us - (now_us - self._phase_us) % period_us

    def hello(self, peer: NodeId, known: Sequence[MessageId], out: Outbox[Frame]) -> None:
        # A frame takes some thousand origins. The peer announces all that it holds of the origins
        # left out, so `known` starts with those that have most messages.
        most = max(1, min(IDS_MAX, (self._options.frame_bytes_max - FRAME_BYTES) // ID_BYTES))
        out.sends.append((peer, SyncHello(frozenset(known[:most]))))

    def want(self, peer: NodeId, ids: Collection[MessageId], out: Outbox[Frame]) -> None:
        for batch in split_ids(ids, self._options.frame_bytes_max):
            out.sends.append((peer, Want(batch)))

    def digest(self, peer: NodeId, ids: Collection[MessageId], out: Outbox[Frame]) -> None:
        for batch in split_ids(ids, self._options.frame_bytes_max):
            out.sends.append((peer, Digest(batch)))

    def announce(
        self,
        now_us: int,
        peer: NodeId,
        link: Peer,
        ids: Collection[MessageId],
        out: Outbox[Frame],
    ) -> None:
        for batch in split_ids(ids, self._options.frame_bytes_max):
            self._number += 1
            out.sends.append((peer, Announce(self._number, batch)))
            if self._options.retry_us is not None:
                link.unacked[self._number] = batch
        if self._options.retry_us is not None:
            self._arm_retry(now_us, out)

    def request(
        self,
        now_us: int,
        peer: NodeId,
        link: Peer,
        ids: frozenset[MessageId],
        out: Outbox[Frame],
        acknowledged: int = 0,
    ) -> None:
        if ids:
            self._note_requested(now_us, peer, link, ids)
            if self._options.retry_us is not None:
                self._arm_retry(now_us, out)
        for batch in split_ids(ids, self._options.frame_bytes_max) if ids else (ids,):
            out.sends.append((peer, Request(acknowledged, batch)))

    def serve(
        self,
        peer: NodeId,
        link: Peer,
        ids: frozenset[MessageId],
        horizon_us: int,
        out: Outbox[Frame],
    ) -> None:
        if self._options.transfer == "random":
            messages = self._cache.pick_by_seq(ids, horizon_us)
            self._rng.shuffle(messages)
        else:
            messages = self._cache.pick(ids, horizon_us)
            if self._options.transfer == "newest":
                messages.reverse()
        link.known_to_peer.update([message.id for message in messages])
        gone = NONE
        if len(messages) < len(ids):
            gone = ids.difference([message.id for message in messages])
        bytes_max, most = self._options.frame_bytes_max, self._options.frame_messages_max
        out.sends += [(peer, Data(batch)) for batch in batches(messages, bytes_max, most)]
        out.sends += [(peer, Data((), batch)) for batch in split_ids(gone, bytes_max)]

    def push(self, messages: Sequence[Message], links: Links, out: Outbox[Frame]) -> None:
        bytes_max, most = self._options.frame_bytes_max, self._options.frame_messages_max
        frames = [Push(batch) for batch in batches(messages, bytes_max, most)]
        for peer, link in links.items():
            if link.synced:
                out.sends += [(peer, frame) for frame in frames]

    def awaits(self, timer: Timer) -> bool:
        return timer == RETRY_TIMER and self._retry_armed

    # ---- links that lose frames -----------------------------------------------------------------

    def on_timer(
        self, now_us: int, timer: Timer, links: Links, horizon_us: int, out: Outbox[Frame]
    ) -> None:
        """Repeat announcements without an acknowledgement and requests without an answer."""
        assert self._options.retry_us is not None
        self._retry_armed = False
        for peer, link in links.items():
            if link.unacked:
                unacked = frozenset().union(*link.unacked.values())
                link.unacked.clear()
                ids = unacked.intersection(self._cache.live_ids(horizon_us))
                if ids - link.known_to_peer:
                    self.announce(now_us, peer, link, ids - link.known_to_peer, out)
            if link.requested:
                # While data keeps arriving, the rest is in flight: a busy link is not a lossy one.
                # If the clock was set back, the elapsed time is unknown: repeat the request.
                if not 0 <= now_us - link.progress_us < self._options.retry_us:
                    self.request(now_us, peer, link, frozenset(link.requested), out)
                else:
                    self._arm_retry(now_us, out)

    def _arm_retry(self, now_us: int, out: Outbox[Frame]) -> None:
        assert self._options.retry_us is not None
        if not self._retry_armed:
            self._retry_armed = True
            out.timers.append((RETRY_TIMER, now_us + self._options.retry_us))
