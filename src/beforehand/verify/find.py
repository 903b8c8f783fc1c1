"""Which files below a path are event logs: what is one is judged, whatever its name."""

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
from beforehand.files import unreadable
from beforehand.verify.event_log import (
    COLUMNS,
    EVENTS_FILE,
    GZIP_MARK,
    HINT,
    NODE_FILES,
    PARQUET_MARK,
    STDIN,
)
from beforehand.verify.plan import PLAN_FILE

PACKED = ".gz"


def find_logs(path: Path) -> list[tuple[Path, ...]]:
    """The event logs at a path, each as its files.

    A file is one, and so is what comes in where the path is `-`. In a folder they are those of all
    runs below it, by the name of the file, which may be a folder of parts; what real nodes wrote is
    one log, all of it together. All other logs below the folder are one in parts.
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
        whole = _named(file, path)
        if fnmatch(file.name, NODE_FILES):
            nodes.append(file)
        elif whole is not None:
            named.setdefault(whole, []).append(file)
        else:
            others.append(file)
    found = [tuple(parts) for parts in (*named.values(), nodes) if parts]
    if found:
        # In a folder that `beforehand run` wrote to, the other tables are known to be no logs.
        others = [] if (path / PLAN_FILE).exists() else list(filter(_is_log, others))
    if others:
        found.append(tuple(others))
    if not found:
        raise InputError(f"no `{EVENTS_FILE}` in the folder", where=str(path), hint=HINT)
    return found


def _tables(folder: Path) -> Iterable[Path]:
    """All Parquet files below a folder, packed or not; a name with a dot or a line is not there.

    What has the name of one and is none, as a link to nowhere, is among them: its reader refuses
    it.
    """
    for file in sorted(_files(folder)):
        if _has_name(file) or (file.is_file() and _begins(file) == PARQUET_MARK):
            yield file


def _files(folder: Path) -> Iterator[Path]:
    """Also those behind links to folders, of each folder once: links may go round in circles."""
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
    """A folder that cannot be looked into may hold a log."""
    raise unreadable(Path(error.filename), error, HINT)


def _has_name(file: Path) -> bool:
    return file.name.casefold().removesuffix(PACKED).endswith(".parquet")


def _named(file: Path, root: Path) -> Path | None:
    """The log that a file is, or is a part of, by its own name or that of a folder above it."""
    if file.name.removesuffix(PACKED) == EVENTS_FILE:
        return file
    above = [folder for folder in file.relative_to(root).parents if folder.name == EVENTS_FILE]
    return root / above[0] if above else None


def _begins(file: Path) -> bytes:
    """The first bytes, of what is packed those inside."""
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
    """Whether it has the columns. What cannot be read may be a log, and its reader says why not;
    but not beside the log of a run, where its other tables are."""
    if not file.is_file():
        return True
    try:
        is_packed = file.name.casefold().endswith(PACKED)
        source = io.BytesIO(gzip.decompress(file.read_bytes())) if is_packed else file
        return set(COLUMNS) <= set(pq.read_schema(source).names)
    except (OSError, EOFError, zlib.error, pa.ArrowException):
        return not (file.parent / EVENTS_FILE).exists()
