"""Stage `events`: run each simulation as one task, which writes its own files."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import msgspec
import numpy as np
import pyarrow as pa

from beforehand.errors import InputError, list_some
from beforehand.events import BROADCAST, DELIVER, EVENTS_FILE, PASTS_FILE
from beforehand.mobility.trace import Trace
from beforehand.pipeline.contacts.positions import read_trace
from beforehand.pipeline.datasets import write_table
from beforehand.pipeline.schemas import (
    EVICTIONS,
    EVICTIONS_FILE,
    GAUGES,
    GAUGES_FILE,
    HOPS,
    HOPS_FILE,
    table_of,
    table_of_rows,
)
from beforehand.pipeline.stages import Job, Made
from beforehand.protocols.registry import find_order
from beforehand.sim.contacts.engines import play_run, prepare
from beforehand.sim.contacts.run import Result
from beforehand.sim.contacts.summary import count_reachable, measure_delays, tally_hops
from beforehand.sim.contacts.traffic import check_traffic
from beforehand.sim.log import event_table, pasts_table, write_events


class RunFacts(msgspec.Struct, frozen=True):
    """Facts about one simulation."""

    nodes: int
    contacts: int
    broadcasts: int
    deliveries: int
    frames: int
    bytes: int
    frames_aborted: int | None
    """Frames that were under way when their contact ended; None if the engine does not count
    them."""
    left_out: int
    """Broadcasts of the traffic's file at times when their source is absent."""
    reachable: int
    """The number of first receptions if every node had received all messages that were alive while
    it was present."""
    transfer_model: str
    cpu_s: float
    engine: str
    """The engine of the run: `cores`, or their compiled `twin`."""
    engine_why: str
    """Why the twin did not play it, if it was not the twin by choice."""


def simulate(job: Job) -> Made:
    """Run the job's simulation on its trace, and write events, gauges and hop counts."""
    (source,), (spec, wanted, _, engine) = job.inputs, job.spec
    trace = read_trace(source)
    watched = watched_node(trace, wanted)
    started_s = time.process_time()
    played = play_run(trace, spec, engine)
    result = played.result
    cpu_s = time.process_time() - started_s
    write_table(job.dataset.file(GAUGES_FILE), _gauge_table(job.name, watched, result))
    tally = tally_hops(result.columns, result.senders, measure_delays(result.columns))
    hops = [(job.name, made, receptions) for made, receptions in tally.items()]
    write_table(job.dataset.file(HOPS_FILE), table_of_rows(HOPS, hops))
    if result.evictions is not None:
        evicted = table_of(EVICTIONS, result.evictions.T)
        write_table(job.dataset.file(EVICTIONS_FILE), evicted)
    promise = find_order(spec.protocol).written
    log = event_table(
        job.name,
        result.columns,
        senders=result.senders,
        promise=promise,
        names=trace.names,
        about=spec.about(),
    )
    write_events(log, job.dataset.file(EVENTS_FILE))
    write_events(pasts_table(result.pasts), job.dataset.file(PASTS_FILE))
    kind = result.columns["kind"]
    broadcasts = int(np.count_nonzero(kind == BROADCAST))
    facts = RunFacts(
        nodes=trace.nodes_count,
        contacts=len(trace.contacts),
        broadcasts=broadcasts,
        deliveries=int(np.count_nonzero(kind == DELIVER)),
        frames=result.frames_sent,
        bytes=result.bytes_sent,
        left_out=max(0, len(spec.traffic.events) - broadcasts),
        frames_aborted=result.frames_aborted,
        reachable=count_reachable(result.columns, spec.life_us),
        transfer_model=spec.transfer_model,
        cpu_s=round(cpu_s, 3),
        engine=played.engine,
        engine_why=played.why,
    )
    return Made(len(kind), facts)


def check_watched(jobs: Sequence[Job]) -> None:
    """Refuse a watched node that is not in the trace, and traffic that would generate too many
    events."""
    for job in jobs:
        trace = read_trace(job.inputs[0])
        watched_node(trace, job.spec.watched)
        check_traffic(trace, job.spec.spec.traffic, where="traffic.period")
        prepare(trace, job.spec.spec, job.spec.engine, _note)


def _note(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def watched_node(trace: Trace, wanted: str | int | None) -> int:
    """Return the index of the node that the scenario names, or else of the node present longest."""
    if wanted is None:
        there_us = np.zeros(trace.nodes_count, np.int64)
        np.add.at(there_us, trace.presence[:, 0], trace.presence[:, 2] - trace.presence[:, 1])
        return int(there_us.argmax())
    if isinstance(wanted, int) and 0 <= wanted < trace.nodes_count:
        return wanted
    if wanted in trace.names:
        return trace.names.index(str(wanted))
    hint = f"`gauges.node` is an index or one of {list_some(trace.names)}"
    raise InputError(f"no node to watch: `{wanted}`", hint=hint)


def _gauge_table(run: str, watched: int, result: Result) -> pa.Table:
    rows = [(run, *row) for row in result.gauges if row[1] == watched]
    return table_of_rows(GAUGES, rows)
