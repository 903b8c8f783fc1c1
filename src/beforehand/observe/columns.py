"""Check the columns that `observe` takes, and derive the columns that an observer uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    IntegralType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from beforehand.errors import InputError, InputErrors
from beforehand.observe.rejects import REJECTED
from beforehand.observe.stamps import (
    ARRIVED_US,
    ENDS,
    KEY,
    LEAVES,
    OF_BATCH,
    ON_THE_WAY,
    PROCESS,
    TIE,
    TIME_US,
    ClockSource,
)
from beforehand.observe.time_unit import DEFAULT, PER_SECOND, TimeUnit

STAMP_HINT = "a stamp is a struct of the integers r and c and the array of integers kn"
TIME_HINT = "use a timestamp, text, or a whole number (`--time-unit`)"

OURS = frozenset(
    {*ON_THE_WAY, *OF_BATCH, "_arrival", *REJECTED}
    | {"_parsed", "_metadata", "_unknown", "_broken", "_row", "_broken_line"}
)
"""Internal column names, which stand beside the user's columns inside the query."""

TextOfTime = Literal["number", "timestamp"]
NUMBER, DATE = r"^[+-]?[0-9]+$", r"^[0-9]{4,}-[0-9]"
LOCAL = r"^[0-9]{4,}-[0-9]+(-[0-9]+([ T][0-9]+(:[0-9]+){0,2}([.][0-9]*)?)?)?$"
"""Patterns of times written as text; `LOCAL` are those without a time zone.

A year alone is a number. An hour without a day is neither: Spark would read it as an hour of today.
"""


def check_columns(schema: StructType, clock: ClockSource, results: Iterable[str]) -> None:
    """Raise all problems of a table that no observer can order, together."""
    problems = list(_problems(schema, clock))
    problems += [
        InputError(f"the column `{name}` is a column of the output", hint="rename yours")
        for name in sorted(set(schema.names) & set(results))
    ]
    if problems:
        raise InputErrors(problems) if len(problems) > 1 else problems[0]


def _problems(schema: StructType, clock: ClockSource) -> Iterator[InputError]:
    names = schema.names
    if "process" not in names:
        found = (
            f"there are {_listed(names)}" if names else "no line of the first files is an object"
        )
        yield InputError("no column `process`", hint=found)
    elif not isinstance(schema["process"].dataType, IntegralType | StringType):
        yield InputError("`process` is neither a number nor a name")
    if "stamp" not in names and "time" not in names:
        yield InputError("no column `stamp` and no column `time`", hint=STAMP_HINT)
    elif "stamp" in names and not _is_stamp(schema["stamp"].dataType):
        found = schema["stamp"].dataType.simpleString()
        yield InputError(f"`stamp` is a {found}", hint=STAMP_HINT)
    if clock == "arrival" and "arrived" not in names:
        yield InputError("no column `arrived`", hint="choose the clock `event` or `wall`")
    if "ends" in names and not isinstance(schema["ends"].dataType, BooleanType):
        yield InputError("`ends` is neither true nor false")
    for name in {"time", "arrived"} & set(names):
        if not isinstance(
            schema[name].dataType, TimestampType | TimestampNTZType | StringType | IntegralType
        ):
            found = schema[name].dataType.simpleString()
            yield InputError(f"`{name}` is a {found}", hint=TIME_HINT)


def check_names(names: Iterable[str]) -> None:
    """Raise InputError for names that Spark misreads, and for internal names."""
    for name in names:
        if "." in name or "`" in name:
            hint = "rename it: Spark would look for a field within a column"
            raise InputError(f"a dot or a quote in the name of the column {name!r}", hint=hint)
        if name in OURS:
            raise InputError(f"the column `{name}` is one of our own", hint="rename yours")


def _is_stamp(kind: DataType) -> bool:
    if not isinstance(kind, StructType) or not {"r", "c", "kn"} <= set(kind.names):
        return False
    r, c, kn = (kind[name].dataType for name in ("r", "c", "kn"))
    return (
        isinstance(r, IntegralType)
        and isinstance(c, IntegralType)
        and isinstance(kn, ArrayType)
        and isinstance(kn.elementType, IntegralType)
    )


def mark(
    events: DataFrame, carried: Sequence[str], clock: ClockSource, passed: Sequence[str] = ()
) -> DataFrame:
    """Return the carried columns and the observer's internal columns, as plain numbers.

    passed: further columns that stay as they are.
    """
    schema = events.schema
    marks = {
        KEY: F.col("observer").cast("string") if "observer" in carried else F.lit(""),
        PROCESS: _number(schema, "process"),
        TIE: F.xxhash64(*filter(lambda name: _is_hashable(schema[name].dataType), carried)),
        ENDS: _is_true(schema, "ends"),
    }
    if "ends" in schema.names:
        marks[LEAVES] = _is_true(schema, "ends")
    for name, source in times(schema, clock).items():
        marks[name] = F.col(name) if name in schema.names else micros(schema, source)
    marked = (column.alias(name) for name, column in marks.items())
    return events.select(*carried, *passed, *marked)


def _number(schema: StructType, name: str) -> Column:
    """Return the column as a number, to break ties between stamps; a name is hashed."""
    is_text = isinstance(schema[name].dataType, StringType)
    return F.xxhash64(name) if is_text else F.col(name).cast("bigint")


def _is_hashable(kind: DataType) -> bool:
    return not any(word in kind.simpleString() for word in ("map<", "variant"))


def _is_true(schema: StructType, name: str) -> Column:
    return F.coalesce(name, F.lit(False)) if name in schema.names else F.lit(False)


def times(schema: StructType, clock: ClockSource) -> dict[str, str]:
    """Return the time columns that an observer needs, by their internal names."""
    found = {} if "stamp" in schema.names else {TIME_US: "time"}
    return found | ({ARRIVED_US: "arrived"} if clock == "arrival" else {})


def micros(
    schema: StructType, name: str, text: TextOfTime | None = None, unit: TimeUnit = DEFAULT
) -> Column:
    """Return microseconds; null if the value is not a time, as one bad row must not end a stream.

    text: what a text column holds; None: decide row by row between whole number and timestamp.
    unit: of whole numbers.
    """
    kind, column = schema[name].dataType, F.col(name)
    if isinstance(kind, TimestampNTZType):
        return F.unix_micros(_outside_gap(column.cast("timestamp"), column))
    if not isinstance(kind, StringType | IntegralType):
        return F.unix_micros(column)
    number = _scaled(whole_number(schema, name), unit)
    if isinstance(kind, IntegralType):
        return number
    column = F.trim(column)
    found = F.when(column.rlike(DATE), F.try_to_timestamp(column))
    local = F.when(column.rlike(LOCAL), column.try_cast("timestamp_ntz"))
    timestamp = F.unix_micros(_outside_gap(found, local))
    if text is None:
        return F.coalesce(number, timestamp)
    return number if text == "number" else timestamp


def _outside_gap(found: Column, local: Column) -> Column:
    """Return null for local times that the session's time zone skips: Spark moves them by an hour.

    local: the time as it was written; null if it names its own time zone.
    """
    return F.when(local.isNull() | (found.cast("timestamp_ntz") == local), found)


def whole_number(schema: StructType, name: str) -> Column:
    """Return the integers of an integer column, or of a text column; null for other text."""
    if isinstance(schema[name].dataType, IntegralType):
        return F.col(name).cast("bigint")
    column = F.trim(name)
    return F.when(column.rlike(NUMBER), column.try_cast("bigint"))


def _scaled(number: Column, unit: TimeUnit) -> Column:
    per_us, us_per = PER_SECOND[unit] // PER_SECOND["us"], PER_SECOND["us"] // PER_SECOND[unit]
    if us_per:
        return F.try_multiply(number, F.lit(us_per)) if us_per > 1 else number
    return F.call_function("div", number - F.pmod(number, F.lit(per_us)), F.lit(per_us))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
