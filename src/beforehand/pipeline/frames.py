"""Simulate and verify within a Spark program: DataFrames in, DataFrames out, one group per run.

Each row carries the promise of its run and the run's number of events. The verifier needs both to
reach a correct verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from beforehand.errors import InputError
from beforehand.events import OPTIONAL_COLUMNS, About, metadata_of
from beforehand.mobility.trace import Ints, make_trace
from beforehand.pipeline.schemas import CONTACTS, EVENTS, arrow_schema, names_of, table_of_rows
from beforehand.protocols.registry import find_order
from beforehand.sim.contacts.run import Spec, run_one
from beforehand.sim.contacts.traffic import check_traffic
from beforehand.sim.log import event_table
from beforehand.spark.executors import same_code
from beforehand.verify.event_log import logs_of
from beforehand.verify.verdict import judge

RUN_EVENTS = f"{EVENTS}, promise string, events bigint"
NAMED_RUN_EVENTS = f"{RUN_EVENTS}, node_name string, origin_name string, sender_name string"
RUN_VERDICTS = (
    "run string, verdict string, reason string, promise string, broadcasts bigint,"
    " deliveries bigint, late bigint, twice bigint, unknown bigint"
)
IS_STAY = "is_stay"
NODE_MAX = 2**31 - 1
"""The highest node number that fits into the column `node` of an event log."""
SPREAD = 4
"""Partitions per run, so that few runs share a partition and have to wait for each other."""


def simulate_runs(
    contacts: DataFrame, specs: Mapping[str, Spec], *, presence: DataFrame | None = None
) -> DataFrame:
    """Return the events of every run, all on the same contacts; columns as in `RUN_EVENTS`.

    contacts: columns `a`, `b`, `up_us`, `down_us`; all nodes are those in `a` and `b`. Times are
    whole numbers. Nodes are whole numbers, or names: then the columns `node_name`, `origin_name`
    and `sender_name` follow, and `node`, `origin` and `sender` are the places in the sorted names.
    specs: one specification per run, by the run's name.
    presence: `node`, `up_us`, `down_us`. Without it every node is present from the first to the
    last instant of the contacts.

    Evaluation is lazy: Spark simulates only when an action asks for the rows.
    """
    for spec in specs.values():
        spec.check()
    if not specs:
        raise InputError("no run to simulate", hint="pass a spec for each, by its name")
    is_named = _is_named(contacts, ("a", "b"), presence)
    rows = _columns(contacts, {name: name for name in names_of(CONTACTS)}, is_named)
    # An explicit flag, because an empty `b` could also be a faulty contact.
    rows = rows.withColumn(IS_STAY, F.lit(False))
    if presence is not None:
        there = {"node": "a", "up_us": "up_us", "down_us": "down_us"}
        stays = _columns(presence, there, is_named).withColumn(IS_STAY, F.lit(True))
        rows = rows.unionByName(stays, allowMissingColumns=True)
    runs = F.explode(F.array(*(F.lit(run) for run in specs)))
    spread = rows.withColumn("run", runs).repartition(SPREAD * len(specs), "run")
    return spread.groupBy("run").applyInArrow(
        _simulation(dict(specs), presence is not None, is_named),
        NAMED_RUN_EVENTS if is_named else RUN_EVENTS,
    )


def verify_runs(events: DataFrame) -> DataFrame:
    """Return the verdict on every run; columns as in `RUN_VERDICTS`.

    events: rows of event logs, of any number of runs. The columns `promise` and `events` are
    optional. Without `promise` a run is held to causal order. Without `events` a log that was cut
    off at its end cannot be detected. A run without a row has no verdict.
    """
    wanted = names_of(RUN_EVENTS)
    needed = [name for name in names_of(EVENTS) if name not in OPTIONAL_COLUMNS]
    if missing := [name for name in needed if name not in events.columns]:
        raise _no_columns(missing, events)
    rows = events.select(*(name for name in wanted if name in events.columns))
    return rows.groupBy("run").applyInArrow(_judgement(), RUN_VERDICTS)


def _simulation(
    specs: dict[str, Spec], has_stays: bool, is_named: bool
) -> Callable[[pa.Table], pa.Table]:
    run_here = same_code(_simulate_named if is_named else _simulate)

    def simulate(rows: pa.Table) -> pa.Table:
        run = rows["run"][0].as_py()
        made: pa.Table = run_here(run, specs[run], rows, has_stays)
        return made

    return simulate


def _simulate_named(run: str, spec: Spec, rows: pa.Table, has_stays: bool) -> pa.Table:
    """Number the nodes in the order of their names, simulate, and add the names to the events."""
    ends = {name: rows[name].to_pylist() for name in ("a", "b")}
    stays = rows[IS_STAY].to_pylist()
    if any(
        a is None or (b is None and not s) for a, b, s in zip(*ends.values(), stays, strict=True)
    ):
        raise InputError("empty fields among the contacts", hint="leave such rows out")
    known = sorted({str(node) for end in ends.values() for node in end if node is not None})
    number: dict[Any, int] = {name: place for place, name in enumerate(known)}
    for name, end in ends.items():
        numbers = pa.array([number.get(node) for node in end], pa.int64())
        rows = rows.set_column(rows.column_names.index(name), name, numbers)
    events = _simulate(run, spec, rows, has_stays, known)
    called = np.array([*known, None], object)  # -1 is the last one
    for name in ("node", "origin", "sender"):
        column = events[name]
        places = pc.coalesce(column, pa.scalar(-1, column.type)).to_numpy()
        events = events.append_column(f"{name}_name", pa.array(called[places], pa.string()))
    return events.cast(arrow_schema(NAMED_RUN_EVENTS))


def _simulate(
    run: str, spec: Spec, rows: pa.Table, has_stays: bool, names: Sequence[str] | None = None
) -> pa.Table:
    there = _matrix(rows.filter(rows[IS_STAY]), ("a", "up_us", "down_us"))
    met = _matrix(rows.filter(pc.invert(rows[IS_STAY])), names_of(CONTACTS))
    _check_rows(met, there, has_stays)
    # The simulator numbers its nodes from 0; the caller's rows may use any node numbers.
    nodes = np.unique(np.concatenate([met[:, 0], met[:, 1], there[:, 0]]))
    met[:, :2] = np.searchsorted(nodes, met[:, :2])
    there[:, 0] = np.searchsorted(nodes, there[:, 0])
    called = [names[node] if names else str(node) for node in nodes.tolist()]
    trace = make_trace(called, met, there if has_stays else None)
    check_traffic(trace, spec.traffic, where=f"run `{run}`")
    result = run_one(trace, spec)
    columns = result.columns
    size, origin = len(columns["kind"]), columns["origin"]
    columns["node"] = nodes[columns["node"]].astype(np.int32)
    columns["origin"] = np.where(origin < 0, origin, nodes[origin]).astype(np.int32)
    promise = find_order(spec.protocol).written
    table = event_table(run, columns, senders=nodes[result.senders])
    table = table.append_column("promise", pa.array([promise] * size, pa.string()))
    table = table.append_column("events", pa.array(np.full(size, size)))
    return table.cast(arrow_schema(RUN_EVENTS))


def _check_rows(met: Ints, there: Ints, has_stays: bool) -> None:
    """Raise InputError for rows that the simulator would accept but simulate wrongly."""
    ids = np.concatenate([met[:, 0], met[:, 1], there[:, 0]])
    if len(ids) and not 0 <= ids.min() <= ids.max() <= NODE_MAX:
        bad = ids[(ids < 0) | (ids > NODE_MAX)][0]
        raise InputError(f"no number of a node: {bad}", hint=f"write 0 to {NODE_MAX:,}")
    for what, spans in (("a contact", met[:, 2:]), ("a stay", there[:, 1:])):
        if (spans < 0).any():
            raise InputError(f"{what} from before zero on", hint="shift all times")
        if (spans[:, 0] > spans[:, 1]).any():
            raise InputError(f"{what} ends before it starts")
    if has_stays:
        ordered = there[np.lexsort((there[:, 1], there[:, 0]))]
        same = ordered[1:, 0] == ordered[:-1, 0]
        if (same & (ordered[1:, 1] < ordered[:-1, 2])).any():
            raise InputError("a node is there twice at one time", hint="join such stays")
        if len(absent := np.setdiff1d(met[:, :2], there[:, 0])):
            raise InputError(f"node {absent[0]} has a contact and is never present")


def _judgement() -> Callable[[pa.Table], pa.Table]:
    judge_here = same_code(_judge)

    def verify(rows: pa.Table) -> pa.Table:
        judged: pa.Table = judge_here(rows)
        return judged

    return verify


def _judge(rows: pa.Table) -> pa.Table:
    run = rows["run"][0].as_py()
    about = {name: _only(rows, name, run) for name in ("promise", "events")}
    noted = rows.replace_schema_metadata(metadata_of(run, About(**about)))
    (log,) = logs_of([noted], f"run `{run}`")
    found = judge(log)
    row = (found.run, found.state, found.reason, found.promise, found.broadcasts)
    return table_of_rows(RUN_VERDICTS, [(*row, found.deliveries, *found.counts.values())])


def _only(rows: pa.Table, name: str, run: str) -> Any:
    """Return the single value of a column over all rows of a run, or None without such a column."""
    values = rows[name].unique().to_pylist() if name in rows.column_names else [None]
    if len(values) > 1:
        raise InputError(f"several values of `{name}` in one run", where=f"run `{run}`")
    return values[0]


def _is_named(contacts: DataFrame, ends: Sequence[str], presence: DataFrame | None) -> bool:
    """Return whether the nodes of the contacts are names. Refuse numbers beside names."""
    kinds = dict(contacts.dtypes)
    found = [kinds.get(name) == "string" for name in ends]
    if presence is not None:
        found.append(dict(presence.dtypes).get("node") == "string")
    if any(found) and not all(found):
        hint = "make all of them names, or all of them numbers"
        raise InputError("some columns of nodes are names, others are not", hint=hint)
    return all(found)


def _columns(rows: DataFrame, names: Mapping[str, str], is_named: bool) -> DataFrame:
    """Return these columns under new names. Refuse other types than whole numbers, which a cast
    would truncate, but names of nodes."""
    kinds = dict(rows.dtypes)
    if missing := [name for name in names if name not in kinds]:
        raise _no_columns(missing, rows)
    made = []
    for name, new in names.items():
        is_name = is_named and new in ("a", "b")
        if not is_name and kinds[name] not in ("tinyint", "smallint", "int", "bigint"):
            raise InputError(f"column `{name}` is {kinds[name]}, not whole numbers")
        made.append(F.col(name).cast("string" if is_name else "bigint").alias(new))
    return rows.select(*made)


def _no_columns(missing: Sequence[str], rows: DataFrame) -> InputError:
    listed, there = (", ".join(f"`{name}`" for name in names) for names in (missing, rows.columns))
    return InputError(f"no column {listed}", hint=f"there are {there}")


def _matrix(table: pa.Table, names: Sequence[str]) -> Ints:
    if any(table[name].null_count for name in names):
        raise InputError("empty fields among the contacts", hint="leave such rows out")
    return np.column_stack([table[name].to_numpy() for name in names]).reshape(-1, len(names))
