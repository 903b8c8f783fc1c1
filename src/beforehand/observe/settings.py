"""Settings of the observers of a folder, fixed for the lifetime of their checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType, StringType, StructType

from beforehand.errors import InputError
from beforehand.files import write_text
from beforehand.observe.columns import (
    TextOfTime,
    check_columns,
    check_names,
    micros,
    times,
    whole_number,
)
from beforehand.observe.failures import readable_files
from beforehand.observe.input import default_tick_us, find_format, list_files
from beforehand.observe.partitions import default_partitions
from beforehand.observe.stamps import ClockSource
from beforehand.observe.time_unit import DEFAULT, NAMES, UNITS, TimeUnit, decide, span
from beforehand.protocols.observer.observer import Dial
from beforehand.protocols.observer.timestamp import Guarantees

FILES_LOOKED_AT = 16
BROKEN_LINES = ("columnNameOfCorruptRecord", "_broken_line")
"""The column into which Spark puts lines that are not JSON; it is dropped."""
TIME_ZONE = "spark.sql.session.timeZone"
COUNTS_MAX = 2**60
"""The bound on events of a process per tick is unknown, so the stamps' counts are trusted."""

SETTINGS_FILE = "settings.json"
"""The file of a checkpoint with the settings that its stream was started with."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The settings as the user gives them."""

    epsilon_us: int
    delta_us: int
    wait_percent: int = 100
    checks_queue: bool = True
    elements: int | None = None
    """The number of `kn` elements to use; None: as many as the stamps of the first files have."""
    tick_us: int | None = None
    """None: a millisecond for stamps, a microsecond for the column `time`."""
    clock: ClockSource | None = None
    """None: the column `arrived` if there is one, else the clock of the events."""
    partitions: int | None = None
    """The number of tasks that order a stream; None: see `observe.stream.default_partitions`."""
    time_unit: TimeUnit | None = None
    """The unit of whole numbers in `time` and `arrived`.

    None: microseconds; numbers that look like another unit are rejected.
    """


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings with every value decided, after a look at the files."""

    format: str
    schema: str
    epsilon_us: int
    delta_us: int
    wait_percent: int
    checks_queue: bool
    elements: int
    elements_min: int = 0
    """A stamp with fewer `kn` elements is reset."""
    tick_us: int
    clock: ClockSource
    texts: dict[str, TextOfTime] = {}
    """For each time column of text, whether it holds numbers or timestamps."""
    time_unit: TimeUnit = DEFAULT
    partitions: int = 0
    """The number of tasks that order a stream; 0 in checkpoints of another operator."""
    are_dates: bool = False
    """Whether whole-number times count from 1970, judged by their size."""
    time_zone: str = ""
    """The session's time zone, in which times without one are read; empty in older checkpoints."""

    @property
    def columns(self) -> StructType:
        return StructType.fromJson(msgspec.json.decode(self.schema))

    @property
    def dial(self) -> Dial:
        return Dial(self.wait_percent, self.checks_queue, self.elements)

    @property
    def guarantees(self) -> Guarantees:
        # Rounded up: too wide a guarantee costs latency, too narrow a one costs order.
        epsilon = -(-self.epsilon_us // self.tick_us)
        delta = -(-self.delta_us // self.tick_us)
        return Guarantees(1, epsilon, max(delta, 1), COUNTS_MAX)

    @property
    def horizon_us(self) -> int:
        """Return δ + 2ε, the longest time that a message is held."""
        return self.guarantees.horizon * self.tick_us


def settle(spark: SparkSession, folder: Path, plan: Plan) -> Settings:
    """Look at the files in the folder, and decide what the plan leaves open."""
    format = find_format(folder)
    # Spark must read JSON lines to infer the columns; a few files suffice.
    files = [str(file) for file in list_files(folder)[:FILES_LOOKED_AT]]
    base = folder.parent if folder.is_file() else folder
    reader = spark.read.option("basePath", str(base)).option(*BROKEN_LINES)
    try:
        with readable_files(folder):
            table = reader.format(format).load(files).drop(BROKEN_LINES[1])
    except PySparkException as error:
        problem = f"cannot be read as {format}: {str(error).splitlines()[0]}"
        nanos = "write times as microseconds (pandas: `coerce_timestamps='us'`)"
        hint = nanos if "NANOS" in problem else ""
        raise InputError(problem, where=str(folder), hint=hint) from error
    has_stamp = "stamp" in table.columns
    clock: ClockSource = plan.clock or ("arrival" if "arrived" in table.columns else "event")
    check_columns(table.schema, clock, ())
    check_names(table.columns)
    with readable_files(folder):
        sent = _elements_sent(table) if has_stamp else 0
    elements = sent if plan.elements is None else plan.elements
    found = times(table.schema, clock).values()
    texts = dict(_texts(table, found, str(folder)))
    unit, are_dates = _time_unit(table, found, texts, plan, folder)
    return Settings(
        format=format,
        schema=table.schema.json(),
        epsilon_us=plan.epsilon_us,
        delta_us=plan.delta_us,
        wait_percent=plan.wait_percent,
        checks_queue=plan.checks_queue,
        elements=elements,
        elements_min=min(elements, sent),
        tick_us=plan.tick_us or default_tick_us(has_stamp=has_stamp),
        clock=clock,
        texts=texts,
        time_unit=unit,
        partitions=plan.partitions or default_partitions(spark),
        are_dates=are_dates,
        time_zone=str(spark.conf.get(TIME_ZONE)),
    )


class _Kept(msgspec.Struct, frozen=True, kw_only=True):
    folder: str
    out: str
    settings: Settings


def keep_settings(
    spark: SparkSession, plan: Plan, file: Path, *, folder: Path, out: Path
) -> Settings:
    """Return the settings in the file, or create them; raise InputError if the plan differs."""
    places = {"folder": str(folder.resolve()), "out": str(out.resolve())}
    if not file.exists():
        kept = _Kept(settings=settle(spark, folder, plan), **places)
        write_text(file, msgspec.json.format(msgspec.json.encode(kept)).decode() + "\n")
        return kept.settings
    try:
        kept = msgspec.json.decode(file.read_bytes(), type=_Kept)
    except (OSError, msgspec.MsgspecError) as error:
        hint = "a stream resumes from its own checkpoint; give another stream another folder"
        problem = f"not the settings of a stream: {error}"
        raise InputError(problem, where=str(file), hint=hint) from error
    if not kept.settings.partitions:
        hint = "flush it with that version, or start anew with another checkpoint and output"
        problem = "this checkpoint is of an earlier version, whose state cannot be read"
        raise InputError(problem, where=str(file), hint=hint)
    before = {"folder": kept.folder, "out": kept.out, **msgspec.structs.asdict(kept.settings)}
    zone = {"time_zone": spark.conf.get(TIME_ZONE) if kept.settings.time_zone else None}
    for name, asked in (places | zone | msgspec.structs.asdict(plan)).items():
        if asked not in (None, before[name]):
            raise InputError(
                f"`{name}` was {before[name]} when this stream was started, and is {asked} now",
                where=str(file),
                hint="a stream keeps its settings; others need a checkpoint of their own",
            )
    return kept.settings


def _texts(table: DataFrame, names: Iterable[str], where: str) -> Iterator[tuple[str, TextOfTime]]:
    """Yield whether each text column holds numbers or timestamps; raise InputError for a mix."""
    for name in names:
        if not isinstance(table.schema[name].dataType, StringType):
            continue
        kinds: tuple[TextOfTime, ...] = ("number", "timestamp")
        read = (F.count(micros(table.schema, name, kind)).alias(kind) for kind in kinds)
        with readable_files(Path(where)):
            counts = table.agg(*read).first()
        assert counts is not None, "an aggregate has one row, even over no rows"
        if counts["number"] and counts["timestamp"]:
            raise InputError(
                f"`{name}` is text: {counts['number']} whole numbers, {counts['timestamp']}"
                " timestamps",
                where=where,
                hint="write all of them in one way",
            )
        yield name, "number" if counts["number"] else "timestamp"


def _time_unit(
    table: DataFrame,
    names: Iterable[str],
    texts: Mapping[str, TextOfTime],
    plan: Plan,
    folder: Path,
) -> tuple[TimeUnit, bool]:
    """Return the unit of the whole numbers in these columns, and whether they count from 1970."""
    where, schema = str(folder), table.schema
    numbers = {name: whole_number(schema, name) for name in whole_times(schema, names, texts)}
    unit, is_asked = plan.time_unit or DEFAULT, plan.time_unit is not None
    with readable_files(folder):
        are_dates = decide(_spans(table, numbers), unit, where, is_asked=is_asked)
        if "stamp" in schema.names and plan.tick_us is None:
            stamps = _spans(table, {"stamp.r": F.col("stamp.r").cast("bigint")})
            decide(stamps, "ms", where, is_asked=False, flag="--tick 1")
    return unit, are_dates


def assumed(settings: Settings, plan: Plan) -> Iterator[str]:
    """Yield the assumptions that neither the plan nor the first files confirm, for the user."""
    schema = settings.columns
    if plan.time_unit is None and not settings.are_dates:
        found = times(schema, settings.clock).values()
        for name in whole_times(schema, found, settings.texts):
            taken = NAMES[settings.time_unit]
            yield f"`{name}` is whole numbers, taken as {taken}; `--time-unit` names another unit"
    if "stamp" in schema.names and plan.elements is None and not settings.elements:
        yield (
            "no stamp of the first files has elements in `kn`, so those of later files are not"
            " used; `--elements` gives their number, `--elements 0` if there are none"
        )


def whole_times(
    schema: StructType, names: Iterable[str], texts: Mapping[str, TextOfTime]
) -> list[str]:
    """Return the columns that hold whole numbers, also as text."""
    return [
        name
        for name in names
        if isinstance(schema[name].dataType, IntegralType) or texts.get(name) == "number"
    ]


def _spans(
    table: DataFrame, numbers: Mapping[str, Column]
) -> dict[str, tuple[int, dict[TimeUnit, int]]]:
    """Return for each column the number of values, and how many lie in the span of each unit."""
    asked = [
        aggregate
        for number in numbers.values()
        for aggregate in (F.count(number), *(F.count_if(number.between(*span(u))) for u in UNITS))
    ]
    counts = table.agg(*asked).first() if asked else ()
    assert counts is not None, "an aggregate has one row, even over no rows"
    size = 1 + len(UNITS)
    parts = [counts[at : at + size] for at in range(0, len(counts), size)]
    return {
        name: (total, dict(zip(UNITS, within, strict=True)))
        for name, (total, *within) in zip(numbers, parts, strict=True)
    }


def _elements_sent(table: DataFrame) -> int:
    """Return the largest number of `kn` elements: one stamp may have lost its own."""
    longest = table.agg(F.max(F.array_size("stamp.kn"))).first()
    return 0 if longest is None or longest[0] is None else int(longest[0])
