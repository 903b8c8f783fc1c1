"""Decide which logs are of another system, and read them."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from beforehand.errors import InputError
from beforehand.files import read_parquet
from beforehand.logs.formats import read_sources
from beforehand.logs.mapping import Fields, detected
from beforehand.logs.model import Reading
from beforehand.logs.profile import read_profile, read_with
from beforehand.logs.readers.otf2_traces import anchor_of, read_otf2
from beforehand.logs.readers.tables import Record, read_records
from beforehand.logs.source import open_sources, source_of
from beforehand.verify.event_log import GZIP_MARK, PARQUET_MARK, content_of
from beforehand.verify.find import PACKED, begins_of, holds_tables

if TYPE_CHECKING:
    import pandas as pd

PARQUET_NAMES = (".parquet", f".parquet{PACKED}")
TABLE = "table"


@dataclass(frozen=True)
class LogOptions:
    """How the caller wants a log to be read."""

    fields: Fields | None = None
    profile: Path | None = None
    is_whole: bool = False
    has_complete_reads: bool = False

    @property
    def is_any(self) -> bool:
        return self.fields is not None or self.profile is not None


def is_foreign(path: Path, content: bytes | None) -> bool:
    """Return whether a path is a log of another system.

    content: the bytes of the standard input, if the path is `-`.
    """
    if content is not None:
        return _mark_of(content) != PARQUET_MARK or not _is_own(path, content)
    if path.is_dir():
        return not holds_tables(path) and any(file.is_file() for file in path.rglob("[!._]*"))
    if not path.is_file() or path.name.casefold().endswith(PARQUET_NAMES):
        return path.is_file() and not _is_own(path, None)
    return begins_of(path) != PARQUET_MARK or not _is_own(path, None)


def _mark_of(content: bytes) -> bytes:
    if content[:2] != GZIP_MARK:
        return content[:4]
    try:
        return zlib.decompressobj(31).decompress(content, 4)
    except zlib.error:
        return b""


def _is_own(path: Path, content: bytes | None) -> bool:
    """Return whether a Parquet file is an event log of ours, or nothing else that can be read.

    The reader of event logs then reports what is wrong.
    """
    try:
        plain = content_of(path, content)
        names = pq.read_schema(path if plain is None else io.BytesIO(plain)).names
    except (InputError, OSError, pa.ArrowException):
        return True
    if {"origin", "seq"} <= {*names}:  # ours; a column may be missing
        return True
    roles = detected(names)
    causes = (
        {"clock"} & {*roles} or {"kind", "message"} <= {*roles} or {"id", "parents"} <= {*roles}
    )
    return "node" not in roles or not causes


def read(path: Path, content: bytes | None, asked: LogOptions) -> list[Reading]:
    """Read a log of another system, or a Parquet file with other columns than ours."""
    mark = b"" if path.is_dir() else begins_of(path) if content is None else _mark_of(content)
    if mark == PARQUET_MARK:
        table = read_parquet(path, content=content_of(path, content))
        return read_table(table, asked, str(path))
    if content is None and asked.profile is None and (anchor := anchor_of(path)):
        return [read_otf2(anchor)]
    sources = source_of("-", content) if content is not None else open_sources(path)
    if asked.profile is not None:
        return [read_with(read_profile(asked.profile), sources, asked.fields)]
    return read_sources(sources, asked.fields)


def read_table(table: pa.Table, asked: LogOptions, where: str = TABLE) -> list[Reading]:
    """Read an Arrow table. The line of a row is its number, counted from 1."""
    fields = asked.fields
    if asked.profile is not None:
        fields = read_profile(asked.profile).fields
    reading = Reading("table", f"columns {', '.join(table.column_names)[:80]}", [], [where])
    return [read_records(_rows(table, where), reading, fields, where)]


def _rows(table: pa.Table, where: str) -> Iterator[Record]:
    at = 0
    for batch in table.to_batches(1 << 16):
        for record in batch.to_pylist():
            at += 1
            yield where, at, record


def arrow_of(table: pa.Table | pd.DataFrame | Any) -> pa.Table:
    """Return an Arrow table or a DataFrame of pandas as an Arrow table."""
    if isinstance(table, pa.Table):
        return table
    try:
        return pa.Table.from_pandas(table, preserve_index=False)
    except (AttributeError, TypeError, pa.ArrowException) as error:
        problem = f"not a log: a {type(table).__name__}"
        hint = "give a path, an Arrow table or a DataFrame of pandas"
        raise InputError(problem, hint=f"{hint}: {error}") from error
