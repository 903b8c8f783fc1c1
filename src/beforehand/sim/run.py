"""One simulation from one specification: the unit of work of a sweep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import NDArray

from beforehand.core.base import Counters
from beforehand.core.epidemic import Epidemic, Options
from beforehand.core.order import Lifetimes
from beforehand.errors import InputError
from beforehand.mobility.trace import Trace
from beforehand.sim.clock import Clock
from beforehand.sim.collector import no_collection
from beforehand.sim.contacts import ContactWorld
from beforehand.sim.links import LinkModel
from beforehand.sim.protocols import check_protocol, make_order
from beforehand.sim.streams import generator, stream_key, unit
from beforehand.sim.workload import periodic

SECOND_US = 1_000_000


@dataclass(frozen=True)
class Spec:
    """Everything that one run depends on, besides the trace. Plain values, so that it can be
    written down, hashed and sent to another machine."""

    protocol: str
    seed: int = 0
    lifetime_us: int | None = None
    # the application: every node broadcasts periodically while it is there
    first_us: int = 20 * SECOND_US
    period_us: int = 60 * SECOND_US
    payload_bytes: int = 200
    # the network
    latency_us: int = 2_000
    bytes_per_s: int | None = 1_000_000
    loss: float = 0.0
    duplication: float = 0.0
    jitter_us: int = 0
    # the clocks: any two differ by less than skew_us
    skew_us: int = 0
    # the opportunistic layer
    announce_us: int = 1 * SECOND_US
    retry_us: int | None = None
    capacity: int | None = None
    eviction: Literal["oldest", "random"] = "oldest"
    transfer: Literal["random", "oldest", "newest"] = "random"
    frame_bytes_max: int = 16_384
    frame_messages_max: int | None = None
    # the paper to the letter, where we do otherwise
    literal_deadlines: bool = False
    literal_barriers: bool = False
    # registry sizes: sampled at most once in this time and node; None: not at all
    gauge_us: int | None = None

    def check(self) -> None:
        """Refuse what cannot be run, before anything runs."""
        check_protocol(self.protocol, self.lifetime_us)
        for name in ("loss", "duplication"):
            value = getattr(self, name)
            if not 0 <= value < 1:
                raise InputError(f"`{name}` must be in [0, 1): {value}")
        for name in (
            "lifetime_us",
            "period_us",
            "bytes_per_s",
            "retry_us",
            "capacity",
            "frame_messages_max",
        ):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise InputError(f"`{name}` must be positive: {value}")
        for name in ("first_us", "latency_us", "jitter_us", "skew_us", "announce_us"):
            if getattr(self, name) < 0:
                raise InputError(f"`{name}` must not be negative: {getattr(self, name)}")
        if (self.loss or self.duplication) and self.retry_us is None:
            raise InputError(
                "links that lose or duplicate need a retry time",
                hint="pass `--retry 5s`, so that what is not answered is repeated",
            )

    @property
    def transfer_model(self) -> str:
        """In words, to stand beside every result."""
        speed = "endless" if self.bytes_per_s is None else f"{self.bytes_per_s / 1000:g} kB/s"
        frames = f"frames of at most {self.frame_bytes_max} B, one at a time"
        if self.frame_messages_max == 1:
            frames = "one message per frame, one frame at a time"
        when = "at once" if not self.announce_us else f"every {self.announce_us / SECOND_US:g} s"
        return (
            f"latency {self.latency_us / 1000:g} ms, bandwidth {speed} per direction, {frames}, "
            f"{self.transfer} order; news announced {when}; what is under way when a contact ends "
            f"is lost"
        )


@dataclass(frozen=True)
class Result:
    """What one run left behind."""

    columns: dict[str, NDArray[Any]]
    gauges: list[tuple[int, int, str, int]]
    """t_us, node, gauge, value."""
    counters: Counters
    frames_sent: int
    frames_lost: int
    bytes_sent: int


def run_one(trace: Trace, spec: Spec) -> Result:
    """The same trace and spec give the same result, on any machine."""
    spec.check()
    lifetimes = None
    if spec.lifetime_us is not None:
        lifetimes = Lifetimes(spec.lifetime_us, spec.lifetime_us, spec.skew_us)
    options = _options(spec)
    literal: dict[str, bool] = {}
    if spec.protocol in ("causal", "delta"):
        literal = {
            "literal_deadlines": spec.literal_deadlines,
            "literal_barriers": spec.literal_barriers,
        }

    def make_core(node: int) -> Epidemic:
        order = make_order(spec.protocol, node, lifetimes, **literal)
        return Epidemic(node, order, generator(spec.seed, "transfer", node), options)

    world = ContactWorld(
        trace,
        make_core,
        periodic(
            trace,
            first_us=spec.first_us,
            period_us=spec.period_us,
            payload_bytes=spec.payload_bytes,
        ),
        seed=spec.seed,
        links=LinkModel(
            spec.latency_us, spec.bytes_per_s, spec.loss, spec.duplication, spec.jitter_us
        ),
        clocks=_clocks(trace, spec),
        gauge_us=spec.gauge_us,
    )
    with no_collection():
        world.run()
    return Result(
        world.log.columns(),
        world.gauges,
        world.counters(),
        world.frames_sent,
        world.frames_lost,
        world.bytes_sent,
    )


def _options(spec: Spec) -> Options:
    return Options(
        announce_us=spec.announce_us,
        retry_us=spec.retry_us,
        capacity=spec.capacity,
        eviction=spec.eviction,
        transfer=spec.transfer,
        frame_bytes_max=spec.frame_bytes_max,
        frame_messages_max=spec.frame_messages_max,
    )


def _clocks(trace: Trace, spec: Spec) -> dict[int, Clock]:
    if not spec.skew_us:
        return {}
    key = stream_key(spec.seed, "clocks")
    return {
        node: Clock(offset_us=int(unit(key, node) * spec.skew_us))
        for node in range(trace.nodes_count)
    }
