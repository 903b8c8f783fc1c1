"""Stage `metrics`: compute the metrics of a run from its event log, with one task per run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from beforehand.events import BROADCAST, COLUMNS, DELIVER, EVENTS_FILE, KINDS
from beforehand.files import read_parquet
from beforehand.kernels.xxhash64 import xxhash64
from beforehand.mobility.statistics import contact_times, survival
from beforehand.mobility.trace import Ints
from beforehand.pipeline.datasets import Dataset, write_table
from beforehand.pipeline.schemas import (
    EVICTIONS,
    EVICTIONS_FILE,
    MEETINGS,
    MESSAGES,
    MESSAGES_FILE,
    NODES,
    NODES_FILE,
    QUANTILES,
    QUANTILES_FILE,
    SCATTER,
    SCATTER_FILE,
    SURVIVAL,
    names_of,
    table_of,
    table_of_rows,
)
from beforehand.pipeline.stages import Job, Made
from beforehand.sim.contacts.evictions import held_before_eviction
from beforehand.sim.contacts.summary import (
    Delays,
    count_outcomes,
    describe,
    describe_delays,
    index_messages,
    measure_delays,
)

Columns = Mapping[str, NDArray[Any]]

PERMILLE = (*range(0, 1000, 5), 999, 1000)
SCATTER_MAX, SCATTER_TOP, SCATTER_SAMPLE = 3000, 1000, 1800
"""Scatter points per run: the maximum, the number of largest latencies that are always included,
and the approximate number sampled from all latencies."""


class MetricFacts(msgspec.Struct, frozen=True):
    """The metrics of one run."""

    counts: dict[str, int]
    """The counts of `count_outcomes`."""
    spreads: dict[str, dict[str, float | None]]
    """min, max, avg and stdev of `MEASURES`, in microseconds; None without any value."""
    past_entries_avg: float | None
    evictions: int | None
    """Copies that full buffers evicted; None if the engine does not record evictions."""
    held_us_avg: float | None
    """How long nodes held these copies, on average."""


def measure_run(job: Job) -> Made:
    """Read the event log of the run, and write one file for each kind of result."""
    (events,) = job.inputs
    columns = read_columns(read_parquet(events.file(EVENTS_FILE), list(COLUMNS)))
    run, delays = events.name, measure_delays(columns)
    tables = {
        QUANTILES_FILE: find_quantiles(run, delays),
        SCATTER_FILE: sample_scatter(run, columns, delays),
        NODES_FILE: summarise_nodes(run, columns, delays),
        MESSAGES_FILE: summarise_messages(run, columns, delays),
    }
    for name, table in tables.items():
        write_table(job.dataset.file(name), table)
    evictions = read_evictions(events)
    return Made(len(columns["kind"]), summarise_run(columns, delays, evictions))


def read_evictions(events: Dataset) -> Ints | None:
    """Return the evictions of a run; None if its engine does not record them."""
    path = events.file(EVICTIONS_FILE)
    if not path.exists():
        return None
    found = read_parquet(path)
    return np.column_stack([found[name].to_numpy() for name in names_of(EVICTIONS)])


def read_columns(table: pa.Table) -> Columns:
    """Return the columns of the event log as the simulator represents them."""
    columns = {name: table[name].to_numpy() for name in COLUMNS if name != "kind"}
    kind = pc.index_in(table["kind"].cast(pa.string()), value_set=pa.array(KINDS))
    return columns | {"kind": kind.to_numpy().astype(COLUMNS["kind"])}


def summarise_run(columns: Columns, delays: Delays, evictions: Ints | None) -> MetricFacts:
    """Return the metrics of a run. evictions: rows as in `EVICTIONS`; None if not recorded."""
    past = columns["value"][columns["kind"] == BROADCAST]
    counts, spreads = count_outcomes(columns, delays), describe_delays(delays)
    past_avg = describe(past)["avg"]
    if evictions is None:
        return MetricFacts(counts, spreads, past_avg, None, None)
    held_us = held_before_eviction(columns, evictions)
    return MetricFacts(counts, spreads, past_avg, len(evictions), describe(held_us)["avg"])


def find_quantiles(run: str, delays: Delays) -> pa.Table:
    """Return the quantiles of delay and latency: for each share, the smallest value v such that at
    least this share of the values is <= v."""
    measured = {"delay": delays.delay_us, "latency": delays.latency_us}
    return table_of_rows(QUANTILES, [(run, *row) for row in _quantiles(measured)])


def find_meetings(contacts: Ints) -> pa.Table:
    """Return the quantiles of contact durations and of inter-contact times.

    contacts: rows of a, b, up_us, down_us; the contacts of one pair do not overlap.
    """
    durations_us, between_us = contact_times(contacts)
    measured = {"duration": durations_us, "between": between_us}
    return table_of_rows(MEETINGS, list(_quantiles(measured)))


def find_survival(contacts: Ints) -> pa.Table:
    """Return the complementary distributions of contact durations and of inter-contact times."""
    measured = dict(zip(("duration", "between"), contact_times(contacts), strict=True))
    rows = [(name, *point) for name, values in measured.items() for point in survival(values)]
    return table_of_rows(SURVIVAL, rows)


def _quantiles(measured: Mapping[str, Ints]) -> Iterator[tuple[str, float, int]]:
    for metric, values in measured.items():
        ordered = np.sort(values)
        for permille in PERMILLE if len(ordered) else ():
            # Integer arithmetic, because 0.995 * 1000 is not exactly 995 in floating point.
            rank = max(1, -(-permille * len(ordered) // 1000))
            yield metric, permille / 1000, int(ordered[rank - 1])


def sample_scatter(run: str, columns: Columns, delays: Delays) -> pa.Table:
    """Return the largest latencies plus a sample of all latencies. The sample is deterministic."""
    rows, size = delays.delivered, len(delays.delivered)
    # Sample by a hash instead of random draws, so that the row order does not affect the sample.
    mixed = xxhash64(*(columns[name][rows] for name in ("node", "origin", "seq")))
    order = np.lexsort((mixed, delays.latency_us))
    is_chosen = mixed[order] % max(1, size) < SCATTER_SAMPLE
    is_chosen[max(0, size - SCATTER_TOP) :] = True
    kept = order[is_chosen][-SCATTER_MAX:]
    delay_us, latency_us = (delays.age_us - delays.latency_us)[kept], delays.latency_us[kept]
    shown = np.lexsort((latency_us, delay_us))
    return table_of(SCATTER, ([run] * len(kept), delay_us[shown], latency_us[shown]))


def summarise_nodes(run: str, columns: Columns, delays: Delays) -> pa.Table:
    """Return one row for each node that broadcast, received or delivered."""
    kind, node = columns["kind"], columns["node"]
    size = int(node.max(initial=-1)) + 1
    rows = (np.flatnonzero(kind == BROADCAST), delays.received, np.flatnonzero(kind == DELIVER))
    counts = [np.bincount(node[chosen], minlength=size) for chosen in rows]
    shown = np.flatnonzero(sum(counts))
    taken = node[delays.delivered]
    averages = (
        _exact_means(node[delays.received], delays.delay_us, shown),
        _exact_means(taken, delays.age_us - delays.latency_us, shown),
        _exact_means(taken, delays.latency_us, shown),
        _exact_means(taken, delays.age_us, shown),
    )
    named = ([run] * len(shown), shown.astype(np.int32))
    return table_of(NODES, (*named, *(count[shown] for count in counts), *averages))


def summarise_messages(run: str, columns: Columns, delays: Delays) -> pa.Table:
    """Return one row per message in order of time: how many nodes received and delivered it, and
    the time until the last of them did."""
    kind, t_us = columns["kind"], columns["t_us"]
    message, broadcast_rows = index_messages(columns)
    counts, latest = [], []
    for rows in (delays.received, np.flatnonzero(kind == DELIVER)):
        counts.append(np.bincount(message[rows], minlength=len(broadcast_rows)))
        last_us = np.zeros(len(broadcast_rows), np.int64)
        np.maximum.at(last_us, message[rows], t_us[rows] - t_us[broadcast_rows][message[rows]])
        latest.append(np.ma.MaskedArray(last_us, counts[-1] == 0))
    origin, seq, value = (columns[name][broadcast_rows] for name in ("origin", "seq", "value"))
    order = np.lexsort((seq, origin, t_us[broadcast_rows]))
    known = (origin, seq, t_us[broadcast_rows], value, *counts, *latest)
    return table_of(MESSAGES, ([run] * len(order), *(column[order] for column in known)))


def _exact_means(group: Ints, values: Ints, shown: Ints) -> NDArray[np.float64]:
    """Return the mean per group, masked for empty groups. Integer sums do not depend on the row
    order."""
    size = int(max(group.max(initial=-1), shown.max(initial=-1))) + 1
    sums = np.zeros(size, np.int64)
    np.add.at(sums, group, values)
    counts = np.bincount(group, minlength=size)
    is_empty = counts[shown] == 0
    return np.ma.MaskedArray(sums[shown] / np.maximum(counts[shown], 1), is_empty)
