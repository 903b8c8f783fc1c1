"""Logical timestamps of bounded size for processes with loosely synchronised clocks (OBS 3.1).

A stamp is the paper's triple (r, c, kn):

- `r` is the physical clock of the process.
- `c` is how far the highest clock value in the event's past lies ahead of r.
- `kn` counts the events of that past at each clock value from that highest one downwards.

Time is counted in ticks, an int that the caller passes in.

The paper keeps kn[-ε .. ε - 1] around r, and compares kn[c], kn[c - 1], ... from the highest known
clock value downwards. This module keeps only those elements: `kn[i]` here is the paper's kn[c - i].
No element above index c is ever non-zero. No element further below is ever compared again, since
the highest known value never falls. The first k elements after an event depend only on the first k
elements before it and on those of the message. So a stamp cut to k elements is exactly the prefix
of the full one.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from beforehand.errors import LocalError, RemoteError
from beforehand.protocols.contract.base import Int62


class Guarantees(msgspec.Struct, frozen=True):
    """The system model ds(ε, δ) for n processes (OBS section 2)."""

    processes: int
    epsilon: int
    """ε in ticks: no clock, including the observer's, is ever more than ε behind the highest value
    that any clock has shown so far. So two clocks differ by at most ε, and a clock that is set back
    falls by at most ε. This holds if every clock stays within ε/2 of a time that never falls."""
    delta: int
    """δ in ticks: a message that is not lost has arrived when the sender's clock becomes r + δ. If
    it may arrive at any time while that clock shows r + δ, set δ + 1. Otherwise an observer whose
    clock is ε ahead would deliver an effect at r + δ + ε, just before the cause arrives."""
    events_per_tick: int = 1
    """K: no process has more events than K at one value of its clock. If a clock is set back and
    shows a value again, the events of both times count."""

    def __post_init__(self) -> None:
        if self.processes < 1 or self.epsilon < 0 or self.delta < 1 or self.events_per_tick < 1:
            raise LocalError(
                f"impossible guarantees: {self}",
                hint="n, K and δ are at least 1, ε at least 0",
            )

    @property
    def elements_full(self) -> int:
        """Return ε + 1, one more element than the paper compares.

        With c = ε the process's own tick lies ε below the top. The paper has c < ε, which is true
        only if every message takes a tick or more.
        """
        return self.epsilon + 1

    @property
    def kn_max(self) -> int:
        """Return K n, reached by a chain of events through all processes at one clock value.

        The paper has kn < n for K = 1. Its own program also counts the event itself, so n occurs.
        """
        return self.events_per_tick * self.processes

    @property
    def horizon(self) -> int:
        """Return δ + 2ε, the longest wait of a message at an observer, and the span of legal r.

        A message received at rt has r in [rt - δ - ε, rt + ε]. Hence a clock modulo B needs
        B >= δ + 2ε + 1. The paper has ε + δ + 1; a test shows two legal values that it confuses.
        """
        return self.delta + 2 * self.epsilon


class Stamp(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The timestamp of one event."""

    r: Int62
    c: Int62
    kn: tuple[Int62, ...]
    """kn[i] is the number of known events at clock value r + c - i."""

    @property
    def high(self) -> int:
        """Return the highest clock value in the event's past, including the event."""
        return self.r + self.c


def order_key(stamp: Stamp, process: int) -> tuple[int, ...]:
    """Return a tuple that compares as `less` does; the process number breaks ties."""
    return (stamp.r + stamp.c, *stamp.kn, process)


def less(e: Stamp, j: int, f: Stamp, k: int) -> bool:
    """Return whether event e of process j is ordered before event f of process k (OBS 3.1).

    With all elements, e -> f implies less(e, f). The converse is not claimed: `less` is
    a total order.
    """
    return order_key(e, j) < order_key(f, k)


def is_possible(stamp: Stamp, now: int, guarantees: Guarantees) -> bool:
    """Return whether the guarantees allow this stamp on a message received at `now`."""
    counts_max = guarantees.kn_max
    return (
        0 <= stamp.c <= guarantees.epsilon
        and stamp.high <= now + guarantees.epsilon
        and all(0 <= count <= counts_max for count in stamp.kn)
    )


class LogicalClock:
    """The logical timestamp program of one process (OBS figure 1).

    To recover from any corrupted state, call `check` once on every process. Stamps are then inside
    their domain at once. They are in causal order for events at clock values above t + δ + 3ε,
    where t is the highest clock at that moment. The reason: wrong but possible knowledge reaches
    t + ε in a process and t + δ + 2ε through messages in transit, and is compared down to ε below
    the top.

    A clock that is set back by ε or less does not change this: the process still knows the highest
    clock value, and c says how far it lies ahead.
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
        """How often the own state was outside its domain and was reset."""
        self.refused = 0
        """How many received stamps were outside their domain. The receive event is counted, but
        the stamp is ignored."""
        self.saturated = 0
        """How many events exceeded K at one tick. Their order is not guaranteed."""
        self._high = now
        # The start counts as an event at the first clock value: kn[0] = 1 in figure 1.
        self._kn = [1, *[0] * self.elements][: self.elements]

    def local(self, now: int) -> Stamp:
        """Return the stamp of an event that involves no other process."""
        self.check(now)
        self._raise_to(now)
        return self._count(now)

    def send(self, now: int) -> Stamp:
        """Return the stamp to put on a message. All its copies carry the same stamp."""
        return self.local(now)

    def receive(self, now: int, stamp: Stamp) -> Stamp:
        """Merge the stamp of a received message, and return the stamp of the receive event."""
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
        """Reset impossible state. Every event calls this; a process idle for long should, too.

        A highest clock value from the future is reset and not kept until the clocks reach it:
        until then all stamps would have that same highest value.
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
    """Encode stamps compactly: r modulo a power of two, c and the counts with minimal bit widths.

    The process is not encoded, because the message names its sender.
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
        """Return the stamp of a message received at `now`; correct while the guarantees hold."""
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
    """Stamps as bytes, for an application: `send` returns those of a message, `receive` takes them.

    read_us: the only clock that is read, so a simulation or a test can pass its own.
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
