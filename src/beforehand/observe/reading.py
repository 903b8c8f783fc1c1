"""Read rows from files; unreadable rows carry the reason, their text, their file and their line.

By default Spark reads a broken line as a row of nulls. It takes only the first of two objects on
one line, and drops values without a known column.
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
"""The name of the read counts among the observed metrics of a query."""

LINE_TEXT, ROW, BROKEN, UNKNOWN = "value", "_row", "_broken", "_unknown"
NO_TEXT, NO_LETTER = "not UTF-8 text", "an escape that is half of a letter"
HIGH, LOW = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F]"
HALF = rf"(?<!\\)(?:\\\\)*(?:{HIGH}(?!{LOW})|(?<!{HIGH}){LOW})"
r"""Matches one `\uXXXX` of a surrogate pair without the other.

After an escaped backslash the same characters are plain text.
"""
NO_OBJECT = "not one JSON object"
WRONG_TYPE = "a value is not of the type of its column"


def read_events(
    reader: DataFrameReader | DataStreamReader,
    folder: Path,
    settings: Settings,
    metrics: str | Observation = READ,
) -> DataFrame:
    """Return the columns of the settings, the times in microseconds, and `REJECTED`."""
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
    # Only rejected rows are converted to text, so the conversion comes last.
    raw = F.col(RAW) if RAW in rows.columns else F.to_json(F.struct(*schema.names))
    beside = {RAW: raw, FILE: F.col(FILE), LINE: F.col(LINE)}
    rejected = (F.when(is_rejected, column).alias(name) for name, column in beside.items())
    rows = rows.select(*schema.names, *found, WHY, *rejected, UNKNOWN)
    counts = [F.count_if(is_rejected).alias("rejected"), F.collect_set(UNKNOWN).alias("unknown")]
    return rows.observe(metrics, *counts).drop(UNKNOWN)


def unknown_columns(counts: Row | dict[str, list[list[str]]]) -> set[str]:
    """Return the keys of JSON lines without a column, from the metrics of the read."""
    return {name for names in counts["unknown"] for name in names}


def _read_lines(
    reader: DataFrameReader | DataStreamReader, folder: Path, settings: Settings
) -> DataFrame:
    lines = reader.format("text").load(str(folder)).where(F.trim(LINE_TEXT) != "")
    schema = settings.columns
    whole = StructType([StructField(ROW, schema), StructField(BROKEN, StringType())])
    # Wrapped in another object, text after the end of the object on a line is an error.
    text = F.concat(F.lit(f'{{"{ROW}":'), F.col(LINE_TEXT), F.lit("}"))
    parsed = F.from_json(text, whole, {"columnNameOfCorruptRecord": BROKEN})
    keys = F.array_except(F.json_object_keys(LINE_TEXT), F.array(*map(F.lit, schema.names)))
    rows = lines.select("*", "_metadata", parsed.alias("_parsed"), keys.alias(UNKNOWN))
    row = F.col(f"_parsed.{ROW}")
    # By default Spark replaces the bad characters in both cases and delivers the row.
    why = F.when(~F.is_valid_utf8(LINE_TEXT), NO_TEXT)
    why = why.when(F.col(LINE_TEXT).rlike(HALF), NO_LETTER).when(row.isNull(), NO_OBJECT)
    why = why.when(F.col(f"_parsed.{BROKEN}").isNotNull(), WRONG_TYPE)
    in_path = set(lines.columns) - {LINE_TEXT}  # folders named `column=value`
    return rows.select(
        *(F.col(name) if name in in_path else row[name].alias(name) for name in schema.names),
        why.alias(WHY),
        F.make_valid_utf8(LINE_TEXT).alias(RAW),
        F.col("_metadata.file_path").alias(FILE),
        F.lit(None).cast("bigint").alias(LINE),  # found by `write_rejects`
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
        F.lit(None).cast("array<string>").alias(UNKNOWN),  # from the files' schemas
    )


def _doubts(schema: StructType, found: dict[str, str]) -> Iterable[Column]:
    is_event = ~F.coalesce("ends", F.lit(False)) if "ends" in schema.names else F.lit(True)
    yield F.when(F.col("process").isNull() & is_event, "no `process`")
    for name, of in found.items():
        yield F.when(F.col(of).isNotNull() & F.col(name).isNull(), f"`{of}` is no time")


def _other_units(settings: Settings, found: dict[str, str]) -> Iterable[Column]:
    """Yield reasons for rows whose time looks like another unit than that of the others.

    They apply only if the whole numbers are times of this century: then another unit is an error of
    the producer.
    """
    if settings.are_dates:
        schema, unit = settings.columns, settings.time_unit
        for name in whole_times(schema, found.values(), settings.texts):
            number = whole_number(schema, name)
            for other in UNITS:
                why = f"`{name}` looks like {NAMES[other]}, and others are {NAMES[unit]}"
                if other != unit:
                    yield F.when(number.between(*span(other)), why)
