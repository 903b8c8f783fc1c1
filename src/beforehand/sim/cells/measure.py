"""The measures of MOB section 5 and MOB-TR section V, from one run of the world of cells."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from beforehand.events import BROADCAST, DELIVER, DROP, RECEIVE
from beforehand.kernels.verify.causality import TWICE, find_violations
from beforehand.kernels.verify.index import index_log
from beforehand.protocols.mobile.systems import SYSTEMS
from beforehand.sim.cells.result import CellsRun, Columns, Sample
from beforehand.sim.cells.spec import SECOND_US, CellsSpec
from beforehand.sim.cells.tally import KINDS, NETWORKS, RADIO, WIRE

Longs = NDArray[np.int64]
Bools = NDArray[np.bool_]


class FrameFlow(msgspec.Struct, frozen=True):
    """The traffic over one network for one purpose, and its outcome."""

    network: str
    kind: str
    frames: int
    control_bytes: int
    payload_bytes: int
    header_bytes: int
    to_station: tuple[int, int, int] = (0, 0, 0)
    """By radio, at the intended station: received, lost in a collision, and lost because the
    station was transmitting itself."""
    to_host: tuple[int, int, int] = (0, 0, 0)
    """The same at each intended host."""


class Break(msgspec.Struct, frozen=True):
    """The outage of a host: in whose cell (below 0: in none), and from when to when."""

    node: int
    station: int
    from_s: float
    to_s: float


class Moment(msgspec.Struct, frozen=True):
    """Buffers at one instant, and the events since the previous one."""

    t_s: float
    kept: tuple[int, ...]
    """The number of messages in the send buffer of each station."""
    kept_max: int
    kept_avg: float
    kept_rest_avg: float
    """Average without the fullest station (MOB figures 9 and 10). Next: the standard deviation."""
    kept_rest_deviation: float
    early_avg: float
    """Messages in the receive buffer of a host."""
    early_max: int
    said_avg: float
    """Messages in the send buffer of a host."""
    radio_frames: int
    radio_bytes: int
    """With headers."""
    wire_frames: int
    wire_bytes: int
    received: int
    """Radio receptions at the intended receiver. The next field is those that it lost."""
    lost: int
    deliveries: int
    delay_us_avg: float | None


class CellsMeasure(msgspec.Struct, frozen=True):
    """The measures of one run. Delays are from broadcast to delivery, at the origin too."""

    system: str
    seed: int
    stations: int
    hosts: int
    rate_per_s: float
    mac: str
    bits_per_s: int
    duration_us: int
    broadcasts: int
    deliveries: int
    receptions: int
    """New messages at hosts and stations."""
    violations: int
    """Deliveries before a cause, or of a message that no node had broadcast."""
    duplicates: int
    missing: int
    """Deliveries that a steady host should have made and did not, of messages broadcast between the
    warm-up and `settle_us` before the end.

    A steady host is in a cell since the warm-up, did not fail or leave, and was always in some
    cell. If the origin of a message is not steady, or reported the message as lost, the message
    counts only once some host has delivered it, and from then on."""
    missing_at_returned: int
    """The same for hosts that failed, or were out of all cells, and were back permanently by
    `settle_us` before the end."""
    under_way: int
    """Deliveries that steady hosts did not make, of messages broadcast later than that."""
    dropped: int
    """Messages that their hosts reported as lost."""
    thrown: int
    """Radio frames that never started: the queue of their node was full."""
    handoffs: int
    delay_us_avg: float | None
    delay_us_p50: float | None
    delay_us_p95: float | None
    delay_us_p99: float | None
    delay_us_max: int | None
    delay_us_thirds: tuple[float | None, float | None, float | None]
    """Averages over messages that count for `missing`, by the time of their broadcast."""
    sent_per_delivery: float | None
    """Radio frames per delivery."""
    lost_percent: float | None
    """The loss at intended radio receivers. The next field: at all nodes in range."""
    heard_lost_percent: float | None
    kept_avg: float
    """The average over stations and samples since the end of the warm-up."""
    kept_max: int
    early_avg: float
    early_max: int
    said_avg: float
    outages: tuple[Break, ...]
    flows: tuple[FrameFlow, ...]
    series: tuple[Moment, ...]


class Deliveries(NamedTuple):
    """Messages by their number in the order of broadcasts, and the deliveries of each."""

    origin: Longs
    broadcast_us: Longs
    is_dropped: Bools
    node: Longs
    """The node of each delivery of a message that was broadcast, in order. The next two fields are
    its message and its time."""
    message: Longs
    t_us: Longs

    @property
    def delay_us(self) -> Longs:
        return self.t_us - self.broadcast_us[self.message]


def measure_cells(spec: CellsSpec, seed: int, result: CellsRun) -> CellsMeasure:
    """Return the measures of one run. The verifier's kernel judges its deliveries."""
    events = result.events
    deliveries = _read_deliveries(events)
    last = result.samples[-1]
    kinds = _violations(events)
    header = SYSTEMS[spec.system].radio_header_bytes
    flows = tuple(_flows(last, header, spec.wiring.header_bytes))
    delays = deliveries.delay_us
    count = int((events["kind"] == DELIVER).sum())
    radio_frames = int(last.sent[RADIO, :, 0].sum())
    return CellsMeasure(
        system=spec.system,
        seed=seed,
        stations=spec.stations,
        hosts=spec.hosts,
        rate_per_s=spec.rate_per_s,
        mac=spec.radio.mac,
        bits_per_s=spec.radio.bits_per_s,
        duration_us=spec.duration_us,
        broadcasts=len(deliveries.origin),
        deliveries=count,
        receptions=int((events["kind"] == RECEIVE).sum()),
        violations=int((kinds != TWICE).sum()),
        duplicates=int((kinds == TWICE).sum()),
        **_count_missing(spec, result, deliveries),
        dropped=int(deliveries.is_dropped.sum()),
        thrown=result.thrown,
        handoffs=result.handoffs,
        outages=tuple(
            Break(o.node, o.station, o.from_us / SECOND_US, o.to_us / SECOND_US)
            for o in result.outages
        ),
        delay_us_avg=_mean(delays),
        delay_us_p50=_quantile(delays, 0.5),
        delay_us_p95=_quantile(delays, 0.95),
        delay_us_p99=_quantile(delays, 0.99),
        delay_us_max=int(delays.max()) if len(delays) else None,
        delay_us_thirds=_thirds(spec, deliveries),
        sent_per_delivery=radio_frames / count if count else None,
        lost_percent=_lost_percent(last.outcomes.sum(axis=(0, 1))),
        heard_lost_percent=_lost_percent(last.air_outcomes),
        **_buffers(spec, result.samples),
        flows=flows,
        series=tuple(_series(spec, result.samples, deliveries, header)),
    )


def _violations(events: Columns) -> NDArray[np.int8]:
    kind = events["kind"]
    rows = np.flatnonzero((kind == BROADCAST) | (kind == DELIVER))
    node, origin, seq = (events[name][rows] for name in ("node", "origin", "seq"))
    return find_violations(index_log(node, kind[rows] == BROADCAST, origin, seq)).kind


def _read_deliveries(events: Columns) -> Deliveries:
    kind = events["kind"]
    broadcasts = np.flatnonzero(kind == BROADCAST)
    width = int(events["seq"].max(initial=0)) + 1
    keys = events["origin"].astype(np.int64) * width + events["seq"]
    order = np.argsort(keys[broadcasts])
    ordered = keys[broadcasts][order]

    def find(rows: Longs) -> tuple[Longs, Longs]:
        """Return the rows that concern a broadcast message, and the numbers of these messages."""
        if not len(ordered):
            return rows[:0], rows[:0]
        at = np.minimum(np.searchsorted(ordered, keys[rows]), len(ordered) - 1)
        found = ordered[at] == keys[rows]
        return rows[found], order[at[found]]

    rows, message = find(np.flatnonzero(kind == DELIVER))
    is_dropped = np.zeros(len(broadcasts), np.bool_)
    is_dropped[find(np.flatnonzero(kind == DROP))[1]] = True
    return Deliveries(
        origin=events["origin"][broadcasts].astype(np.int64),
        broadcast_us=events["t_us"][broadcasts],
        is_dropped=is_dropped,
        node=events["node"][rows].astype(np.int64),
        message=message,
        t_us=events["t_us"][rows],
    )


def _count_missing(spec: CellsSpec, result: CellsRun, found: Deliveries) -> dict[str, int]:
    absent = np.zeros(spec.nodes, np.bool_)
    late = np.zeros(spec.nodes, np.bool_)  # or never, or not permanently
    until_us = spec.duration_us - spec.settle_us
    absences = [(outage.node, outage.to_us) for outage in result.outages]
    absences += list(result.away.items())
    absent[[node for node, _ in absences]] = True
    late[[node for node, to_us in absences if to_us > until_us]] = True
    late[[spec.stations + host for host, _ in spec.leaves]] = True
    hosts = range(spec.stations, spec.nodes)
    late[[n for n in hosts if result.entered.get(n, spec.duration_us) > spec.warm_up_us]] = True
    late[: spec.stations] = True
    steady = ~absent & ~late
    first_us = np.full(len(found.origin), spec.duration_us, np.int64)
    np.minimum.at(first_us, found.message, found.t_us)
    is_owed = steady[found.origin] & ~found.is_dropped
    is_somewhere = first_us < spec.duration_us
    counts = is_somewhere | is_owed
    counts &= found.broadcast_us >= spec.warm_up_us
    # A message broadcast by a host out of all cells is sent only when the host is back. So its time
    # counts from the first delivery.
    is_last = np.where(is_owed, found.broadcast_us, first_us) >= until_us
    pairs = np.unique(found.message * spec.nodes + found.node)  # a delivery counts once
    message, node = np.divmod(pairs, spec.nodes)

    def missing(messages: Bools, nodes: Bools) -> int:
        made = int((messages[message] & nodes[node]).sum())
        return int(messages.sum()) * int(nodes.sum()) - made

    return {
        "missing": missing(counts & ~is_last, steady),
        "missing_at_returned": missing(counts & ~is_last, absent & ~late),
        "under_way": missing(counts & is_last, steady),
    }


def _thirds(spec: CellsSpec, found: Deliveries) -> tuple[float | None, float | None, float | None]:
    start_us, until_us = spec.warm_up_us, spec.duration_us - spec.settle_us
    edges = [start_us + (until_us - start_us) * k // 3 for k in range(4)]
    at_us, delays = found.broadcast_us[found.message], found.delay_us
    first, middle, last = (
        _mean(delays[(at_us >= low) & (at_us < high)]) for low, high in pairwise(edges)
    )
    return first, middle, last


def _flows(last: Sample, radio_header: int, wire_header: int) -> Iterator[FrameFlow]:
    headers = (radio_header, wire_header)
    for network, network_name in enumerate(NETWORKS):
        for kind, kind_name in enumerate(KINDS):
            frames, control, payload = last.sent[network, kind].tolist()
            outcomes = last.outcomes[kind].tolist() if network == RADIO else [(0, 0, 0)] * 2
            yield FrameFlow(
                *(network_name, kind_name, frames, control, payload, frames * headers[network]),
                to_station=tuple(outcomes[0]),
                to_host=tuple(outcomes[1]),
            )


def _buffers(spec: CellsSpec, samples: list[Sample]) -> dict[str, Any]:
    chosen = [sample for sample in samples if sample.t_us >= spec.warm_up_us] or samples[-1:]
    kept = np.concatenate([sample.kept for sample in chosen])
    early = np.concatenate([sample.early for sample in chosen] + [[0]])[:-1]
    unacked = np.concatenate([sample.unacked for sample in chosen] + [[0]])[:-1]
    return {
        "kept_avg": float(kept.mean()),
        "kept_max": int(kept.max()),
        "early_avg": float(early.mean()) if len(early) else 0.0,
        "early_max": int(early.max(initial=0)),
        "said_avg": float(unacked.mean()) if len(unacked) else 0.0,
    }


def _series(
    spec: CellsSpec, samples: list[Sample], found: Deliveries, radio_header: int
) -> Iterator[Moment]:
    headers = np.array([radio_header, spec.wiring.header_bytes])
    before, before_us = samples[0], 0
    edges = np.searchsorted(found.t_us, [s.t_us for s in samples])
    delays, first = found.delay_us, 0
    for index, (sample, end) in enumerate(zip(samples, edges.tolist(), strict=True)):
        if sample.t_us == before_us:
            continue
        zero = index == 0
        sent = (sample.sent - (0 if zero else before.sent)).sum(axis=1)
        outcomes = (sample.outcomes - (0 if zero else before.outcomes)).sum(axis=(0, 1))
        size = sent[:, 1] + sent[:, 2] + headers * sent[:, 0]
        kept = np.array(sample.kept)
        rest = np.delete(kept, kept.argmax()) if len(kept) > 1 else kept
        yield Moment(
            t_s=sample.t_us / SECOND_US,
            kept=tuple(sample.kept),
            kept_max=int(kept.max()),
            kept_avg=float(kept.mean()),
            kept_rest_avg=float(rest.mean()),
            kept_rest_deviation=float(rest.std()),
            early_avg=float(np.mean(sample.early)) if sample.early else 0.0,
            early_max=max(sample.early, default=0),
            said_avg=float(np.mean(sample.unacked)) if sample.unacked else 0.0,
            radio_frames=int(sent[RADIO, 0]),
            radio_bytes=int(size[RADIO]),
            wire_frames=int(sent[WIRE, 0]),
            wire_bytes=int(size[WIRE]),
            received=int(outcomes[0]),
            lost=int(outcomes[1:].sum()),
            deliveries=end - first,
            delay_us_avg=_mean(delays[first:end]),
        )
        before, before_us, first = sample, sample.t_us, end


def _mean(values: NDArray[Any]) -> float | None:
    return float(values.mean()) if len(values) else None


def _quantile(values: NDArray[Any], q: float) -> float | None:
    return float(np.quantile(values, q)) if len(values) else None


def _lost_percent(outcomes: NDArray[Any]) -> float | None:
    total = int(outcomes.sum())
    return 100.0 * float(outcomes[1:].sum()) / total if total else None
