"""How the epidemic layer lets frames out: at once, and again where links lose them.

`Direct` is for links that take any number of frames, as simulated ones do.
`protocols.epidemic.flow_control` has the sender for real links.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence

from beforehand.protocols.contract.base import Message, MessageId, NodeId, Timer
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.epidemic.cache import Cache
from beforehand.protocols.epidemic.frames import (
    FRAME_BYTES,
    ID_BYTES,
    IDS_MAX,
    NONE,
    Announce,
    Data,
    Digest,
    Frame,
    Push,
    Request,
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
    """What the layer asks to be sent. `ids` are never empty."""

    def __init__(
        self,
        options: Options,
        cache: Cache,
        requested_from: dict[MessageId, NodeId],
        rng: random.Random,
    ) -> None:
        """asking: of whom each message is requested; the sender keeps it up to date."""
        self._options = options
        self._cache = cache
        self._requested_from = requested_from
        self._rng = rng

    @abstractmethod
    def hello(self, peer: NodeId, known: Sequence[MessageId], out: Outbox[Frame]) -> None:
        """Send this node's version vector on link-up."""

    @abstractmethod
    def want(self, peer: NodeId, ids: Collection[MessageId], out: Outbox[Frame]) -> None:
        """Ask for announcements of what the peer holds beyond these."""

    @abstractmethod
    def digest(self, peer: NodeId, ids: Collection[MessageId], out: Outbox[Frame]) -> None:
        """Tell how far this node has come with these origins."""

    @abstractmethod
    def announce(
        self,
        now_us: int,
        peer: NodeId,
        link: Peer,
        ids: Collection[MessageId],
        out: Outbox[Frame],
    ) -> None:
        """Announce that these are held here."""

    @abstractmethod
    def request(
        self,
        now_us: int,
        peer: NodeId,
        link: Peer,
        ids: frozenset[MessageId],
        out: Outbox[Frame],
        heard: int = 0,
    ) -> None:
        """Request these, which the peer offers and nobody was asked for. heard: the announcement
        that this acknowledges; then `ids` may be empty."""

    @abstractmethod
    def serve(
        self,
        peer: NodeId,
        link: Peer,
        ids: frozenset[MessageId],
        horizon_us: int,
        out: Outbox[Frame],
    ) -> None:
        """Answer a request: the messages that are held and alive, and which of them are not."""

    @abstractmethod
    def push(self, messages: Sequence[Message], links: Links, out: Outbox[Frame]) -> None:
        """Send own messages to all peers that were told everything else."""

    @abstractmethod
    def announce_due_us(self, now_us: int) -> int:
        """When news goes out: now, or later together with more."""

    @abstractmethod
    def awaits(self, timer: Timer) -> bool:
        """Whether it has set this timer, and still waits for it."""

    @abstractmethod
    def on_timer(
        self, now_us: int, timer: Timer, links: Links, horizon_us: int, out: Outbox[Frame]
    ) -> None:
        """A timer that it awaits is due."""

    def on_link(self, peer: NodeId, up: bool) -> None:  # noqa: B027
        """The link to this peer came up, or went down."""

    def stored(self, messages: Sequence[Message]) -> None:  # noqa: B027
        """These were stored in this step."""

    def removed(self, ids: Collection[MessageId]) -> None:  # noqa: B027
        """These are held no more."""

    def freed(self, peer: NodeId) -> None:  # noqa: B027
        """This peer has answered a request."""

    def overtaken(self, peer: NodeId, ids: Iterable[MessageId]) -> None:  # noqa: B027
        """These were requested from this peer, and came before its answer."""

    def offers(self, peer: NodeId) -> Collection[MessageId]:
        """What the peer offered and was not asked for yet."""
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
    """Frames leave at once. With `Options.retry_us`, what is not answered is repeated."""

    def __init__(
        self,
        options: Options,
        cache: Cache,
        requested_from: dict[MessageId, NodeId],
        rng: random.Random,
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
        # A frame takes some thousand origins. Of those that it does not name the peer announces
        # all that it holds; so the origins with most messages are named first.
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
        heard: int = 0,
    ) -> None:
        if ids:
            self._note_requested(now_us, peer, link, ids)
            if self._options.retry_us is not None:
                self._arm_retry(now_us, out)
        for batch in split_ids(ids, self._options.frame_bytes_max) if ids else (ids,):
            out.sends.append((peer, Request(heard, batch)))

    def serve(
        self,
        peer: NodeId,
        link: Peer,
        ids: frozenset[MessageId],
        horizon_us: int,
        out: Outbox[Frame],
    ) -> None:
        messages = self._cache.pick(ids, horizon_us)
        if self._options.transfer == "random":
            self._rng.shuffle(messages)
        elif self._options.transfer == "newest":
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
            if link.greeted:
                out.sends += [(peer, frame) for frame in frames]

    def awaits(self, timer: Timer) -> bool:
        return timer == RETRY_TIMER and self._retry_armed

    # ---- links that lose frames -----------------------------------------------------------------

    def on_timer(
        self, now_us: int, timer: Timer, links: Links, horizon_us: int, out: Outbox[Frame]
    ) -> None:
        """Announce again what was not acknowledged, request again what does not come."""
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
                # While data keeps coming the rest is on its way: a busy link is not a lossy one.
                # A clock that was set back shows nothing: then the request is sent once too often.
                if not 0 <= now_us - link.progress_us < self._options.retry_us:
                    self.request(now_us, peer, link, frozenset(link.requested), out)
                else:
                    self._arm_retry(now_us, out)

    def _arm_retry(self, now_us: int, out: Outbox[Frame]) -> None:
        assert self._options.retry_us is not None
        if not self._retry_armed:
            self._retry_armed = True
            out.timers.append((RETRY_TIMER, now_us + self._options.retry_us))
