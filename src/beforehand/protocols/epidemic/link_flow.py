"""The send queues of one link, and the frames that are made from them while there is room."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice

import msgspec

from beforehand.protocols.contract.base import Message, MessageId, NodeId
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.contract.proof import PROOF_HEAD_BYTES
from beforehand.protocols.epidemic.frames import (
    IDS_MAX,
    Announce,
    Data,
    Digest,
    Frame,
    Missing,
    Push,
    SkipFrame,
    SyncHello,
    Want,
)
from beforehand.protocols.epidemic.peer import Peer
from beforehand.protocols.epidemic.sizes import HEAD_BYTES, cut_ids, ids_bytes, wire_bytes

Unsaved = Mapping[MessageId, int]
"""Messages whose storing step is not on the disk yet: id -> step."""


class LinkFlow(msgspec.Struct):
    """The queues of one link. Its methods send frames until the room is used up."""

    peer: NodeId
    bytes_max: int
    """The largest size of a frame."""
    room: int = 0
    """How many bytes the wire still takes, as far as this node knows."""
    hello: tuple[MessageId, ...] | None = None
    """This node's version vector, if it has to be sent."""
    wants: dict[NodeId, int] = {}
    """Version-vector entries of this node, to be sent as `Want`: the peer then announces what it
    holds beyond."""
    notes: deque[SkipFrame] = msgspec.field(default_factory=deque)
    """Questions about missing causes, and answers."""
    offers: dict[MessageId, None] = {}
    """Messages that the peer offers and that this node lacks and has not requested yet, in the
    order of the offers."""
    has_dropped_offers: bool = False
    """Whether offers were dropped, so that the node has to send its version vector again."""
    overtaken: set[MessageId] = set()
    """Messages requested from the peer that arrived another way before its answer, or expired. They
    count against the request window until the peer answers, because they wait in its `serve`."""
    serve: deque[MessageId] = msgspec.field(default_factory=deque)
    """Messages that the peer requested and that were not sent yet."""
    pushes: deque[tuple[int, int, Push]] = msgspec.field(default_factory=deque)
    """(step, bytes, frame) of own messages. A frame is sent when the disk has its step."""
    to_announce: dict[MessageId, None] = {}
    """Held messages that have to be announced."""
    digest: dict[NodeId, int] = {}
    """By origin, the last delivered message that the peer may not know of."""
    is_digest_due: bool = False
    """Whether the digest delay is over."""
    hellos: int = 0
    """How many version vectors the peer has sent."""
    next_hello: frozenset[MessageId] | None = None
    """The peer's version vector. When `to_announce` is empty, the node announces what the peer
    lacks."""
    announced: int = 0
    """How many messages were announced or pushed over this link."""
    silent: int = 0
    """How often the stall timer has fired since the peer last sent data."""

    def unanswered(self, link: Peer) -> int:
        """Return how many requested messages the peer has not answered."""
        return len(link.requested) + len(self.overtaken)

    def waits_for_disk(self) -> bool:
        return bool(self.pushes or self.to_announce or self.serve or self.is_digest_due)

    def send(self, frame: Frame, size: int, out: Outbox[Frame]) -> None:
        self.room -= size
        out.sends.append((self.peer, frame))

    def send_hello(self, out: Outbox[Frame]) -> None:
        """Send the version vector in one frame. If it does not fit, the frame leaves out origins:
        the peer then announces all that it holds of those."""
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

    def send_notes(self, out: Outbox[Frame]) -> None:
        while self.notes and self.room > 0:
            note = self.notes.popleft()
            ids = note.ids if isinstance(note, Missing) else note.gone | note.unknown
            self.send(note, HEAD_BYTES + ids_bytes(list(ids)), out)

    def take_offers(self, most: int) -> list[MessageId]:
        """Remove and return the first offers, at most `most` of them."""
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
        """Serve requests in their order. Return the ids of the messages that were sent."""
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
        """Return the messages of the next frame and its size. Append to `gone` the requested ids
        that are not held or have expired.

        Messages that were signed together go into one frame, unless that leaves the frame less than
        half full: the peer checks them together at half the cost.
        """
        serve, size = self.serve, HEAD_BYTES
        messages: list[Message] = []
        signer, first, size_before = b"", 0, size  # of the messages signed together with the last
        while serve:
            id = serve[0]
            entry = held.get(id)
            if entry is None or entry[1].deadline_us <= horizon_us:
                gone.append(serve.popleft())
                continue
            message = entry[1]
            more = wire_bytes(message)
            is_full = bool(messages) and size + more > self.bytes_max
            if id in unsaved or is_full:
                is_split = is_full and signer and message.proof.startswith(signer)
                if is_split and 2 * size_before > self.bytes_max:
                    serve.extendleft(message.id for message in reversed(messages[first:]))
                    return tuple(messages[:first]), size_before
                break
            if not (signer and message.proof.startswith(signer)):
                signer, first, size_before = message.proof[:PROOF_HEAD_BYTES], len(messages), size
            messages.append(message)
            size += more
            serve.popleft()
        return tuple(messages), size

    def send_pushes(self, saved: int, out: Outbox[Frame]) -> None:
        """Send pushes whose step is on the disk.

        saved: the last step that is on the disk together with all earlier steps.
        """
        while self.pushes and self.room > 0 and self.pushes[0][0] <= saved:
            _, size, push = self.pushes.popleft()
            # While its application does not read, the peer treats a push as an announcement.
            self.announced += len(push.messages)
            self.send(push, size, out)

    def send_announcements(self, unsaved: Unsaved, out: Outbox[Frame]) -> None:
        to_announce = self.to_announce
        while to_announce and self.room > 0:
            first = islice(to_announce, IDS_MAX)
            ready = [id for id in first if id not in unsaved] if unsaved else list(first)
            if not ready:
                return  # `on_saved` retries when the current transaction is on the disk
            ids, size = next(cut_ids(ready, self.bytes_max))
            for id in ids:
                del to_announce[id]
            self.announced += len(ids)
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
    """Split own messages into push frames. Return (step, bytes, frame) of each."""
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
