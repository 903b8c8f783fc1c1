"""Read an event log from disk for the verifier: its broadcasts and deliveries, run by run."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from beforehand.errors import InputError, visible
from beforehand.events import EVENTS_FILE, FILE_COLUMNS, KINDS, NODE_SUFFIX, OPTIONAL_COLUMNS, About
from beforehand.files import MANIFEST, compare, read_parquet, recorded_marks
from beforehand.kernels.verify.causality import History
from beforehand.kernels.verify.index import RepeatedBroadcast, index_log
from beforehand.verify.about import about_run, read_about
from beforehand.verify.floors import FloorBreaches, Floors

NODE_FILES = f"*{NODE_SUFFIX}"
"""The log files that a real node writes, in parts: see `verify.node_logs`."""
STDIN = Path("-")
PARQUET_MARK, GZIP_MARK = b"PAR1", b"\x1f\x8b"
TEXTS = ("run", "kind")
NUMBERS = tuple(name for name in FILE_COLUMNS if name not in (*TEXTS, *OPTIONAL_COLUMNS))
READ_COLUMNS = (*TEXTS, *NUMBERS)
"""The columns that the verifier needs."""
SHOWN_MAX = 5
HINT = "give a Parquet file with the columns of the event log, or a folder of them"
NUMBERED_HINT = "`step` is the order of all events of one run"


Column = NDArray[Any]
"""The values of one column: an array, or a `stream.StoredColumn`, which reads what is asked for."""


@dataclass(frozen=True)
class Log:
    """The broadcasts and deliveries of one run, in the order in which they happened."""

    run: str
    step: Column
    t_us: Column
    node: Column
    is_broadcast: Column
    origin: Column
    seq: Column
    where: str
    about: About = field(default_factory=About)
    """The metadata of the run."""
    doubts: tuple[str, ...] = ()
    """Reasons why the log may be incomplete."""
    impossible: int = 0
    """The number of deliveries that precede their own broadcast in every possible order."""
    below_floor: FloorBreaches = field(default_factory=FloorBreaches)
    """The deliveries at or below the floor of their node."""
    indexed: History | None = None
    """The history, if the reader of the log made it."""

    def history(self) -> History:
        if self.indexed is not None:
            return self.indexed
        try:
            columns: Any = (self.node, self.is_broadcast, self.origin, self.seq)
            return index_log(*columns)
        except RepeatedBroadcast as error:
            message = f"{self.origin[error.first]}:{self.seq[error.first]}"
            steps = (int(self.step[error.first]), int(self.step[error.second]))
            raise repeated(message, steps, self.run, self.where) from error

    def name(self, node: int) -> str:
        """Return the name of a node from the metadata, or else its number."""
        names = self.about.names
        return visible(names[node]) if 0 <= node < len(names) else str(node)


def repeated(message: str, steps: tuple[int, int], run: str, where: str) -> InputError:
    """Return the error for a message that is broadcast twice."""
    where_twice = f"steps {steps[0]} and {steps[1]} of run `{run}`"
    hint = "origin and seq must name one message"
    return InputError(
        f"message {message} is broadcast twice, in {where_twice}", where=where, hint=hint
    )


def read_logs(files: Path | Sequence[Path], *, content: bytes | None = None) -> Iterator[Log]:
    """Yield every run of one log; a log without rows yields a run without events.

    content: the bytes of the one file, if they were read before.
    """
    paths = (files,) if isinstance(files, Path) else tuple(files)
    where = str(paths[0] if len(paths) == 1 else paths[0].parent)
    if damage := [found for path in paths if (found := _damage(path))]:
        yield empty_log(paths[0], where, tuple(damage))
        return
    contents = {path: content_of(path, content) for path in paths}
    if all(unpacked is None for unpacked in contents.values()):
        from beforehand.verify.stream import read_streamed

        if (log := read_streamed(paths, where)) is not None:
            yield log
            return
    parts = [read_parquet(path, READ_COLUMNS, hint=HINT, content=contents[path]) for path in paths]
    if not any(map(len, parts)):
        joined(parts, NUMBERS, TEXTS, where)
        yield empty_log(paths[0], where, ("there are no events in the log",))
        return
    yield from logs_of(parts, where)


def logs_of(parts: Sequence[pa.Table], where: str) -> Iterator[Log]:
    """Yield every run of a log that is in memory. where: the location for error messages."""
    table = joined(parts, NUMBERS, TEXTS, where)
    metadata = [read_about(part.schema.metadata) for part in parts]
    for name, rows in _by_run(table):
        yield _log(name, rows, where, about_run(name, metadata))


def _by_run(table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Yield each run and its rows, in order of first appearance."""
    names, codes = coded(table["run"])
    present, first = np.unique(codes, return_index=True)
    for code in present[np.argsort(first)]:
        # A single run needs no filter, which would copy the table.
        rows = table if len(present) == 1 else table.filter(pa.array(codes == code))
        yield str(names[code]), rows


def coded(column: Any) -> tuple[list[Any], NDArray[Any]]:
    """Return the distinct values of a text column, and the index of each row's value.

    Integers compare a hundred times faster than text.
    """
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    whole = encoded.unify_dictionaries().combine_chunks()
    return whole.dictionary.to_pylist(), whole.indices.to_numpy(zero_copy_only=False)


def _damage(path: Path) -> str:
    """Return how a file differs from its manifest; empty if it does not, or has no manifest."""
    if path == STDIN:
        return ""
    for folder in path.absolute().parents[:2]:
        if (folder / MANIFEST).is_file():
            try:
                marks = recorded_marks(folder)
            except (InputError, ValueError) as error:
                return f"{MANIFEST}: not a manifest: {error}"
            name = path.absolute().relative_to(folder).as_posix()
            return (
                compare(folder, name, marks[name])
                if name in marks
                else f"{name}: not in its manifest"
            )
    return ""


def empty_log(path: Path, where: str, doubts: tuple[str, ...]) -> Log:
    named = path.parent.name if path.name == EVENTS_FILE else path.stem
    none = np.zeros(0, np.int64)
    return Log(named, none, none, none, none.astype(bool), none, none, where, doubts=doubts)


def content_of(path: Path, given: bytes | None = None) -> bytes | None:
    """Return the content of gzip or of the standard input; None for a plain Parquet file.

    given: the bytes of the file, if they were read before.

    Raise InputError if the first bytes are not those of Parquet, before Arrow parses the content.
    """
    content = given
    try:
        if content is not None:
            begins = content
        elif path == STDIN:
            content = begins = sys.stdin.buffer.read()
        elif not path.is_file():
            raise InputError("not a regular file", where=str(path), hint=HINT)
        else:
            with path.open("rb") as opened:
                begins = opened.read(len(PARQUET_MARK))
        if begins[:2] == GZIP_MARK:
            content = gzip.decompress(path.read_bytes() if content is None else content)
            begins = content
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot read it: {error}", where=str(path), hint=HINT) from error
    if not begins.startswith(PARQUET_MARK):
        raise InputError("not a Parquet file", where=str(path), hint=HINT)
    if _holds_several(path) if content is None else _is_several(content):
        hint = "give the folder that they were in"
        raise InputError("several Parquet files, one behind the other", where=str(path), hint=hint)
    return content


def _holds_several(path: Path) -> bool:
    with path.open("rb") as opened, mmap(opened.fileno(), 0, access=ACCESS_READ) as content:
        return _is_several(content)


def _is_several(content: bytes | mmap) -> bool:
    """Return whether several Parquet files were concatenated, as with `cat`.

    Arrow would read rows of the first file by the footer of the last.
    """
    return content.find(PARQUET_MARK * 2) > 0


def joined(
    parts: Sequence[pa.Table], numbers: Sequence[str], texts: Sequence[str], where: str
) -> pa.Table:
    """Return the columns of an event log as one table.

    Raise InputError if a column is missing or has a wrong type.
    """
    names = (*texts, *numbers)
    missing = [name for name in names if any(name not in part.column_names for part in parts)]
    if missing:
        listed = ", ".join(f"`{name}`" for name in missing)
        raise InputError(f"no column {listed} in the event log", where=where, hint=HINT)
    if twice := [n for part in parts for n, many in Counter(part.column_names).items() if many > 1]:
        raise InputError(f"column `{twice[0]}` is there twice", where=where, hint=HINT)
    tables = []
    for part in parts:
        columns: Any = {name: _texts(part[name], name, where) for name in texts}
        columns |= {name: _numbers(part[name], name, where) for name in numbers}
        tables.append(pa.table(columns))
    try:
        return pa.concat_tables(tables).unify_dictionaries()
    except pa.ArrowInvalid as error:
        problem = "the files do not have the same columns"
        raise InputError(problem, where=where, hint=HINT) from error


def _texts(column: Any, name: str, where: str) -> Any:
    value = _value_type(column, name, where)
    is_text = pa.types.is_string(value) or pa.types.is_large_string(value)
    if pa.types.is_string_view(value):
        return column.cast(pa.string())
    if not is_text and not (name == "run" and pa.types.is_integer(value)):
        raise InputError(f"column `{name}` is {column.type}, not text", where=where, hint=HINT)
    return column


def _numbers(column: Any, name: str, where: str) -> Any:
    """Return a column as signed 64-bit integers."""
    if not pa.types.is_integer(_value_type(column, name, where)):
        raise InputError(f"column `{name}` is {column.type}, not whole numbers", where=where)
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid as error:
        problem = f"column `{name}` has numbers beyond 64 bits"
        raise InputError(problem, where=where, hint=HINT) from error


def _value_type(column: Any, name: str, where: str) -> Any:
    if column.null_count:
        raise InputError(f"empty fields in the column `{name}`", where=where, hint=HINT)
    return column.type.value_type if pa.types.is_dictionary(column.type) else column.type


def broadcasts_and_deliveries(kind: Any) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return for each row whether it is a broadcast, and whether it is one or a delivery."""
    kinds, codes = coded(kind)
    is_broadcast = np.array([kind == "broadcast" for kind in kinds], np.bool_)[codes]
    kept = np.array([kind in ("broadcast", "deliver") for kind in kinds], np.bool_)[codes]
    return is_broadcast, kept


def _log(run: str, table: pa.Table, where: str, about: About) -> Log:
    table = _in_order(run, table, where)
    is_broadcast, kept = broadcasts_and_deliveries(table["kind"])
    columns: dict[str, Any] = {name: table[name].to_numpy()[kept] for name in NUMBERS}
    steps = int(table["step"][-1].as_py()) + 1
    strange = int((columns["node"] != columns["origin"])[is_broadcast[kept]].sum())
    kinds = count_kinds(table["kind"])
    doubts = tuple(doubts_of(about, steps, len(table), kinds, strange))
    floors = Floors()
    if kinds["skip"]:
        floors.add_table(table)
    return Log(
        run=run,
        **columns,
        is_broadcast=is_broadcast[kept],
        where=where,
        about=about,
        doubts=doubts,
        below_floor=floors.breaches(),
    )


def _in_order(run: str, table: pa.Table, where: str) -> pa.Table:
    step = table["step"].to_numpy()
    if not (np.diff(step) > 0).all():
        table = table.sort_by("step")
        step = table["step"].to_numpy()
        again = np.flatnonzero(np.diff(step) == 0)
        if len(again):
            problem = f"step {step[again[0]]} of run `{run}` is there twice"
            raise InputError(problem, where=where, hint=NUMBERED_HINT)
    if step[0] < 0:
        problem = f"step {step[0]} of run `{run}` is below 0"
        raise InputError(problem, where=where, hint=NUMBERED_HINT)
    return table


def doubts_of(
    about: About, steps: int, rows: int, kinds: Counter[str], strange: int
) -> Iterator[str]:
    """Yield the reasons why a log may be incomplete or wrong.

    steps: one more than the highest step of any kind.
    rows, kinds: how many events there are, in all and by kind.
    strange: the number of broadcasts by another node than their origin.
    """
    if missing := max(steps, about.events or 0) - rows:
        yield f"{missing:,} steps are missing from the log"
    if about.events is not None and rows > about.events:
        yield f"{rows:,} events where there were {about.events:,}"
    yield from strange_kinds(kinds, KINDS)
    yield from about.doubts
    yield from doubt_of_speakers(strange)


def doubt_of_speakers(strange: int) -> Iterator[str]:
    """Yield a doubt about broadcasts that another node than the origin made.

    strange: the number of such broadcasts.
    """
    if strange:  # node or origin is wrong, and so is the causal past
        yield f"{strange:,} broadcasts are by another node than their origin"


def count_kinds(column: Any) -> Counter[str]:
    """Return how many events there are of each kind."""
    kinds, codes = coded(column)
    many = np.bincount(codes, minlength=len(kinds)).tolist()
    return Counter({str(kind): many for kind, many in zip(kinds, many, strict=True) if many})


def strange_kinds(kinds: Counter[str], known: Sequence[str]) -> Iterator[str]:
    """Yield a doubt about events of unknown kinds: they may be misspelt deliveries."""
    found = Counter({kind: count for kind, count in kinds.items() if kind not in known})
    if not found:
        return
    shown = [f"`{kind[:40]}` {count:,}" for kind, count in found.most_common(SHOWN_MAX)]
    shown += [f"{len(found) - SHOWN_MAX} more kinds"] if len(found) > SHOWN_MAX else []
    yield f"{found.total():,} events are of no known kind: {', '.join(shown)}"
