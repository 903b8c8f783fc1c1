"""Rows of files, and beside each that cannot be read: why, its text, its file and its line.

Left alone, Spark reads a broken line as a row of nulls, takes the first of two objects on one line
for the whole, and forgets what is in no column that it knows.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import Column, DataFrame, DataFrameReader, Observation, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StringType, StructField, StructType

from beforehand.observe.columns import micros, times, whole_number
from beforehand.observe.rejects import FILE, LINE, RAW, WHY
from beforehand.observe.settings import Settings, whole_times
from beforehand.observe.time_unit import NAMES, UNITS, span

READ = "beforehand_read"
"""The name of the counts of what was read among the observed metrics of a query."""

LINE_TEXT, ROW, BROKEN, UNKNOWN = "value", "_row", "_broken", "_unknown"
NO_TEXT, NO_LETTER = "not UTF-8 text", "an escape that is half of a letter"
HIGH, LOW = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F]"
HALF = rf"(?<!\\)(?:\\\\)*(?:{HIGH}(?!{LOW})|(?<!{HIGH}){LOW})"
r"""One `\uXXXX` of a pair without the other; behind an escaped backslash it is plain text."""
NO_OBJECT = "not one JSON object"
WRONG_TYPE = "a value is not of the type of its column"


def read_events(
    reader: DataFrameReader | DataStreamReader,
    folder: Path,
    settings: Settings,
    metrics: str | Observation = READ,
) -> DataFrame:
    """The columns of the settings, the times among them as microseconds, and `REJECTED`."""
    read = _read_lines if settings.format == "json" else _read_parquet
    rows = read(reader, folder, settings)
    schema = settings.columns
    found = times(schema, settings.clock)
    in_us = {
        name: micros(schema, of, settings.texts.get(of), settings.time_unit)
        for name, of in found.items()
    }
    rows = rows.withColumns(in_us)
    doubts = (*_doubts(schema, found), *_other_units(settings, found))
    rows = rows.withColumn(WHY, F.coalesce(WHY, *doubts))
    is_rejected = F.col(WHY).isNotNull()
    # Here and not sooner: a row that can be read is not to be made into text.
    raw = F.col(RAW) if RAW in rows.columns else F.to_json(F.struct(*schema.names))
    beside = {RAW: raw, FILE: F.col(FILE), LINE: F.col(LINE)}
    rejected = (F.when(is_rejected, column).alias(name) for name, column in beside.items())
    rows = rows.select(*schema.names, *found, WHY, *rejected, UNKNOWN)
    counts = [F.count_if(is_rejected).alias("rejected"), F.collect_set(UNKNOWN).alias("unknown")]
    return rows.observe(metrics, *counts).drop(UNKNOWN)


def unknown_columns(counts: Row | dict[str, list[list[str]]]) -> set[str]:
    """Keys of lines that are no column, of the metrics of what was read."""
    return {name for names in counts["unknown"] for name in names}


def _read_lines(
    reader: DataFrameReader | DataStreamReader, folder: Path, settings: Settings
) -> DataFrame:
    lines = reader.format("text").load(str(folder)).where(F.trim(LINE_TEXT) != "")
    schema = settings.columns
    whole = StructType([StructField(ROW, schema), StructField(BROKEN, StringType())])
    # Within another object, what follows the end of an object on its line is an error.
    text = F.concat(F.lit(f'{{"{ROW}":'), F.col(LINE_TEXT), F.lit("}"))
    parsed = F.from_json(text, whole, {"columnNameOfCorruptRecord": BROKEN})
    keys = F.array_except(F.json_object_keys(LINE_TEXT), F.array(*map(F.lit, schema.names)))
    rows = lines.select("*", "_metadata", parsed.alias("_parsed"), keys.alias(UNKNOWN))
    row = F.col(f"_parsed.{ROW}")
    # Left alone, Spark puts another letter in the place of these two, and delivers the row.
    why = F.when(~F.is_valid_utf8(LINE_TEXT), NO_TEXT)
    why = why.when(F.col(LINE_TEXT).rlike(HALF), NO_LETTER).when(row.isNull(), NO_OBJECT)
    why = why.when(F.col(f"_parsed.{BROKEN}").isNotNull(), WRONG_TYPE)
    in_path = set(lines.columns) - {LINE_TEXT}  # folders named `column=value`
    return rows.select(
        *(F.col(name) if name in in_path else row[name].alias(name) for name in schema.names),
        why.alias(WHY),
        F.make_valid_utf8(LINE_TEXT).alias(RAW),
        F.col("_metadata.file_path").alias(FILE),
        F.lit(None).cast("bigint").alias(LINE),  # looked up by who writes the rejects
        UNKNOWN,
    )


def _read_parquet(
    reader: DataFrameReader | DataStreamReader, folder: Path, settings: Settings
) -> DataFrame:
    rows = reader.format("parquet").schema(settings.columns).load(str(folder))
    return rows.select(
        *settings.columns.names,
        F.lit(None).cast("string").alias(WHY),
        F.col("_metadata.file_path").alias(FILE),
        (F.col("_metadata.row_index") + 1).alias(LINE),
        F.lit(None).cast("array<string>").alias(UNKNOWN),  # the files themselves say it
    )


def _doubts(schema: StructType, found: dict[str, str]) -> Iterable[Column]:
    is_event = ~F.coalesce("ends", F.lit(False)) if "ends" in schema.names else F.lit(True)
    yield F.when(F.col("process").isNull() & is_event, "no `process`")
    for name, of in found.items():
        yield F.when(F.col(of).isNotNull() & F.col(name).isNull(), f"`{of}` is no time")


def _other_units(settings: Settings, found: dict[str, str]) -> Iterable[Column]:
    """Where whole numbers are times of this century, one that is so in another unit is a mistake
    of who wrote it."""
    if settings.are_dates:
        schema, unit = settings.columns, settings.time_unit
        for name in whole_times(schema, found.values(), settings.texts):
            number = whole_number(schema, name)
            for other in UNITS:
                why = f"`{name}` looks like {NAMES[other]}, and others are {NAMES[unit]}"
                if other != unit:
                    yield F.when(number.between(*span(other)), why)
