"""The columns that `observe` takes: what is wrong with them, and what an observer makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

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
from beforehand.observe.packets import KEY
from beforehand.observe.state import (
    ARRIVED_US,
    ENDS,
    PROCESS,
    TIE,
    TIME_US,
    ClockSource,
)

STAMP_HINT = "a stamp is a struct of the integers r and c and the array of integers kn"
TIME_HINT = "use a timestamp, text, or an integer of microseconds"


def check_columns(schema: StructType, clock: ClockSource, results: Iterable[str]) -> None:
    """Refuse a table that no observer can order: all that is wrong with it at once."""
    problems = list(_problems(schema, clock))
    problems += [
        InputError(f"the column `{name}` is one that comes out", hint="rename yours")
        for name in sorted(set(schema.names) & set(results))
    ]
    if problems:
        raise InputErrors(problems) if len(problems) > 1 else problems[0]


def _problems(schema: StructType, clock: ClockSource) -> Iterator[InputError]:
    names = schema.names
    if "process" not in names:
        yield InputError("no column `process`", hint=f"there are {_listed(names)}")
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


def mark(events: DataFrame, carried: Sequence[str], clock: ClockSource) -> DataFrame:
    """What is carried along, and beside it what an observer looks at, as plain numbers."""
    schema = events.schema
    marks = {
        KEY: F.col("observer").cast("string") if "observer" in carried else F.lit(""),
        PROCESS: _number(schema, "process"),
        TIE: F.xxhash64(*filter(lambda name: _is_hashable(schema[name].dataType), carried)),
        ENDS: F.coalesce("ends", F.lit(False)) if "ends" in schema.names else F.lit(False),
    }
    if "stamp" not in carried:
        marks[TIME_US] = _micros(schema, "time")
    if clock == "arrival":
        marks[ARRIVED_US] = _micros(schema, "arrived")
    return events.select(*carried, *(column.alias(name) for name, column in marks.items()))


def _number(schema: StructType, name: str) -> Column:
    """A number breaks the tie between two stamps; any will do if it is always the same."""
    is_text = isinstance(schema[name].dataType, StringType)
    return F.xxhash64(name) if is_text else F.col(name).cast("bigint")


def _is_hashable(kind: DataType) -> bool:
    return not any(word in kind.simpleString() for word in ("map<", "variant"))


def _micros(schema: StructType, name: str) -> Column:
    """Microseconds; null where the text is no time, as one bad row must not end a stream."""
    kind = schema[name].dataType
    if isinstance(kind, IntegralType):
        return F.col(name).cast("bigint")
    if isinstance(kind, StringType):
        return F.unix_micros(F.try_to_timestamp(F.col(name)))
    return F.unix_micros(F.col(name).cast("timestamp"))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
