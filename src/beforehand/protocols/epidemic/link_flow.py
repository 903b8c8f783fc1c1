"""What waits to be sent over one link, and the frames that are made of it while there is room."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice

import msgspec

from beforehand.protocols.contract.base import Message, MessageId, NodeId
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.epidemic.frames import (
    IDS_MAX,
    Announce,
    Data,
    Digest,
    Frame,
    Push,
    SyncHello,
    Want,
)
from beforehand.protocols.epidemic.peer import Peer
from beforehand.protocols.epidemic.sizes import HEAD_BYTES, cut_ids, wire_bytes

Unsaved = Mapping[MessageId, int]
"""Messages that were stored in a step that is not saved yet, with that step."""


class LinkFlow(msgspec.Struct):
    """The queues of one link. Its methods emit frames until the room is used up."""

    peer: NodeId
    bytes_max: int
    """Of one frame."""
    room: int = 0
    """Bytes that the wire takes, as far as this node was told."""
    hello: tuple[MessageId, ...] | None = None
    """This node's version vector, to be sent."""
    wants: dict[NodeId, int] = {}
    """By origin, how far this node has come: the peer shall announce what it holds beyond."""
    offers: dict[MessageId, None] = {}
    """Offered by the peer, lacking here, not requested yet; the first offered first."""
    has_dropped_offers: bool = False
    overtaken: set[MessageId] = set()
    """Requested from the peer, and received in another way. The peer still answers: until then they
    count against the window, because they wait in the peer's `serve`."""
    serve: deque[MessageId] = msgspec.field(default_factory=deque)
    """Requested by the peer, not sent yet."""
    pushes: deque[tuple[int, int, Push]] = msgspec.field(default_factory=deque)
    """(step, bytes, frame) of own messages; they leave when that step is saved."""
    tell: dict[MessageId, None] = {}
    """Held here, to be announced."""
    digest: dict[NodeId, int] = {}
    """By origin, the last delivered message that the peer may not have heard of."""
    is_digest_due: bool = False
    hellos: int = 0
    """Version vectors of the peer that were taken in."""
    next_hello: frozenset[MessageId] | None = None
    """The peer's version vector; what it lacks is announced when `tell` is empty."""
    told: int = 0
    """How many messages were announced or pushed over this link."""
    silent: int = 0
    """How often the stall timer has fired since the peer's last data."""

    def unanswered(self, link: Peer) -> int:
        """Return how many requests the peer has not answered."""
        return len(link.requested) + len(self.overtaken)

    def waits_for_disk(self) -> bool:
        return bool(self.pushes or self.tell or self.serve or self.is_digest_due)

    def send(self, frame: Frame, size: int, out: Outbox[Frame]) -> None:
        self.room -= size
        out.sends.append((self.peer, frame))

    def send_hello(self, out: Outbox[Frame]) -> None:
        """One frame: of origins that it does not name the peer announces all that it holds."""
        if self.hello is not None and self.room > 0:
            ids, size = next(cut_ids(self.hello, self.bytes_max), (frozenset(), HEAD_BYTES))
            self.hello = None
            self.send(SyncHello(ids), size, out)

    def send_wants(self, out: Outbox[Frame]) -> None:
        for ids, size in cut_ids(list(self.wants.items()), self.bytes_max):
            if self.room <= 0:
                return
            for origin, _ in ids:
                del self.wants[origin]
            self.send(Want(ids), size, out)

    def take_offers(self, most: int) -> list[MessageId]:
        """Remove the first offers, at most so many."""
        offers = self.offers
        first = list(islice(offers, most))
        if len(first) == len(offers):
            offers.clear()
        else:
            for id in first:
                del offers[id]
        return first

    def send_data(
        self,
        held: Mapping[MessageId, tuple[int, Message]],
        unsaved: Unsaved,
        horizon_us: int,
        out: Outbox[Frame],
    ) -> list[MessageId]:
        """Serve requests in their order. Return what was sent."""
        sent: list[MessageId] = []
        gone: list[MessageId] = []
        while self.serve and self.room > 0:
            messages, size = self._next_batch(held, unsaved, horizon_us, gone)
            if not messages:
                break
            sent += [message.id for message in messages]
            self.send(Data(messages), size, out)
        for ids, size in cut_ids(gone, self.bytes_max):
            if self.room > 0:
                self.send(Data((), ids), size, out)
            else:
                self.serve.extendleft(ids)
        return sent

    def _next_batch(
        self,
        held: Mapping[MessageId, tuple[int, Message]],
        unsaved: Unsaved,
        horizon_us: int,
        gone: list[MessageId],
    ) -> tuple[tuple[Message, ...], int]:
        """The messages of the next frame, and its bytes; `gone` gets what is not held."""
        serve, size = self.serve, HEAD_BYTES
        messages: list[Message] = []
        while serve:
            id = serve[0]
            entry = held.get(id)
            if entry is None or id[1] <= horizon_us:
                gone.append(serve.popleft())
                continue
            more = wire_bytes(entry[1])
            if id in unsaved or (messages and size + more > self.bytes_max):
                break
            messages.append(entry[1])
            size += more
            serve.popleft()
        return tuple(messages), size

    def send_pushes(self, saved: int, out: Outbox[Frame]) -> None:
        """saved: the last step that is on the disk with all before it."""
        while self.pushes and self.room > 0 and self.pushes[0][0] <= saved:
            _, size, push = self.pushes.popleft()
            self.told += len(push.messages)  # a peer whose program does not read takes them so
            self.send(push, size, out)

    def send_announcements(self, unsaved: Unsaved, out: Outbox[Frame]) -> None:
        tell = self.tell
        while tell and self.room > 0:
            first = islice(tell, IDS_MAX)
            ready = [id for id in first if id not in unsaved] if unsaved else list(first)
            if not ready:
                return  # the end of the transaction under way brings the next try
            ids, size = next(cut_ids(ready, self.bytes_max))
            for id in ids:
                del tell[id]
            self.told += len(ids)
            self.send(Announce(0, ids), size, out)

    def send_digest(self, unsaved: Unsaved, out: Outbox[Frame]) -> None:
        if not self.is_digest_due:
            return
        ready = [id for id in self.digest.items() if id not in unsaved]
        for ids, size in cut_ids(ready, self.bytes_max):
            if self.room <= 0:
                return
            for origin, _ in ids:
                del self.digest[origin]
            self.send(Digest(ids), size, out)
        self.is_digest_due = bool(self.digest)


def pushes_of(
    messages: Sequence[Message], step: int, bytes_max: int
) -> list[tuple[int, int, Push]]:
    """Cut own messages into frames: (step, bytes, frame)."""
    found: list[tuple[int, int, Push]] = []
    batch: list[Message] = []
    size = HEAD_BYTES
    for message in messages:
        more = wire_bytes(message)
        if batch and size + more > bytes_max:
            found.append((step, size, Push(tuple(batch))))
            batch, size = [], HEAD_BYTES
        batch.append(message)
        size += more
    if batch:
        found.append((step, size, Push(tuple(batch))))
    return found
