"""One end of a TCP connection, as MOB-TR section V.A measures it: Reno, counted in messages.

It has cumulative acknowledgements, slow start and congestion avoidance, a fast retransmit after
three duplicate acknowledgements, and a timeout that doubles with every attempt. The timeout is
constant, as the report has it, or follows the measured round trips (RFC 6298). A small segment
waits while another one is in flight (Nagle). An acknowledgement waits for a second segment (delayed
acknowledgement), or for none.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from beforehand.protocols.contract.base import CANCEL, Message, NodeId, Timer
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.mobile.sizes import NUMBER_BYTES
from beforehand.protocols.mobile.tcp_flooding.frames import Frame, Segment

RESEND = "tcp resend"
ACK = "tcp ack"
DUPLICATES = 3
FLIGHT_MIN = 2


class Tcp(msgspec.Struct, frozen=True):
    """The parameters of MOB-TR section V.A, and TCP's defaults where the report gives none."""

    timeout_us_first: int = 200_000
    """The timeout of a connection request, and of data before the first progress. INET: 3 s."""
    timeout_us_min: int = 200_000
    """The timeout after progress; if `measures`, the least timeout. INET: 1 s."""
    timeout_us_max: int = 60_000_000
    window: int = 46
    """Maximum number of messages in flight."""
    window_start: int = 4
    """Congestion window, in messages, at the start and after a timeout: one segment of short
    messages."""
    segment_bytes: int = 536
    ack_us: int = 200_000
    """Maximum delay of an acknowledgement. 0: none is delayed, the default of INET."""
    measures: bool = False
    """Whether the timeout is the smoothed round trip and four times its deviation, as in INET. A
    segment that was retransmitted is not measured, and a doubled timeout stays until one is
    measured (Karn)."""
    gap_us: int = 5_000
    """Time between the sends of one message to two hosts of a cell."""


ROUND_TRIP_GAIN = 8
"""A measurement changes the estimates by an eighth of the difference, in INET both of them."""


class RoundTrip:
    """The estimate of the round trip of a connection, and the timeout that follows from it."""

    def __init__(self, tcp: Tcp) -> None:
        self._least_us, self._most_us = tcp.timeout_us_min, tcp.timeout_us_max
        self._smoothed_us = 0
        self._deviation_us = tcp.timeout_us_first // 4  # so that the first timeout follows
        self._timed: tuple[int, int] | None = None

    def start(self, end: int, now_us: int) -> None:
        """Note when new messages up to the number `end` were sent. One segment is timed at once."""
        if self._timed is None:
            self._timed = (end, now_us)

    def discard(self) -> None:
        """Measure nothing that is in flight: it may be retransmitted (Karn)."""
        self._timed = None

    def measure(self, oldest: int, now_us: int) -> int | None:
        """Return the new timeout if the timed segment is acknowledged, else None."""
        if self._timed is None or oldest < self._timed[0]:
            return None
        error_us = now_us - self._timed[1] - self._smoothed_us
        self._timed = None
        self._smoothed_us += error_us // ROUND_TRIP_GAIN
        self._deviation_us += (abs(error_us) - self._deviation_us) // ROUND_TRIP_GAIN
        timeout_us = self._smoothed_us + 4 * self._deviation_us
        return min(max(timeout_us, self._least_us), self._most_us)


class Connection:
    """The state of one end of a connection. The other end has the same."""

    def __init__(self, me: NodeId, cell: NodeId, host: NodeId, ses: int, tcp: Tcp) -> None:
        self.ses = ses
        self._peer = host if me == cell else cell
        self._cell = cell
        self._host = host
        self._tcp = tcp
        self._resend: Timer = (RESEND, self._peer)
        self._ack: Timer = (ACK, self._peer)
        # outgoing
        self._unacked: dict[int, Message] = {}
        self._end = 0  # number of the next message to be offered
        self._next = 0  # number of the next message to be sent
        self._sent = 0  # all messages before this number were sent at least once
        self._window = float(tcp.window_start)
        self._threshold = float(tcp.window)
        self._duplicates = 0
        self._is_recovering = False
        self._timeout_us = tcp.timeout_us_first
        self._round_trip = RoundTrip(tcp) if tcp.measures else None
        # incoming
        self._expected = 0
        self._early: dict[int, Message] = {}
        self._owed = 0  # received segments not acknowledged yet

    # ---- inputs ---------------------------------------------------------------------------------

    def offer(self, message: Message) -> None:
        """Queue a message to be sent after all messages offered before."""
        self._unacked[self._end] = message
        self._end += 1

    def push(self, now_us: int, out: Outbox[Frame]) -> None:
        """Send the segments that the window and Nagle's rule allow."""
        before = self._next
        for first, messages in self._segments():
            self._send(first, messages, out)
            self._next = first + len(messages)
            if self._round_trip is not None and first >= self._sent:
                self._round_trip.start(self._next, now_us)
        self._sent = max(self._sent, self._next)
        if self._next > before == self._oldest:  # nothing was in flight
            out.timers.append((self._resend, now_us + self._timeout_us))

    def on_segment(self, now_us: int, frame: Segment, out: Outbox[Frame]) -> list[Message]:
        """Handle a segment, and return the messages that are now in order."""
        owed = self._owed
        ordered = self._take(frame, out)
        self._on_ack(now_us, frame, out)
        self.push(now_us, out)
        if self._owed > 1 or (self._owed and not self._tcp.ack_us):
            self._send(self._next, (), out)
        elif self._owed > owed:
            out.timers.append((self._ack, now_us + self._tcp.ack_us))
        return ordered

    def on_timer(self, now_us: int, timer: Timer, out: Outbox[Frame]) -> None:
        """Send a delayed acknowledgement; or, on a timeout, back off and resend from the oldest
        unacknowledged message."""
        if timer == self._ack and self._owed:
            self._send(self._next, (), out)
        elif timer == self._resend and self._next > self._oldest:
            self._timeout_us = min(2 * self._timeout_us, self._tcp.timeout_us_max)
            if self._round_trip is not None:
                self._round_trip.discard()
            self._slow_down()
            self._window = float(self._tcp.window_start)
            self._duplicates, self._is_recovering = 0, False
            self._next = self._oldest
            self.push(now_us, out)

    # ---- questions ------------------------------------------------------------------------------

    def unsent(self) -> list[Message]:
        return [message for number, message in self._unacked.items() if number >= self._sent]

    def unsure(self) -> list[Message]:
        """Return the messages sent but not acknowledged: they may or may not have arrived."""
        return [message for number, message in self._unacked.items() if number < self._sent]

    def moods(self) -> Iterator[str]:
        """Yield the congestion states that the connection is in, for observation."""
        if self._is_recovering:
            yield "recovering"
        if self._timeout_us > self._tcp.timeout_us_min:
            yield "backed off"

    def gauges(self) -> tuple[int, int]:
        """Return the numbers of unacknowledged messages and of those received out of order."""
        return len(self._unacked), len(self._early)

    # ---- outgoing -------------------------------------------------------------------------------

    @property
    def _oldest(self) -> int:
        return self._end - len(self._unacked)

    def _segments(self) -> Iterator[tuple[int, tuple[Message, ...]]]:
        first = self._next
        room = min(int(self._window), self._tcp.window)
        end = min(self._end, self._oldest + room)
        while first < end:
            messages = self._fill(first, end)
            is_full = first + len(messages) < self._end
            if first > self._oldest and not is_full:
                return  # Nagle: a small segment waits while another one is in flight
            yield first, messages
            first += len(messages)

    def _fill(self, first: int, end: int) -> tuple[Message, ...]:
        """Return the messages that fit into a segment, at least one: a longer one goes alone."""
        messages: list[Message] = []
        left_bytes = self._tcp.segment_bytes
        for number in range(first, end):
            message = self._unacked[number]
            left_bytes -= 2 * NUMBER_BYTES + len(message.payload)
            if messages and left_bytes < 0:
                break
            messages.append(message)
        return tuple(messages)

    def _send(self, first: int, messages: tuple[Message, ...], out: Outbox[Frame]) -> None:
        if self._owed:
            self._owed = 0
            out.timers.append((self._ack, CANCEL))
        segment = Segment(self._cell, self._host, self.ses, first, self._expected, messages)
        out.sends.append((self._peer, segment))

    def _slow_down(self) -> None:
        flight = self._next - self._oldest
        self._threshold = max(flight / 2, float(FLIGHT_MIN))

    # ---- incoming -------------------------------------------------------------------------------

    def _take(self, frame: Segment, out: Outbox[Frame]) -> list[Message]:
        if not frame.messages:
            return []
        expected, had_gap = self._expected, bool(self._early)
        for number, message in enumerate(frame.messages, frame.first):
            if number >= self._expected and number not in self._early:
                self._early[number] = message
                out.receives.append(message)
        ordered = []
        while self._expected in self._early:
            ordered.append(self._early.pop(self._expected))
            self._expected += 1
        # A duplicate or a gap: acknowledge at once, so that the other end can retransmit.
        is_urgent = self._expected == expected or had_gap or bool(self._early)
        self._owed += 2 if is_urgent else 1
        return ordered

    def _on_ack(self, now_us: int, frame: Segment, out: Outbox[Frame]) -> None:
        acked = frame.ack - self._oldest
        if 0 < acked <= self._sent - self._oldest:
            self._progress(now_us, acked, out)
        elif acked == 0 and not frame.messages and self._next > self._oldest:
            self._duplicates += 1
            if self._duplicates == DUPLICATES:
                self._retransmit(out)
            elif self._is_recovering:
                self._window += 1

    def _progress(self, now_us: int, acked: int, out: Outbox[Frame]) -> None:
        for number in range(self._oldest, self._oldest + acked):
            del self._unacked[number]
        self._next = max(self._next, self._oldest)
        if self._round_trip is None:
            self._timeout_us = self._tcp.timeout_us_min
        elif (measured_us := self._round_trip.measure(self._oldest, now_us)) is not None:
            self._timeout_us = measured_us
        self._duplicates = 0
        if self._is_recovering:
            self._window, self._is_recovering = self._threshold, False
        elif self._window < self._threshold:
            self._window += acked
        else:
            self._window += acked / self._window
        self._window = min(self._window, float(self._tcp.window))
        in_flight = self._next > self._oldest
        due_us = now_us + self._timeout_us if in_flight else CANCEL
        out.timers.append((self._resend, due_us))

    def _retransmit(self, out: Outbox[Frame]) -> None:
        """Resend the first unacknowledged segment before its timeout (fast retransmit)."""
        if self._round_trip is not None:
            self._round_trip.discard()
        self._slow_down()
        self._send(self._oldest, self._fill(self._oldest, self._next), out)
        self._window = self._threshold + DUPLICATES
        self._is_recovering = True
