"""The columns of every dataset, in Spark's schema notation. Times are in microseconds.

Event logs and gauges use the simulator's schema, whichever program writes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from beforehand.events import COLUMNS, FILE_COLUMNS, SENDER

ARROW: dict[str, pa.DataType] = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
}

POSITIONS = "node bigint, t0_us bigint, x0 double, y0 double, t1_us bigint, x1 double, y1 double"
CONTACTS = "a bigint, b bigint, up_us bigint, down_us bigint"
PRESENCE = "node bigint, name string, up_us bigint, down_us bigint"

_LOGGED = {"run": "text", "step": "int64", **COLUMNS, "kind": "text", SENDER: "int32"}
_SPARK = {"text": "string", "int32": "int", "int64": "bigint"}
EVENTS = ", ".join(f"{name} {_SPARK[_LOGGED[name]]}" for name in FILE_COLUMNS)
GAUGES = "run string, t_us bigint, node int, gauge string, value bigint"

EVICTIONS = "t_us bigint, node bigint, origin bigint, seq bigint"
"""Messages that full buffers evicted in one run, in the order in which they did."""

HOPS = "run string, hops bigint, receptions bigint"
"""First receptions by the number of hops that the message had made; -1 if the number is
unknown."""

VIOLATIONS = (
    "run string, step bigint, t_us bigint, node int, kind string, origin int, seq bigint,"
    " follower_step bigint, follower_origin int, follower_seq bigint"
)
"""follower: the delivery at the same node of a message that causally follows the late one. Null for
other kinds, and after the first FOLLOWERS_MAX late deliveries of a block of senders."""

MEASURES = ("delay", "delivered_delay", "latency", "age")
"""delay: from broadcast to first reception. delivered_delay: the same for delivered messages alone.
latency: from first reception to delivery. age: the sum of delivered_delay and latency."""
SPREADS = ("min", "max", "avg", "stdev")

RUNS = (
    "run string, protocol string, lifetime_us bigint, point string, seed bigint, nodes bigint,"
    " contacts bigint,"
    " broadcasts bigint, receptions bigint, deliveries bigint, expired bigint, dropped bigint,"
    " waiting bigint, left_out bigint, delivery_ratio double, reachable bigint, reach double,"
    " again bigint, evictions bigint, frames_aborted bigint, "
    + ", ".join(f"{measure}_us_{spread} double" for measure in MEASURES for spread in SPREADS)
    + ", held_us_avg double, past_entries_avg double, frames bigint, bytes bigint, promise string,"
    " verdict string, violations bigint, cpu_s double, transfer_model string,"
    " engine string, engine_why string"
)
POINTS = "point string, key string, value string, number double, unit string"
"""The values of the swept keys at each point. number: in the unit; null if it is no number."""
QUANTILES = "run string, metric string, share double, value_us bigint"
SCATTER = "run string, delay_us bigint, latency_us bigint"
NODES = (
    "run string, node int, broadcasts bigint, receptions bigint, deliveries bigint,"
    " delay_us_avg double, delivered_delay_us_avg double, latency_us_avg double, age_us_avg double"
)
"""delay: of the messages that the node received. The others: of the messages of other nodes that
it delivered."""
MESSAGES = (
    "run string, origin int, seq bigint, sent_us bigint, past_entries bigint, receptions bigint,"
    " deliveries bigint, delay_us_max bigint, age_us_max bigint"
)
MEETINGS = "metric string, share double, value_us bigint"
"""duration: length of a contact. between: from the end of a contact to the pair's next contact."""
SURVIVAL = "metric string, value_us bigint, share double"
"""metric: as in MEETINGS. share: of the values that are larger than value_us."""
HOURS = "from_us bigint, contacts bigint, first_encounters bigint"

QUANTILES_FILE, SCATTER_FILE = "quantiles.parquet", "scatter.parquet"
NODES_FILE, MESSAGES_FILE = "nodes.parquet", "messages.parquet"
METRIC_FILES = (QUANTILES_FILE, SCATTER_FILE, NODES_FILE, MESSAGES_FILE)
"""The files of each run."""
GAUGES_FILE, HOPS_FILE = "gauges.parquet", "hops.parquet"
EVICTIONS_FILE = "evictions.parquet"
"""A run of an engine that does not record evictions has no such file."""


def names_of(columns: str) -> list[str]:
    """Return the names of the columns, in order."""
    return [column.split()[0] for column in columns.split(",")]


def arrow_schema(columns: str) -> pa.Schema:
    return pa.schema([(name, ARROW[kind]) for name, kind in map(str.split, columns.split(","))])


def table_of(columns: str, values: Iterable[Any]) -> pa.Table:
    """Build a table from one array, list or tuple per column, in order. Columns may be empty or
    hold None."""
    schema = arrow_schema(columns)
    arrays = [pa.array(v, field.type) for v, field in zip(values, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def table_of_rows(columns: str, rows: Sequence[Sequence[Any]]) -> pa.Table:
    """Build a table from rows."""
    return table_of(columns, zip(*rows, strict=True) if rows else [()] * len(names_of(columns)))
