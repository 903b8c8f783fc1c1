"""Find the event logs below a path, by their content as well as by their names."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pyarrow.parquet as pq

from beforehand.errors import InputError
from beforehand.events import BESIDE, EVENTS_FILE
from beforehand.files import unreadable
from beforehand.verify.event_log import (
    GZIP_MARK,
    HINT,
    NODE_FILES,
    PARQUET_MARK,
    READ_COLUMNS,
    STDIN,
)
from beforehand.verify.plan import PLAN_FILE

PACKED = ".gz"


def find_logs(path: Path) -> list[tuple[Path, ...]]:
    """Return the event logs at a path, each as its files.

    A file is one log, and so is the standard input where the path is `-`. In a folder, each
    `events.parquet` below it is one log; it may be a folder of parts. All files that real nodes
    wrote are one log together. All other logs below the folder are the parts of one log.
    """
    if path == STDIN:
        return [(path,)]
    if not path.exists():
        raise InputError("no such file or folder", where=str(path), hint=HINT)
    if not path.is_dir():
        return [(path,)]
    named: dict[Path, list[Path]] = {}
    nodes: list[Path] = []
    others: list[Path] = []
    for file in _tables(path):
        if file.name.endswith(BESIDE) and not _is_log(file):
            continue
        whole = _named(file, path)
        if fnmatch(file.name, NODE_FILES):
            nodes.append(file)
        elif whole is not None:
            named.setdefault(whole, []).append(file)
        else:
            others.append(file)
    found = [tuple(parts) for parts in (*named.values(), nodes) if parts]
    if found:
        # `beforehand run` wrote this folder, so its other tables are not event logs.
        others = [] if (path / PLAN_FILE).exists() else list(filter(_is_log, others))
    if others:
        found.append(tuple(others))
    if not found:
        raise InputError(f"no `{EVENTS_FILE}` in the folder", where=str(path), hint=HINT)
    return found


def _tables(folder: Path) -> Iterable[Path]:
    """Yield all Parquet files below a folder, compressed or not.

    Files and folders whose names start with `.` or `_` are skipped. A broken file or link with the
    name of a Parquet file is included, so that its reader reports it.
    """
    for file in sorted(_files(folder)):
        if _has_name(file) or (file.is_file() and begins_of(file) == PARQUET_MARK):
            yield file


def holds_tables(folder: Path) -> bool:
    """Return whether a folder has Parquet files, or what has their name."""
    return next(iter(_tables(folder)), None) is not None


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, following links.

    Each folder is visited once, as links may form cycles.
    """
    seen: set[str] = set()
    for at, folders, files in os.walk(folder, followlinks=True, onerror=_refuse):
        real = os.path.realpath(at)
        folders[:] = sorted(name for name in folders if name[0] not in "._")
        if real in seen:
            folders.clear()
        else:
            yield from (Path(at, name) for name in files if name[0] not in "._")
        seen.add(real)


def _refuse(error: OSError) -> NoReturn:
    """Raise InputError for a folder that cannot be listed: it may hold a log."""
    raise unreadable(Path(error.filename), error, HINT)


def _has_name(file: Path) -> bool:
    return file.name.casefold().removesuffix(PACKED).endswith(".parquet")


def _named(file: Path, root: Path) -> Path | None:
    """Return the `events.parquet` that a file is or is a part of; None if there is none."""
    if file.name.removesuffix(PACKED) == EVENTS_FILE:
        return file
    above = [folder for folder in file.relative_to(root).parents if folder.name == EVENTS_FILE]
    return root / above[0] if above else None


def begins_of(file: Path) -> bytes:
    """Return the first bytes, after decompression if the file is gzip."""
    try:
        with file.open("rb") as opened:
            begins = opened.read(len(PARQUET_MARK))
        if begins[: len(GZIP_MARK)] != GZIP_MARK:
            return begins
        with gzip.open(file) as opened:
            return opened.read(len(PARQUET_MARK))
    except (OSError, EOFError, zlib.error):
        return b""


def _is_log(file: Path) -> bool:
    """Return whether a file has the columns of an event log.

    An unreadable file counts as a log, so that its reader reports why. The exception is a file
    beside the log of a run: there it is another table of the run.
    """
    if not file.is_file():
        return True
    try:
        is_packed = file.name.casefold().endswith(PACKED)
        source = io.BytesIO(gzip.decompress(file.read_bytes())) if is_packed else file
        return set(READ_COLUMNS) <= set(pq.read_schema(source).names)
    except (OSError, EOFError, zlib.error, pa.ArrowException):
        return not (file.parent / EVENTS_FILE).exists()
