"""An observer that delivers the messages of a set of processes in, or nearly in, causal order.

OBS sections 3.2 and 4. The observer receives a copy of every message with the sender's logical
timestamp, holds it for a while, and delivers it. The holding time is a dial between order and
delay. The observer waits only for its clock and never for a message, so a lost message delays
nothing.

One queue implements all five methods of the paper. A message is due at r + w (c + δ + ε), where w
is the share of the full wait. Deliver After Partial Wait orders the queue by (due, timestamp).
Check Before Delivery must not deliver m1 while the queue holds a smaller m2, and gives m1 the
delivery time of m2. This is the queue ordered by timestamp alone, whose head leaves when it is due.
So both methods look at the head and never search the queue. At w = 100 % the two orders coincide.

*The observer's time* is the highest value that it has seen on its clock. No clock is ever more than
ε behind the highest value that any clock has shown (`Guarantees`). So the highest values also
differ by no more than ε, and the proof needs nothing else of an observer's clock. If the clock is
set back by at most ε, the observer's time stands still until the clock catches up, and no decision
is revised. A fall by more than ε breaks the guarantees. The observer's time then follows the clock,
and entries from before the fall are repaired like any other corruption.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import Literal, NamedTuple

import msgspec

from beforehand.errors import LocalError, RemoteError
from beforehand.protocols.contract.base import (
    Count,
    Counters,
    Message,
    MessageId,
    MessageStatus,
    NodeId,
    Timer,
)
from beforehand.protocols.contract.needs import Link, Needs
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.contract.tables import Rows, Table
from beforehand.protocols.observer.timestamp import Guarantees, Stamp, is_possible, order_key

TIMER: Timer = ("deliver", None)
FAULTS_KEPT = 1024
LONG_AGO = -(1 << 62)
"""A time before any tick."""


class Dial(msgspec.Struct, frozen=True):
    """How long the observer waits, and how much of the timestamp it uses."""

    wait_percent: int = 100
    """Percentage of the wait that guarantees perfect causal order: the paper's c."""
    checks_queue: bool = True
    """True: Check Before Delivery. False: Deliver After Partial Wait."""
    elements: int | None = None
    """How many leading elements of kn to use and to require; None for all ε + 1."""
    uses_c: bool = True
    """Whether to use c; False: the physical clock alone."""

    def __post_init__(self) -> None:
        if not 0 <= self.wait_percent <= 100 or (self.elements or 0) < 0:
            raise LocalError(
                f"no such dial: {self}", hint="wait 0 to 100 %, use 0 or more elements"
            )


PERFECT = Dial()


def dapw(wait_percent: int) -> Dial:
    """Return the dial of Deliver After Partial Wait."""
    return Dial(wait_percent, checks_queue=False)


def cbd(wait_percent: int, elements: int | None = None) -> Dial:
    """Return the dial of Check Before Delivery, with the whole kn or its first k elements."""
    return Dial(wait_percent, elements=elements)


def dpc1(wait_percent: int) -> Dial:
    """Return the dial of Check Before Delivery by physical clocks alone (OBS 6.5)."""
    return Dial(wait_percent, elements=0, uses_c=False)


def dpc2(wait_percent: int) -> Dial:
    """Return the dial of Check Before Delivery by r and c, without kn (OBS 6.5)."""
    return Dial(wait_percent, elements=0)


def wait_ticks(c: int, dial: Dial, guarantees: Guarantees) -> int:
    """Return the ticks from r to the due time, rounded up: a clock shows whole ticks only."""
    return -(-dial.wait_percent * (c + guarantees.delta + guarantees.epsilon) // 100)


class Stamped(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="stamped"):
    """The copy of a message that the observer receives."""

    message: Message
    process: Count
    """The sender's number among the processes, which breaks ties between timestamps."""
    stamp: Stamp


class Held(msgspec.Struct, frozen=True, array_like=True):
    """A message in the queue. These fields and the dial determine its position there."""

    ticket: int
    """Arrival number at this observer. Equal timestamps are delivered in order of arrival."""
    received: int
    """Time of arrival, in ticks of the observer's time."""
    frame: Stamped


HELD = Table("held", MessageId, Held)
DELIVERED = Table("delivered", MessageId, int)
"""Time of delivery in ticks of the observer's time. Covers the last δ + 2ε ticks; no copy arrives
later than that."""
FRONT = Table("front", str, tuple[int, ...])
"""A single row with the largest timestamp delivered so far."""


class Disorder(msgspec.Struct):
    """Counts, by kind, of messages that the observer could not order.

    All are zero with the full wait while the guarantees hold.
    """

    overtaken: int = 0
    """Messages delivered after one with a larger timestamp. At w < 100 % this is the price of the
    dial. With all elements of kn it is also an upper bound of the messages delivered after one of
    their effects. With fewer elements it counts only what those elements show."""
    late: int = 0
    """Messages received more than δ + ε after their r: too slow a message, or a wrong clock."""
    ahead: int = 0
    """Messages that knew a clock more than ε ahead of the observer's. They are treated as if they
    had been sent on receipt."""
    impossible: int = 0
    """Messages with c or kn outside its domain, treated as if they had been sent on receipt."""
    starved: int = 0
    """Messages held for longer than is possible: the queue was corrupted, or the observer's clock
    was set back by more than ε. The observer delivers them at once."""


class Fault(NamedTuple):
    """A message that was counted in `Disorder`."""

    kind: Literal["overtaken", "late", "ahead", "impossible", "starved"]
    message: MessageId
    now_us: int


class _Entry(NamedTuple):
    """An entry of the queue, sorted by `order` and then by `ticket`, which is unique."""

    order: tuple[int, ...]
    ticket: int
    due: int
    received: int
    key: tuple[int, ...]
    message: Message


class Observer:
    """An observer that delivers each received message once, in the order that the dial allows.

    With `PERFECT`, while the guarantees hold, it delivers in causal order and before the sender's
    clock passes r + δ + 3ε. Its memory may be corrupted, or its clock set back by more than ε. Then
    it delivers all messages in the queue within 3 (δ + 2ε) ticks, and messages received after that
    as if nothing had happened.

    A durable observer promises the same across restarts for the messages that it had received: it
    delivers none twice, loses none, and keeps the order.
    """

    def __init__(
        self,
        node: NodeId,
        guarantees: Guarantees,
        dial: Dial = PERFECT,
        *,
        tick_us: int = 1,
        durable: bool = False,
    ) -> None:
        self.node = node
        self.guarantees = guarantees
        self.dial = dial
        self.elements = guarantees.elements_full if dial.elements is None else dial.elements
        self.counters = Counters()
        self.disorder = Disorder()
        self.faults: deque[Fault] = deque(maxlen=FAULTS_KEPT)
        """The latest faults. The caller may read and clear them."""
        self._tick_us = tick_us
        self._durable = durable
        self._queue: list[_Entry] = []
        self._pending: dict[MessageId, int] = {}  # -> tick of arrival
        self._delivered: dict[MessageId, int] = {}  # -> tick of delivery; the last δ + 2ε only
        self._front: tuple[int, ...] = ()  # the largest timestamp delivered so far
        self._ticket = 0
        self._now = LONG_AGO
        self._audit_at = LONG_AGO

    @property
    def needs(self) -> Needs:
        return Needs({"feed": Link()}, clocks_within_us=self.guarantees.epsilon * self._tick_us)

    @property
    def tables(self) -> tuple[Table, ...]:
        return (HELD, DELIVERED, FRONT) if self._durable else ()

    def on_message(self, now_us: int, source: NodeId, frame: Stamped, out: Outbox[Stamped]) -> None:
        """Queue the observer's copy of a message, and deliver what is due."""
        if len(frame.stamp.kn) < self.elements:
            raise RemoteError(
                f"a stamp of {len(frame.stamp.kn)} kn elements, the dial asks for {self.elements}",
                where=f"observer {self.node}, message {frame.message.id}",
                hint="send more elements, or turn the dial down",
            )
        self._read_clock(now_us)
        self._deliver_due(out)
        if frame.message.id in self._pending or frame.message.id in self._delivered:
            self.counters.duplicate += 1
        else:
            self.counters.received += 1
            out.receives.append(frame.message)
            self._admit(frame, out)
            self._deliver_due(out)
        self._set_timer(out)

    def on_timer(self, now_us: int, timer: Timer, out: Outbox[Stamped]) -> None:
        """Deliver the messages that are due."""
        if timer == TIMER:
            self._read_clock(now_us)
            self._deliver_due(out)
            self._set_timer(out)

    def restore(self, now_us: int, rows: Rows, out: Outbox[Stamped]) -> None:
        """Load the saved state, and deliver in this step the messages that fell due meanwhile."""
        self._delivered = dict(rows.get(DELIVERED.name, {}))
        self._front = next(iter(rows.get(FRONT.name, {}).values()), ())
        for held in sorted(rows.get(HELD.name, {}).values(), key=lambda held: held.ticket):
            self._ticket = held.ticket
            self._hold(held, is_possible(held.frame.stamp, held.received, self.guarantees))
        # The observer's time had reached at least this, so a clock behind it was set back.
        self._now = max([*self._pending.values(), *self._delivered.values()], default=LONG_AGO)
        self._read_clock(now_us)
        self._deliver_due(out)
        self._set_timer(out)

    def explain(self, message: MessageId) -> MessageStatus:
        if message in self._pending:
            return MessageStatus("waiting", since_us=self._pending[message] * self._tick_us)
        return MessageStatus("delivered" if message in self._delivered else "unknown")

    def gauges(self, now_us: int) -> dict[str, int]:
        return {
            "queue": len(self._queue),
            "pending": len(self._pending),
            "remembered": len(self._delivered),
            "faults": len(self.faults),
        }

    def _read_clock(self, now_us: int) -> None:
        """Update the observer's time. It stands still while its clock is behind it by ε or less."""
        tick = now_us // self._tick_us
        if not tick <= self._now <= tick + self.guarantees.epsilon:
            self._now = tick

    def _admit(self, frame: Stamped, out: Outbox[Stamped]) -> None:
        now, stamp, guarantees = self._now, frame.stamp, self.guarantees
        is_believed = is_possible(stamp, now, guarantees)
        if not is_believed:
            is_ahead = stamp.high > now + guarantees.epsilon
            self._report("ahead" if is_ahead else "impossible", frame.message)
        elif stamp.r < now - guarantees.delta - guarantees.epsilon:
            self._report("late", frame.message)
        self._ticket += 1
        held = Held(self._ticket, now, frame)
        self._hold(held, is_believed)
        if self._durable:
            out.saves.append((HELD.name, frame.message.id, held))

    def _hold(self, held: Held, is_believed: bool) -> None:
        """Queue a message; replace an impossible stamp by one of its receipt time (OBS 3.2)."""
        received, frame = held.received, held.frame
        stamp = frame.stamp if is_believed else Stamp(received, 0, (0,) * len(frame.stamp.kn))
        c = stamp.c if self.dial.uses_c else 0
        due = stamp.r + wait_ticks(c, self.dial, self.guarantees)
        key = order_key(Stamp(stamp.r, c, stamp.kn[: self.elements]), frame.process)
        order = key if self.dial.checks_queue else (due, *key)
        self._pending[frame.message.id] = received
        heapq.heappush(self._queue, _Entry(order, held.ticket, due, received, key, frame.message))

    def _deliver_due(self, out: Outbox[Stamped]) -> None:
        now = self._now
        if self._front and self._front[0] > now + self.guarantees.epsilon:
            self._set_front((), out)  # no clock is that far: a wrong clock or corrupted memory
        while self._queue and self._queue[0].due <= now:
            self._deliver(heapq.heappop(self._queue), out)
        if not now < self._audit_at <= now + self.guarantees.horizon:
            self._audit(out)

    def _audit(self, out: Outbox[Stamped]) -> None:
        """Deliver messages held for too long; forget delivered ids of which no copy can arrive.

        This runs once per horizon, so it checks each message about once: constant amortised cost.
        """
        now, horizon = self._now, self.guarantees.horizon
        self._audit_at = now + horizon
        # A message received a horizon ago has been due, so an intact queue does not hold it.
        starved = [e for e in self._queue if not now - horizon < e.received <= now]
        self._queue = [e for e in self._queue if now - horizon < e.received <= now]
        heapq.heapify(self._queue)
        for entry in sorted(starved, key=lambda e: e[:2]):
            self._report("starved", entry.message)
            self._deliver(entry, out)
        self._pending = {e.message.id: e.received for e in self._queue}
        self._forget(now - horizon, out)

    def _forget(self, before: int, out: Outbox[Stamped]) -> None:
        """Forget the messages delivered before tick `before`: no copy of them is in transit."""
        old = [id for id, when in self._delivered.items() if when < before]
        if self._durable:
            out.saves += [(DELIVERED.name, id, None) for id in old]
        for id in old:
            del self._delivered[id]
        # After the clock was set back, a delivery that seems to lie ahead counts as one from now.
        ahead = [id for id, when in self._delivered.items() if when > self._now]
        for id in ahead:
            self._remember(id, out)

    def _deliver(self, entry: _Entry, out: Outbox[Stamped]) -> None:
        if entry.key < self._front:
            self._report("overtaken", entry.message)
        else:
            self._set_front(entry.key, out)
        self._pending.pop(entry.message.id, None)
        self._remember(entry.message.id, out)
        if self._durable:
            out.saves.append((HELD.name, entry.message.id, None))
        self.counters.delivered += 1
        out.deliveries.append(entry.message)

    def _remember(self, message: MessageId, out: Outbox[Stamped]) -> None:
        self._delivered[message] = self._now
        if self._durable:
            out.saves.append((DELIVERED.name, message, self._now))

    def _set_front(self, key: tuple[int, ...], out: Outbox[Stamped]) -> None:
        self._front = key
        if self._durable:
            out.saves.append((FRONT.name, "largest", key or None))

    def _report(
        self,
        kind: Literal["overtaken", "late", "ahead", "impossible", "starved"],
        message: Message,
    ) -> None:
        setattr(self.disorder, kind, getattr(self.disorder, kind) + 1)
        self.faults.append(Fault(kind, message.id, self._now * self._tick_us))

    def _set_timer(self, out: Outbox[Stamped]) -> None:
        # Nothing is due later than a horizon from now; a corrupted entry may have a later time.
        latest = self._now + self.guarantees.horizon
        if self._queue:
            out.timers.append((TIMER, min(self._queue[0].due, latest) * self._tick_us))
        elif self._delivered:  # wake up to forget them even if no message arrives any more
            out.timers.append((TIMER, min(self._audit_at, latest) * self._tick_us))
