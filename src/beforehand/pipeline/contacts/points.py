"""The points of a sweep as a table: the value of each swept key, in words and as a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from beforehand.pipeline.schemas import POINTS, table_of_rows
from beforehand.scenario.quantities import names_of
from beforehand.scenario.settings import NETWORK, TRAFFIC
from beforehand.scenario.source import Source
from beforehand.scenario.sweep import Point, show

UNITS = {
    "_us": (1e-6, "s"),
    "bytes_per_s": (1.0, "B/s"),
    "bytes": (1.0, "B"),
    "bytes_max": (1.0, "B"),
}
"""The factor and the unit of the number of a field of `Spec`, by the end of its name."""
MOBILITY_UNITS = {"s": "s", "m": "m", "hours": "h"}


def point_table(points: Sequence[Point]) -> pa.Table:
    """Return one row for each point and swept key."""
    rows = [
        (point.name, key, show(value), *_number(point, key))
        for point in points
        for key, value in point.values.items()
    ]
    return table_of_rows(POINTS, rows)


def _number(point: Point, name: str) -> tuple[float | None, str]:
    """Return the number and the unit of a swept value; None if it is no number."""
    table, _, key = name.partition(".")
    options = point.options[table]
    if table == "mobility":
        return _mobility_number(options, key)
    field = {**TRAFFIC, **NETWORK}[key].field
    factor, unit = next((u for end, u in UNITS.items() if field.endswith(end)), (1.0, ""))
    value = options.get(field)
    return (value * factor, unit) if _is_number(value) else (None, "")


def _mobility_number(source: Source, key: str) -> tuple[float | None, str]:
    if key == "range":
        return source.range_m, "m"
    name = names_of(source.options).get(key, key)
    unit = next((u for part, u in MOBILITY_UNITS.items() if part in name.split("_")), "")
    value: Any = source.options.get(name)
    return (float(value), unit) if _is_number(value) else (None, "")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
