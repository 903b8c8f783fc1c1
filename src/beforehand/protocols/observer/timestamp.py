"""Logical timestamps of bounded size for processes with loosely synchronised clocks (OBS 3.1).

A stamp is the paper's triple (r, c, kn): the physical clock `r` of the process, how far the highest
clock value in the event's past lies ahead of it (`c`), and how many events of that past happened at
each of the clock values below that highest one. Time is counted in ticks, an int that is passed in.

The paper keeps kn[-ε .. ε - 1] around r, and compares kn[c], kn[c - 1], ... from the highest known
clock value downwards. We keep just those: `kn[i]` here is the paper's kn[c - i]. Nothing above
index c is ever non-zero, and nothing that far below is ever compared again, since the highest known
value never falls. The first k elements after an event follow from the first k elements before it
and those of the message, so a stamp cut to k elements is exactly the prefix of the full one.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from beforehand.errors import LocalError, RemoteError
from beforehand.protocols.contract.base import Int62


class Guarantees(msgspec.Struct, frozen=True):
    """What the system promises (OBS section 2): ds(ε, δ) for n processes."""

    processes: int
    epsilon: int
    """ε in ticks: no clock, the observer's included, is ever more than this behind what any clock
    has shown so far. So two clocks differ by no more than this, and a clock that is set back falls
    by no more. It holds where every clock keeps within ε/2 of a time that never falls."""
    delta: int
    """δ in ticks: a message that is not lost is there the moment the sender's clock becomes r + δ.
    Where it may come at any time while that clock shows r + δ, give δ + 1: an observer whose clock
    is ε ahead would else deliver an effect at r + δ + ε, just before the cause comes in."""
    events_per_tick: int = 1
    """K: no process has more events than this at one value of its clock. A clock that was set back
    shows a value again: both times count."""

    def __post_init__(self) -> None:
        if self.processes < 1 or self.epsilon < 0 or self.delta < 1 or self.events_per_tick < 1:
            raise LocalError(
                f"impossible guarantees: {self}",
                hint="n, K and δ are at least 1, ε at least 0",
            )

    @property
    def elements_full(self) -> int:
        """ε + 1, one more than the paper compares: with c = ε the own tick lies ε below the top.

        The paper has c < ε, which is true only where every message takes a tick or more.
        """
        return self.epsilon + 1

    @property
    def kn_max(self) -> int:
        """K n, reached by a chain of events through all processes at one clock value.

        The paper has kn < n for K = 1; its own program counts the event itself too, so n occurs.
        """
        return self.events_per_tick * self.processes

    @property
    def horizon(self) -> int:
        """δ + 2ε: no message waits longer than this at an observer; also the span of legal r.

        A message is received at rt with r in [rt - δ - ε, rt + ε]. Hence a clock modulo B needs
        B >= δ + 2ε + 1 where the paper has ε + δ + 1 (a test shows two legal values it confuses).
        """
        return self.delta + 2 * self.epsilon


class Stamp(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The timestamp of one event."""

    r: Int62
    c: Int62
    kn: tuple[Int62, ...]
    """kn[i]: events known at clock value r + c - i."""

    @property
    def high(self) -> int:
        """The highest clock value in the event's past, the event included."""
        return self.r + self.c


def order_key(stamp: Stamp, process: int) -> tuple[int, ...]:
    """Tuples that compare as `less` does: the process breaks what would be a tie."""
    return (stamp.r + stamp.c, *stamp.kn, process)


def less(e: Stamp, j: int, f: Stamp, k: int) -> bool:
    """Whether event e of process j is ordered before event f of process k (OBS 3.1).

    With all elements, e -> f implies less(e, f). The converse is not claimed: it is a total order.
    """
    return order_key(e, j) < order_key(f, k)


def is_possible(stamp: Stamp, now: int, guarantees: Guarantees) -> bool:
    """Whether the guarantees allow this stamp on a message received at `now`."""
    counts_max = guarantees.kn_max
    return (
        0 <= stamp.c <= guarantees.epsilon
        and stamp.high <= now + guarantees.epsilon
        and all(0 <= count <= counts_max for count in stamp.kn)
    )


class LogicalClock:
    """The logical timestamp program of one process (OBS figure 1).

    From any corrupted state, call `check` once on every process: stamps are then inside their
    domain at once, and in causal order for events at clock values above t + δ + 3ε, where t is the
    highest clock at that moment. For knowledge that is wrong but possible reaches t + ε in a
    process, t + δ + 2ε through messages under way, and is compared down to ε below the top.

    A clock that is set back by ε or less changes nothing of this: the highest clock value stays
    known, and c says how far it lies ahead.
    """

    def __init__(
        self, process: int, guarantees: Guarantees, *, elements: int | None = None, now: int = 0
    ) -> None:
        self.process = process
        self.guarantees = guarantees
        self.elements = guarantees.elements_full if elements is None else elements
        if not 0 <= self.elements <= guarantees.elements_full:
            raise LocalError(
                f"{elements} kn elements do not exist",
                where=f"process {process}",
                hint=f"choose 0 to {guarantees.elements_full} for ε = {guarantees.epsilon}",
            )
        self.resets = 0
        """Own state that was outside its domain."""
        self.refused = 0
        """Received stamps that were outside their domain: counted as events, not believed."""
        self.saturated = 0
        """Events beyond K at one tick: their order is not guaranteed."""
        self._high = now
        # The start counts as an event at the first clock value: kn[0] = 1 in figure 1.
        self._kn = [1, *[0] * self.elements][: self.elements]

    def local(self, now: int) -> Stamp:
        """The stamp of an event that touches no other process."""
        self.check(now)
        self._raise_to(now)
        return self._count(now)

    def send(self, now: int) -> Stamp:
        """The stamp to put on a message; one for all its copies."""
        return self.local(now)

    def receive(self, now: int, stamp: Stamp) -> Stamp:
        """The stamp of the receive event, once what the message knew is known here."""
        if len(stamp.kn) != self.elements:
            raise RemoteError(
                f"a stamp of {len(stamp.kn)} kn elements where {self.elements} are agreed",
                where=f"process {self.process}",
                hint="give every process the same `elements`",
            )
        self.check(now)
        self._raise_to(now)
        if is_possible(stamp, now, self.guarantees):
            self._learn(stamp)
        else:
            self.refused += 1
        return self._count(now)

    def check(self, now: int) -> None:
        """Reset what cannot be true. Every event does it; a process idle for long should too.

        A value from the future is not waited for: until the clocks reach it, it would tie all
        stamps to itself.
        """
        counts_max = self.guarantees.kn_max
        if self._high > now + self.guarantees.epsilon or not all(
            0 <= count <= counts_max for count in self._kn
        ):
            self._high = now
            self._kn = [0] * self.elements
            self.resets += 1

    def _raise_to(self, high: int) -> None:
        if high > self._high:
            gap = min(high - self._high, self.elements)
            self._kn = [0] * gap + self._kn[: self.elements - gap]
            self._high = high

    def _learn(self, stamp: Stamp) -> None:
        self._raise_to(stamp.high)
        gap = self._high - stamp.high
        for i in range(gap, self.elements):
            self._kn[i] = max(self._kn[i], stamp.kn[i - gap])

    def _count(self, now: int) -> Stamp:
        c = self._high - now
        if c < self.elements:
            if self._kn[c] < self.guarantees.kn_max:
                self._kn[c] += 1
            else:
                self.saturated += 1
        return Stamp(now, c, tuple(self._kn))


class StampCodec:
    """Stamps as few bytes: r modulo a power of two, c and each count in as many bits as they need.

    The process is not encoded: a message says who sent it.
    """

    def __init__(self, guarantees: Guarantees, *, elements: int | None = None) -> None:
        self.guarantees = guarantees
        self.elements = guarantees.elements_full if elements is None else elements
        self._r_bits = guarantees.horizon.bit_length()  # B = 2 ** bits > δ + 2ε
        self._c_bits = guarantees.epsilon.bit_length()
        self._kn_bits = guarantees.kn_max.bit_length()
        self.size_bits = self._r_bits + self._c_bits + self.elements * self._kn_bits
        self.size_bytes = (self.size_bits + 7) // 8

    def encode(self, stamp: Stamp) -> bytes:
        packed = 0
        for count in reversed(stamp.kn):
            packed = packed << self._kn_bits | count
        packed = packed << self._c_bits | stamp.c
        packed = packed << self._r_bits | stamp.r & ((1 << self._r_bits) - 1)
        return packed.to_bytes(self.size_bytes, "little")

    def decode(self, data: bytes, now: int) -> Stamp:
        """The stamp of a message received at `now`; right whenever the guarantees hold."""
        if len(data) != self.size_bytes:
            raise RemoteError(
                f"a stamp of {len(data)} bytes where {self.size_bytes} are agreed",
                hint="give every process the same guarantees and `elements`",
            )
        packed = int.from_bytes(data, "little")
        earliest = now - self.guarantees.delta - self.guarantees.epsilon
        r = earliest + ((packed - earliest) & ((1 << self._r_bits) - 1))
        packed >>= self._r_bits
        c = packed & ((1 << self._c_bits) - 1)
        packed >>= self._c_bits
        mask = (1 << self._kn_bits) - 1
        return Stamp(r, c, tuple(packed >> i * self._kn_bits & mask for i in range(self.elements)))


class StampClock:
    """For an application: `send()` gives the bytes to put on a message, `receive` takes them.

    `read_us` is the only clock it knows, so a simulation or a test hands in its own.
    """

    def __init__(
        self,
        process: int,
        guarantees: Guarantees,
        *,
        tick_us: int,
        read_us: Callable[[], int],
        elements: int | None = None,
    ) -> None:
        self._read_us = read_us
        self._tick_us = tick_us
        self.codec = StampCodec(guarantees, elements=elements)
        self.clock = LogicalClock(process, guarantees, elements=elements, now=self._now())

    def send(self) -> bytes:
        return self.codec.encode(self.clock.send(self._now()))

    def receive(self, stamp: bytes) -> None:
        now = self._now()
        self.clock.receive(now, self.codec.decode(stamp, now))

    def _now(self) -> int:
        return self._read_us() // self._tick_us
