"""An observer that puts the messages of others in causal order, or nearly so (OBS 3.2, 4).

It gets a copy of every message with the sender's logical timestamp, holds it for a while, and
delivers. How long it holds is a dial between order and delay. It never waits for a message, only
for its clock: a lost message delays nothing.

All five ways of the paper are one queue. A message is due at r + w (c + δ + ε), where w is the
share of the full wait. Deliver After Partial Wait takes the queue in order of (due, timestamp).
Check Before Delivery must not deliver m1 while the queue holds a smaller m2, and then gives m1
the delivery time of m2: that is the queue in order of timestamp alone, whose head goes when due.
So both look at the head and never search the queue. At w = 100 % the two orders coincide.

*The observer's time* is the highest value that it has seen on its clock. No clock is ever more than
ε behind what any clock has shown (`Guarantees`), so the highest values too differ by no more than
ε, and that is all that the proof asks of an observer's clock. While a clock that was set back comes
up again, the observer's time stands still, and nothing that was decided is decided anew. A fall by
more than ε breaks the guarantees: the observer's time then follows the clock, and what it noted of
the time before is mended like any other corruption.
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
"""Before any tick."""


class Dial(msgspec.Struct, frozen=True):
    """How long to wait, and how much of the timestamp to use."""

    wait_percent: int = 100
    """The share of the wait that perfect causal order takes: the paper's c."""
    checks_queue: bool = True
    """Check Before Delivery, else Deliver After Partial Wait."""
    elements: int | None = None
    """Use only the first k elements of kn, and ask for no more; None for all ε + 1."""
    uses_c: bool = True
    """False: the physical clock alone."""

    def __post_init__(self) -> None:
        if not 0 <= self.wait_percent <= 100 or (self.elements or 0) < 0:
            raise LocalError(
                f"no such dial: {self}", hint="wait 0 to 100 %, use 0 or more elements"
            )


PERFECT = Dial()


def dapw(wait_percent: int) -> Dial:
    """Deliver After Partial Wait."""
    return Dial(wait_percent, checks_queue=False)


def cbd(wait_percent: int, elements: int | None = None) -> Dial:
    """Check Before Delivery, with the whole timestamp or its first k elements."""
    return Dial(wait_percent, elements=elements)


def dpc1(wait_percent: int) -> Dial:
    """Check Before Delivery by physical clocks alone (OBS 6.5)."""
    return Dial(wait_percent, elements=0, uses_c=False)


def dpc2(wait_percent: int) -> Dial:
    """Check Before Delivery by r and c, without kn (OBS 6.5)."""
    return Dial(wait_percent, elements=0)


def wait_ticks(c: int, dial: Dial, guarantees: Guarantees) -> int:
    """From r to the due time, in whole ticks: a clock that only shows ticks rounds up."""
    return -(-dial.wait_percent * (c + guarantees.delta + guarantees.epsilon) // 100)


class Stamped(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="stamped"):
    """The copy of a message that the observer gets."""

    message: Message
    process: Count
    """The sender's number among the processes: it breaks ties between timestamps."""
    stamp: Stamp


class Held(msgspec.Struct, frozen=True, array_like=True):
    """A message in the queue: with the dial, all that its place there follows from."""

    ticket: int
    """Which message this observer received it as: equal timestamps go in order of arrival."""
    received: int
    """In ticks of the observer's time."""
    frame: Stamped


HELD = Table("held", MessageId, Held)
DELIVERED = Table("delivered", MessageId, int)
"""When, in ticks of the observer's time: the last δ + 2ε, after which no copy comes any more."""
FRONT = Table("front", str, tuple[int, ...])
"""One row: the largest timestamp delivered so far."""


class Disorder(msgspec.Struct):
    """What it could not order, by kind. All zero with the full wait while the guarantees hold."""

    overtaken: int = 0
    """Delivered after a message with a larger timestamp. At w < 100 % this is the price of the
    dial; with all elements of kn it is also an upper bound of the messages delivered after one of
    their effects, with fewer it sees only what those elements show."""
    late: int = 0
    """Received more than δ + ε after its r: the message took too long, or a clock is off."""
    ahead: int = 0
    """Knew a clock more than ε ahead of the observer's: taken as if it had been sent on receipt."""
    impossible: int = 0
    """c or kn outside its domain: taken as if it had been sent on receipt."""
    starved: int = 0
    """Held for longer than any message can be: the queue was corrupted, or the observer's clock was
    set back by more than ε. Delivered at once."""


class Fault(NamedTuple):
    """One message that was counted in `Disorder`."""

    kind: Literal["overtaken", "late", "ahead", "impossible", "starved"]
    message: MessageId
    now_us: int


class _Entry(NamedTuple):
    """A place in the queue: `order` then `ticket` decide it, and tickets differ."""

    order: tuple[int, ...]
    ticket: int
    due: int
    received: int
    key: tuple[int, ...]
    message: Message


class Observer:
    """Deliver every message that was received, once, in the order that the dial allows.

    With `PERFECT` and the guarantees kept: in causal order, and before the sender's clock passes
    r + δ + 3ε. After any corruption of its memory, or a clock set back by more than ε, what was in
    the queue is out within 3 (δ + 2ε) ticks, and what is received from then on is delivered as if
    nothing had happened.

    As durable it promises the same across restarts, for what it had received: nothing twice,
    nothing lost, and in the same order.
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
        """The latest faults, for the caller to look at or to empty."""
        self._tick_us = tick_us
        self._durable = durable
        self._queue: list[_Entry] = []
        self._pending: dict[MessageId, int] = {}  # received, in ticks
        self._delivered: dict[MessageId, int] = {}  # when, in ticks; the last δ + 2ε only
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
        """The observer's copy of a message."""
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
        """Something may be due for delivery."""
        if timer == TIMER:
            self._read_clock(now_us)
            self._deliver_due(out)
            self._set_timer(out)

    def restore(self, now_us: int, rows: Rows, out: Outbox[Stamped]) -> None:
        """Go on from what was saved. What fell due meanwhile is delivered in this step."""
        self._delivered = dict(rows.get(DELIVERED.name, {}))
        self._front = next(iter(rows.get(FRONT.name, {}).values()), ())
        for held in sorted(rows.get(HELD.name, {}).values(), key=lambda held: held.ticket):
            self._ticket = held.ticket
            self._hold(held, is_possible(held.frame.stamp, held.received, self.guarantees))
        # The observer's time had come to at least this, so a clock behind it was set back.
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
        """The observer's time stands still while its clock is behind it by ε or less."""
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
        """Into the queue; what cannot be true is not waited for (OBS 3.2)."""
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
            self._set_front((), out)  # no clock is that far: ours was wrong, or our memory is
        while self._queue and self._queue[0].due <= now:
            self._deliver(heapq.heappop(self._queue), out)
        if not now < self._audit_at <= now + self.guarantees.horizon:
            self._audit(out)

    def _audit(self, out: Outbox[Stamped]) -> None:
        """Deliver what is held for too long; forget what was delivered too long ago to come again.

        Once per horizon, so each message is looked at about once: a constant, not a search.
        """
        now, horizon = self._now, self.guarantees.horizon
        self._audit_at = now + horizon
        # What was received a horizon ago has been due by now, and is no longer in a sound queue.
        starved = [e for e in self._queue if not now - horizon < e.received <= now]
        self._queue = [e for e in self._queue if now - horizon < e.received <= now]
        heapq.heapify(self._queue)
        for entry in sorted(starved, key=lambda e: e[:2]):
            self._report("starved", entry.message)
            self._deliver(entry, out)
        self._pending = {e.message.id: e.received for e in self._queue}
        self._forget(now - horizon, out)

    def _forget(self, before: int, out: Outbox[Stamped]) -> None:
        """The ids of what was delivered earlier: no copy of it is under way any more."""
        old = [id for id, when in self._delivered.items() if when < before]
        if self._durable:
            out.saves += [(DELIVERED.name, id, None) for id in old]
        for id in old:
            del self._delivered[id]
        # What seems to lie ahead, after a clock was set back, counts as delivered now.
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
        # Nothing is due later than a horizon from now, whatever a corrupted entry says.
        latest = self._now + self.guarantees.horizon
        if self._queue:
            out.timers.append((TIMER, min(self._queue[0].due, latest) * self._tick_us))
        elif self._delivered:  # to be forgotten, even if nothing comes any more
            out.timers.append((TIMER, min(self._audit_at, latest) * self._tick_us))
