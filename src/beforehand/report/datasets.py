"""Read the published datasets of a finished run. The columns are the contract with their writer."""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from beforehand.errors import InputError
from beforehand.files import SCENARIO_FILE, read_text, unreadable

STATISTICS = ("min", "max", "avg", "stdev")
DELAYS = ("delay", "delivered_delay", "latency", "age")

CELLS_RUN = (
    *("run", "reading", "experiment", "system", "seed", "stations", "hosts"),
    *("rate_per_s", "mac"),
)
"""The columns that name a run of cells, in each of its datasets."""

COLUMNS: dict[str, tuple[str, ...]] = {
    "runs": (
        *("run", "protocol", "lifetime_us", "point", "seed", "nodes", "contacts"),
        *("broadcasts", "receptions", "deliveries", "expired", "dropped", "waiting"),
        "left_out",
        *("delivery_ratio", "reach", "again", "evictions", "frames_aborted"),
        *(f"{name}_us_{kind}" for name in DELAYS for kind in STATISTICS),
        *("held_us_avg", "past_entries_avg", "frames", "bytes", "promise", "verdict"),
        *("violations", "cpu_s"),
        *("transfer_model", "engine", "engine_why"),
    ),
    "points": ("point", "key", "value", "number", "unit"),
    "trace": (
        *("nodes", "max_at_once", *(f"activity_{kind}" for kind in STATISTICS)),
        *("contacts", *(f"duration_{kind}" for kind in STATISTICS)),
    ),
    "quantiles": ("run", "metric", "share", "value_us"),
    "scatter": ("run", "delay_us", "latency_us"),
    "presence": ("node", "name", "up_us", "down_us"),
    "nodes": (
        *("run", "node", "broadcasts", "receptions", "deliveries", "delay_us_avg"),
        *("delivered_delay_us_avg", "latency_us_avg", "age_us_avg"),
    ),
    "messages": (
        *("run", "origin", "seq", "sent_us", "past_entries", "receptions", "deliveries"),
        *("delay_us_max", "age_us_max"),
    ),
    "meetings": ("metric", "share", "value_us"),
    "survival": ("metric", "value_us", "share"),
    "hours": ("from_us", "contacts", "first_encounters"),
    "hops": ("run", "hops", "receptions"),
    "gauges": ("run", "t_us", "node", "gauge", "value"),
    "measures": (
        *("reading", "law", "processes", "epsilon", "delta", "rate", "messages", "seed"),
        *("observer", "wait_percent", "received", "violations_percent", "pairs", "inverted"),
        "wait_share_max",
    ),
    "overlay_runs": (
        *("nodes", "seed", "system", "payload_bytes", "packets", "packed", "deliveries"),
        *("missing", "violations", "reception_us_avg", "reception_us_max", "delivery_us_avg"),
        *("held_us_avg", "delayed", "queue_us_avg"),
        *("pair_reception_us_avg", "pair_delivery_us_avg"),
    ),
    "overlay_histograms": (
        *("nodes", "seed", "system", "payload_bytes", "histogram", "value", "count"),
    ),
    "cells_runs": (
        *CELLS_RUN,
        *("broadcasts", "deliveries", "violations", "duplicates", "missing"),
        *("missing_at_returned", "delay_us_avg"),
        *(
            "lost_percent",
            "heard_lost_percent",
            "kept_avg",
            "early_avg",
            "sent_per_delivery",
            "handoffs",
        ),
        *("is_search", "is_sustained"),
    ),
    "cells_flows": (
        *CELLS_RUN,
        *("network", "kind", "frames", "control_bytes", "payload_bytes", "header_bytes"),
        "to_station",
    ),
    "cells_series": (
        *CELLS_RUN,
        *("t_s", "kept", "kept_max", "kept_avg", "kept_rest_avg", "kept_rest_deviation"),
        *("early_avg", "radio_frames", "radio_bytes", "received", "lost"),
    ),
    "cells_outages": (
        *CELLS_RUN,
        *("node", "station", "from_s", "to_s"),
    ),
    "claims": ("claim", "figure", "text", "note", "reading", "verdict", "expected", "measured"),
}
TEXTS = (
    *("point", "key", "unit"),
    *("run", "protocol", "promise", "verdict", "transfer_model", "metric", "name", "gauge"),
    *("engine", "engine_why"),
    *("reading", "law", "observer", "system", "histogram", "experiment", "mac", "network", "kind"),
    *("claim", "figure", "text", "note", "expected", "measured"),
)
TEXTS_OF = (("points", "value"),)
"""Columns that are text in this table and numbers in others."""
LISTS = ("to_station", "kept")
"""Columns of lists. All columns that are neither here nor in `TEXTS` are numbers."""
FILLED = (
    *(name for name in TEXTS if name != "note"),
    *("seed", "node", "nodes", "contacts", "broadcasts", "receptions", "deliveries", "expired"),
    *("dropped", "waiting", "left_out", "again"),
    *("frames", "bytes", "packets", "violations", "duplicates", "missing", "received", "inverted"),
    *("up_us", "down_us", "t_us", "value_us", "share", "value", "count", "hops"),
)
"""Columns without nulls. In other columns, null means that there were no values to average."""
HINT = "give the folder that `beforehand run` wrote"


@dataclass(frozen=True)
class Scenario:
    """The content of `scenario.json`."""

    name: str
    title: str
    paper: str | None
    """The key of the published figures, if the scenario reproduces a paper."""
    parameters: Mapping[str, Any]
    changes: Mapping[str, int]
    """How often cleaning made each kind of repair in the mobility trace."""
    versions: Mapping[str, str]
    world: str
    """The name of the world that was simulated, such as `contacts`; it selects the kind of page."""
    drawn: tuple[str, ...] | None = None
    """The inputs that another seed draws again: mobility, traffic, links. None if not recorded."""


def read_scenario(directory: Path) -> Scenario:
    path = directory / SCENARIO_FILE
    try:
        text = read_text(path, hint=HINT)
    except InputError as error:
        if path.exists():
            raise
        raise InputError("no scenario.json here", where=str(directory), hint=HINT) from error
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        where = f"{path}:{error.lineno}"
        raise InputError(f"not JSON: {error.msg}", where=where, hint=HINT) from error
    except (RecursionError, ValueError) as error:
        raise InputError(f"not JSON: {error}", where=str(path), hint=HINT) from error
    _check(found, path)
    return Scenario(
        name=str(found["name"]),
        title=str(found.get("title") or found["name"]),
        paper=found.get("paper"),
        parameters=found.get("parameters") or {},
        changes=found.get("changes") or {},
        versions=found.get("versions") or {},
        world=found.get("world") or "contacts",
        drawn=None if found.get("drawn") is None else tuple(map(str, found["drawn"])),
    )


def _check(found: object, path: Path) -> None:
    """Raise InputError for a document that `run` cannot have written."""
    if not isinstance(found, dict) or not isinstance(found.get("name"), str):
        raise InputError("not what `run` writes: no name in it", where=str(path), hint=HINT)
    for key in ("parameters", "changes", "versions"):
        if not isinstance(found.get(key) or {}, dict):
            problem = f"not what `run` writes: `{key}` is no table"
            raise InputError(problem, where=str(path), hint=HINT)
    if not isinstance(found.get("drawn") or [], list):
        problem = "not what `run` writes: `drawn` is no list"
        raise InputError(problem, where=str(path), hint=HINT)
    for key in ("title", "paper", "world"):
        if not isinstance(found.get(key) or "", str):
            problem = f"not what `run` writes: `{key}` is no text"
            raise InputError(problem, where=str(path), hint=HINT)


def read_runs(directory: Path) -> list[dict[str, Any]]:
    """Return the rows of `runs`. Raise InputError if there are none."""
    rows: list[dict[str, Any]] = []
    if table := read_table(directory, "runs"):
        rows = table.to_pylist()
    if not rows:
        raise InputError("no runs to report", where=str(directory), hint=HINT)
    return rows


def read_frame(directory: Path, name: str, **where: Sequence[Any]) -> pd.DataFrame:
    """Return the rows whose columns hold one of the given values; empty if not recorded."""
    table = read_table(directory, name, where)
    return pd.DataFrame(columns=list(COLUMNS[name])) if table is None else table.to_pandas()


def read_table(
    directory: Path, name: str, where: Mapping[str, Sequence[Any]] | None = None
) -> pa.Table | None:
    """Return one dataset, a file or a folder of files; None if it was not recorded."""
    path = directory / f"{name}.parquet"
    if not path.exists():
        return None
    try:
        names = pq.ParquetDataset(path).schema.names
    except (pa.ArrowException, OSError) as error:
        raise unreadable(path, error, HINT) from error
    columns = COLUMNS.get(name, tuple(names))  # read all columns of an unknown table
    if missing := [column for column in columns if column not in names]:
        raise InputError(f"`{name}` has no column {', '.join(missing)}", where=str(path), hint=HINT)
    wanted = [pc.field(column).isin(list(values)) for column, values in (where or {}).items()]
    chosen = functools.reduce(operator.and_, wanted) if wanted else None
    try:
        found = pq.read_table(path, columns=list(columns), filters=chosen)
    except (pa.ArrowException, OSError) as error:
        raise unreadable(path, error, HINT) from error
    if name in COLUMNS and len(found):
        _check_columns(name, found, path)
    return found


def _check_columns(name: str, table: pa.Table, path: Path) -> None:
    """Raise InputError for columns of the wrong type, nulls, or numbers that are not finite."""
    for column in table.column_names:
        kind: Any = table.schema.field(column).type
        if column in TEXTS or (name, column) in TEXTS_OF:
            fits, wanted = pa.types.is_string(kind) or pa.types.is_large_string(kind), "text"
        elif column in LISTS:
            fits, wanted = pa.types.is_list(kind) or pa.types.is_large_list(kind), "lists"
        else:
            fits, wanted = _is_number(kind), "numbers"
        if not fits and not (pa.types.is_null(kind) and column not in FILLED):
            problem = f"column `{column}` of `{name}` is {kind}, not {wanted}"
            raise InputError(problem, where=str(path), hint=HINT)
        if column in FILLED and table[column].null_count:
            problem = f"empty fields in the column `{column}` of `{name}`"
            raise InputError(problem, where=str(path), hint=HINT)
        if pa.types.is_floating(kind) and not _all_finite(table[column]):
            problem = f"what is no number in the column `{column}` of `{name}`"
            raise InputError(problem, where=str(path), hint=HINT)


def _all_finite(column: pa.ChunkedArray[Any]) -> bool:
    """Return whether all values are finite; true if there are none but nulls."""
    return bool(pc.all(pc.is_finite(column), min_count=0).as_py())


def _is_number(kind: Any) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    )
