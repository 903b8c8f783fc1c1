"""One TCP connection, from the cookie to the close: the asyncio protocol around the handshake.

A link knows no other connections. It reports to its owner, the mesh, which decides whether this
connection becomes the link between two members.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence

from beforehand.runtime.crypto.handshake import (
    SEAL_BYTES,
    Introduction,
    LateMember,
    Opener,
    Sealer,
)
from beforehand.runtime.transport.address import Address
from beforehand.runtime.transport.connection.buffers import ReadBuffer, SendQueue
from beforehand.runtime.transport.connection.drain import Drain, sink
from beforehand.runtime.transport.connection.flood_meter import FloodMeter
from beforehand.runtime.transport.connection.handshake_stream import HandshakeStream
from beforehand.runtime.transport.connection.link_owner import LinkState, Owner
from beforehand.runtime.transport.connection.records import (
    BEAT,
    FRAMES,
    GOODBYE,
    INTRODUCTION,
    KEEP,
    NORMAL_ENDS,
    NOTICE,
    PING,
    PONG,
    content_bytes_max,
    count_frames,
    pack_frames,
    pack_goodbye,
    pack_notice,
    unpack_frames,
    unpack_goodbye,
    unpack_notice,
)
from beforehand.runtime.transport.disconnects import Refused
from beforehand.runtime.transport.limits import Limits

LENGTH_BYTES = 4
FIRST_RECORD_BYTES_MAX = 1024
"""The longest record before the introduction is checked."""
READ_BYTES = 8 << 10
"""Read buffer of an idle link, as most links are. It grows for longer records."""
WRITE_HIGH_BYTES = 256 << 10
"""Bytes in the transport's write buffer above which frames wait in the send queue."""
LINGER_SECONDS = 1.0
"""Time for a goodbye to be sent before the connection is aborted."""


class Link(asyncio.BufferedProtocol):
    """One connection; `Mesh` documents the guarantees to callers."""

    def __init__(self, owner: Owner, handshake: HandshakeStream, limits: Limits) -> None:
        self._loop = asyncio.get_running_loop()
        self._owner, self._limits = owner, limits
        self._handshake: HandshakeStream | None = handshake
        self.is_dialed = handshake.is_dialer
        self.state = LinkState.HELLO
        self.name = ""
        """The peer's name, once it is proven; before, empty."""
        self.address = Address("", 0)
        self.target: Address | None = None
        """The address that was dialed; None for a connection that came in."""
        self.secret_id = ""
        """The secret of the connection, once the peer has proven that it holds it."""
        self.was_up = self.was_turned_away = False
        self.since_us = 0
        self.began = self.received_at = self.sent_at = self._loop.time()
        self.place = ""
        """The key that counts towards the limit per address."""
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self.lost: asyncio.Future[None] = self._loop.create_future()
        self.bytes_in = self.bytes_out = self.frames_in = self.frames_out = 0
        self.is_paused = False

        self._transport: asyncio.Transport
        self._sealer: Sealer
        self._opener: Opener
        self._buffer = ReadBuffer(READ_BYTES)
        self._held: Iterable[bytes] = ()
        """Frames of the last decrypted record that are not handed over yet."""
        self._has_held = False
        self._is_taking = False
        self._meter = FloodMeter(limits.frames_per_second_max, self.began)
        self._queue = SendQueue()
        self._is_choked = self._is_flushing = self._owes_pong = self._was_beyond_half = False
        self._record_bytes_max = FIRST_RECORD_BYTES_MAX
        self._on_frame: Callable[[str, bytes], None] = owner.on_frame
        self._linger: asyncio.TimerHandle | None = None
        self._drain: Drain | None = None

    # ---- the connection -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=WRITE_HIGH_BYTES)
        remote = transport.get_extra_info("peername")
        if remote:  # otherwise it is closed already
            self.address = Address(remote[0], remote[1])
        if not self._owner.on_connected(self):
            self.end("too_many_connections", "no place for another connection")
        elif self._handshake and self._handshake.start:
            self._write(self._handshake.start)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._linger:
            self._linger.cancel()
        self.stop_draining()
        cause = f": {exc}" if exc else ""
        if self.state is LinkState.HELLO and self.is_dialed:
            self.end("turned_away", "it refused our hello: another secret or version, or no place")
        elif self.state is LinkState.HELLO:
            self.end("no_key", f"it closed the connection before its hello{cause}")
        elif self._buffer and not self.is_paused:
            self.end("truncated", f"the connection ended in the middle of a record{cause}")
        else:
            self.end("broken", f"the connection ended without a goodbye{cause}")
        self.lost.set_result(None)
        self._owner.on_lost(self)

    def come_up(self) -> None:
        """Start to carry frames."""
        self.state = LinkState.UP
        self.was_up = True
        self.since_us = time.time_ns() // 1000

    def end(self, kind: str, problem: str) -> None:
        """Close the connection. Tell a peer that holds the group secret the reason."""
        if self.state is LinkState.ENDED:
            return
        can_report = self.state > LinkState.HELLO and not self._is_choked
        self.state = LinkState.ENDED
        self._queue.clear()
        self._held, self._has_held = (), False
        self._buffer.clear()
        if can_report and not self._transport.is_closing():
            self._write_record(pack_goodbye(kind))
            self._transport.close()
            self._linger = self._loop.call_later(LINGER_SECONDS, self._transport.abort)
        else:
            self._transport.abort()
        self.ended.set_result(None)
        self._owner.on_ended(self, kind, problem)

    def _refuse(self, refused: Refused) -> None:
        """End a connection whose hello did not open under a valid secret.

        The place among the handshakes is free at once. Nothing on the network shows it.
        """
        if isinstance(refused, LateMember):
            self._write(refused.answer)
        if self._owner.may_drain():
            self._drain = Drain(self._transport, self._loop)
        else:
            self._transport.abort()
        self.state = LinkState.ENDED
        self._buffer.clear()
        self.ended.set_result(None)
        self._owner.on_ended(self, refused.kind, refused.problem)

    @property
    def is_draining(self) -> bool:
        """Whether the socket of a stranger is still read."""
        return self._drain is not None and not self._transport.is_closing()

    def stop_draining(self) -> None:
        """Close the socket of a stranger at once."""
        if self._drain:
            self._drain.stop()

    # ---- receiving ------------------------------------------------------------------------------

    def get_buffer(self, sizehint: int) -> memoryview:
        return sink if self.state is LinkState.ENDED else self._buffer.space()

    def buffer_updated(self, nbytes: int) -> None:
        if self._drain:
            self._drain.read(nbytes)
            return
        self.received_at = self._loop.time()
        self._meter.refill(self.received_at)
        self.bytes_in += nbytes
        self._buffer.filled(nbytes)
        self._take()

    def pause(self) -> None:
        if not self.is_paused and self.state is not LinkState.ENDED:
            self.is_paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        if self.is_paused and self.state is not LinkState.ENDED:
            self.is_paused = False
            # Time during which we did not read does not count as the peer's silence.
            self.received_at = self._loop.time()
            self._transport.resume_reading()
            self._loop.call_soon(self._take)

    def relax(self) -> None:
        """Free buffer memory; called when nothing was received for a while."""
        self._buffer.relax()

    def _take(self) -> None:
        """Process all complete records. A callback may pause, resume or end the link."""
        if self._is_taking:
            return
        self._is_taking = True
        try:
            while not self.is_paused and self.state is not LinkState.ENDED and self._take_one():
                pass
        except Refused as refused:
            self.end(refused.kind, refused.problem)
        finally:
            self._is_taking = False

    def _take_one(self) -> bool:
        if self._has_held:
            self._hand_over()
            return True
        if self.state is LinkState.HELLO:
            return self._take_handshake()
        buffer = self._buffer
        if len(buffer) < LENGTH_BYTES:
            buffer.reserve(LENGTH_BYTES)
            return False
        size = int.from_bytes(buffer.peek(LENGTH_BYTES), "little")
        if size > self._record_bytes_max:
            # The length is not authenticated. Before its introduction the peer may be unknown, so
            # the limit is small.
            raise Refused("too_large", f"a record of {size:,} bytes")
        if len(buffer) < LENGTH_BYTES + size:
            buffer.reserve(LENGTH_BYTES + size)
            return False
        buffer.take(LENGTH_BYTES)
        self._on_record(self._opener.open(buffer.take(size)))
        return True

    def _take_handshake(self) -> bool:
        """Take the next message of the handshake that is no record."""
        handshake = self._handshake
        assert handshake is not None, "can't happen: it is dropped after this state"
        try:
            reply = handshake.take(self._buffer)
        except Refused as refused:
            if self.is_dialed:
                raise
            self._refuse(refused)
            return False
        if reply is None:
            return False
        if reply:
            self._write(reply)
        if handshake.is_proven:
            self._sealer, self._opener = handshake.sealer, handshake.opener
            self.secret_id = handshake.secret_id
            self.state = LinkState.INTRODUCTION
            if self.is_dialed:
                peer, introduction = handshake.meet()
                self._write_record(bytes([INTRODUCTION]) + introduction)
                self._introduced(peer)
        return True

    def _on_record(self, content: bytes) -> None:
        kind = content[0] if content else 0
        if not self._meter.take(count_frames(content) if kind == FRAMES else 1):
            most = self._limits.frames_per_second_max
            raise Refused("flood", f"more than {most:,} frames per second")
        if kind == GOODBYE:
            self._on_goodbye(unpack_goodbye(content))
        elif self.state is LinkState.INTRODUCTION and kind == INTRODUCTION:
            assert self._handshake is not None, "can't happen: it is dropped after this state"
            self._introduced(self._handshake.on_introduction(content[1:]))
        elif self.state is LinkState.UP and kind == FRAMES:
            frames = unpack_frames(content, self._limits.frame_bytes_max)
            self.frames_in += len(frames)
            self._held, self._has_held = iter(frames), True
            self._hand_over()
        elif self.state is LinkState.UP and kind == NOTICE:
            self._owner.on_notice(self, unpack_notice(content))
        elif len(content) != 1:
            raise Refused("malformed", f"{len(content)} bytes of kind {kind}")
        elif self.state is LinkState.UP and kind == PING:
            self._owes_pong = True
            self._flush_soon()
        elif self.state is LinkState.UP and kind == PONG:
            self._owner.on_pong(self)
        elif self.state is LinkState.DECIDING and kind == KEEP:
            self._owner.on_keep(self)
        elif kind != BEAT or self.state is LinkState.INTRODUCTION:
            raise Refused("malformed", f"a record of kind {kind} while {self.state.name.lower()}")

    def _on_goodbye(self, reason: str) -> None:
        if reason in NORMAL_ENDS:
            self.end(reason, "the other end hung up")
        else:
            self.was_turned_away = True
            self.end(
                "turned_away", f"the other end closed the connection, giving the reason: {reason}"
            )

    def _introduced(self, peer: Introduction) -> None:
        self._handshake = None
        self._record_bytes_max = content_bytes_max(self._limits) + SEAL_BYTES
        self.state = LinkState.DECIDING
        self._owner.on_introduced(self, peer)

    def _hand_over(self) -> None:
        on_frame, name = self._on_frame, self.name
        for frame in self._held:
            on_frame(name, frame)
            if self.is_paused or self.state is LinkState.ENDED:
                return  # `_held` continues after this frame
        self._has_held = False

    # ---- sending --------------------------------------------------------------------------------

    def keep(self) -> None:
        """Tell the peer that this connection is the link."""
        self._write_record(bytes([KEEP]))

    def notice(self, ends_us: int) -> None:
        """Tell the peer when the secret of this link ends."""
        if self.state is LinkState.UP:
            self._write_record(pack_notice(ends_us))

    def ping(self) -> None:
        if not self._is_choked:
            self._write_record(bytes([PING]))

    def beat(self) -> None:
        if not self._is_choked and self.state is LinkState.UP:
            self._write_record(bytes([BEAT]))

    def send(self, frames: Sequence[bytes], sizes: Sequence[int]) -> None:
        if self.state is not LinkState.UP:
            return
        self._queue.put(frames, sizes)
        queued, most = self._queue.bytes, self._limits.queue_bytes_max
        if queued > most:
            self.end("overflow", f"{queued:,} bytes wait for it: it reads too slowly")
        else:
            self._was_beyond_half |= queued > most // 2
            self._flush_soon()

    @property
    def queued_bytes(self) -> int:
        return self._queue.bytes

    @property
    def underway_bytes(self) -> int:
        """Bytes received of an incomplete record."""
        return len(self._buffer)

    def pause_writing(self) -> None:
        self._is_choked = True

    def resume_writing(self) -> None:
        self._is_choked = False
        self._flush()

    def _flush_soon(self) -> None:
        # All frames sent in this event-loop iteration share records.
        if not self._is_flushing:
            self._is_flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flushing = False
        if self._owes_pong and not self._is_choked and self.state is LinkState.UP:
            self._owes_pong = False
            self._write_record(bytes([PONG]))
        while self._queue and not self._is_choked:
            batch = self._queue.next_batch()
            self.frames_out += len(batch)
            self._write_record(pack_frames(batch))
        if self._was_beyond_half and self._queue.bytes <= self._limits.queue_bytes_max // 2:
            self._was_beyond_half = False
            if self.state is LinkState.UP:
                self._owner.on_room(self)

    def _write_record(self, content: bytes) -> None:
        sealed = self._sealer.seal(content)
        self._write(len(sealed).to_bytes(LENGTH_BYTES, "little") + sealed)

    def _write(self, data: bytes) -> None:
        self.sent_at = self._loop.time()
        self.bytes_out += len(data)
        self._transport.write(data)
