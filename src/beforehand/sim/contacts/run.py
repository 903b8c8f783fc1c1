"""One simulation from one specification: the unit of work of a sweep."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from beforehand.errors import InputError
from beforehand.events import About
from beforehand.mobility.trace import Trace
from beforehand.protocols.contract.base import Counters
from beforehand.protocols.epidemic.epidemic import Epidemic
from beforehand.protocols.epidemic.options import Options
from beforehand.protocols.orders.order import Lifetimes
from beforehand.protocols.registry import LITERAL, check_protocol, make_order
from beforehand.sim.clock import Clock, Clocks
from beforehand.sim.collector import no_collection
from beforehand.sim.contacts.evictions import Evictions
from beforehand.sim.contacts.links import LinkModel
from beforehand.sim.contacts.traffic import PAYLOAD_BYTES_MAX, Traffic, plan_traffic
from beforehand.sim.contacts.world import ContactWorld, OnDone
from beforehand.sim.streams import KeyedDraws, stream_key, unit

SECOND_US = 1_000_000


POSITIVE = (
    *("lifetime_us", "traffic.period_us", "links.bytes_per_s", "layer.retry_us"),
    *("layer.capacity", "layer.frame_messages_max"),
)
NOT_NEGATIVE = (
    *("traffic.first_us", "links.latency_us", "links.jitter_us", "clocks.skew_us"),
    "layer.announce_us",
)


DURATIONS = tuple(path for path in (*POSITIVE, *NOT_NEGATIVE) if path.endswith("_us"))
TIME_US_MAX = 2**60
"""36,000 years: a few of them added to a time of a trace still fit in 64 bits."""


class Spec(msgspec.Struct, frozen=True):
    """Everything on which a run depends, besides the trace.

    It has only plain values, so that it can be written down, hashed and sent to another machine."""

    protocol: str
    seed: int = 0
    lifetime_us: int | None = None
    traffic: Traffic = Traffic()
    links: LinkModel = LinkModel(latency_us=2_000, bytes_per_s=1_000_000)
    layer: Options = Options(announce_us=SECOND_US)
    clocks: Clocks = Clocks()
    literal_deadlines: bool = False
    """Follow the paper to the letter, where this implementation deviates from it."""
    literal_barriers: bool = False
    gauge_us: int | None = None
    """Registry sizes are sampled at most once per this time and node; None: not at all."""

    def check(self) -> None:
        """Refuse a spec that cannot be run, before anything runs."""
        check_protocol(self.protocol, self.lifetime_us)
        for path in ("links.loss", "links.duplication"):
            value = attrgetter(path)(self)
            if not 0 <= value < 1:
                raise InputError(f"`{_name(path)}` must be in [0, 1): {value}")
        for path in POSITIVE:
            value = attrgetter(path)(self)
            if value is not None and value <= 0:
                raise InputError(f"`{_name(path)}` must be positive: {value}")
        for path in NOT_NEGATIVE:
            value = attrgetter(path)(self)
            if value < 0:
                raise InputError(f"`{_name(path)}` must not be negative: {value}")
        for path in (*DURATIONS, "traffic.payload_bytes"):
            value = attrgetter(path)(self)
            most = PAYLOAD_BYTES_MAX if path == "traffic.payload_bytes" else TIME_US_MAX
            if value is not None and value > most:
                raise InputError(f"`{_name(path)}` is too large: {value}", hint=f"at most {most}")
        if (self.links.loss or self.links.duplication) and self.layer.retry_us is None:
            raise InputError(
                "links that lose or duplicate need a retry time",
                hint="pass `--retry 5s`, so that unanswered frames are repeated",
            )

    @property
    def life_us(self) -> int | None:
        """Return how long a message can be received after its broadcast; None: until the end.

        A deadline is on the clock of its origin, and the clock of a receiver may be behind it."""
        return None if self.lifetime_us is None else self.lifetime_us + self.clocks.skew_us

    def about(self) -> About:
        """Return what the event log of the run tells about its protocol."""
        return About(
            protocol=self.protocol, lifetime_us=self.lifetime_us, skew_us=self.clocks.skew_us
        )

    @property
    def transfer_model(self) -> str:
        """Return the transfer model in words, to be printed beside every result."""
        links, layer = self.links, self.layer
        speed = "endless" if links.bytes_per_s is None else f"{links.bytes_per_s / 1000:g} kB/s"
        frames = f"frames of at most {layer.frame_bytes_max} B, one at a time"
        if layer.frame_messages_max == 1:
            frames = "one message per frame, one frame at a time"
        when = "at once" if not layer.announce_us else f"every {layer.announce_us / SECOND_US:g} s"
        return (
            f"latency {links.latency_us / 1000:g} ms, bandwidth {speed} per direction, {frames}, "
            f"{layer.transfer} order; announcements {when}; frames in flight when a contact "
            f"ends are lost"
        )


@dataclass(frozen=True, kw_only=True)
class Totals:
    """The result of a run without its event log."""

    gauges: list[tuple[int, int, str, int]]
    """t_us, node, gauge, value."""
    counters: Counters
    frames_sent: int
    frames_lost: int
    """Frames that did not arrive, for whatever reason."""
    frames_aborted: int | None
    """Those of them that were under way when their contact ended; None if the engine does not count
    them."""
    bytes_sent: int
    pasts: NDArray[np.int64]
    """Origin and seq of the message, then of the cause, for each cause that a message names."""
    evictions: NDArray[np.int64] | None
    """t_us, node, origin and seq of each eviction; None if the engine does not record them."""


@dataclass(frozen=True, kw_only=True)
class Result(Totals):
    """The result of one run."""

    columns: dict[str, NDArray[Any]]
    senders: NDArray[np.int32]
    """The node that forwarded the message, for each `receive` row."""


def run_one(trace: Trace, spec: Spec, *, on_done: OnDone | None = None) -> Result:
    """Run the simulation. The same trace and spec give the same result on any machine.

    on_done: called with the progress.
    """
    spec.check()
    lifetimes = None
    if spec.lifetime_us is not None:
        lifetimes = Lifetimes(spec.lifetime_us, spec.lifetime_us, spec.clocks.skew_us)
    literal = {name: getattr(spec, name) for name in LITERAL}

    evictions = Evictions()

    def make_core(node: int) -> Epidemic:
        order = make_order(spec.protocol, node, lifetimes, **literal)
        if spec.layer.is_bounded:
            evictions.watch(node, order, lambda: weak_world.now_us)
        return Epidemic(node, order, KeyedDraws(spec.seed, "transfer", node), spec.layer)

    world = ContactWorld(
        trace,
        make_core,
        plan_traffic(trace, spec.traffic, spec.seed).broadcasts(),
        seed=spec.seed,
        links=spec.links,
        clocks=_clocks(trace, spec),
        gauge_us=spec.gauge_us,
    )
    weak_world = weakref.proxy(world)  # the world keeps `make_core`
    with no_collection():
        world.run(on_done=on_done)
    return Result(
        columns=world.log.columns(),
        senders=np.array(world.senders, np.int32),
        gauges=world.gauges,
        counters=world.counters(),
        frames_sent=world.frames_sent,
        frames_lost=world.frames_lost,
        frames_aborted=world.frames_aborted,
        bytes_sent=world.bytes_sent,
        pasts=np.array(world.pasts, np.int64).reshape(-1, 4),
        evictions=evictions.rows(),
    )


def clock_offsets(trace: Trace, spec: Spec) -> list[int]:
    """Return how far the clock of each node is ahead, in microseconds."""
    if not spec.clocks.skew_us:
        return [0] * trace.nodes_count
    key = stream_key(spec.seed, "clocks")
    return [int(unit(key, node) * spec.clocks.skew_us) for node in range(trace.nodes_count)]


def _clocks(trace: Trace, spec: Spec) -> dict[int, Clock]:
    if not spec.clocks.skew_us:
        return {}
    return {node: Clock(offset) for node, offset in enumerate(clock_offsets(trace, spec))}


def _name(path: str) -> str:
    return path.rpartition(".")[2]
