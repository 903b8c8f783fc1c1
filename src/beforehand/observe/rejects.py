"""Keep unreadable rows as they were found: the reason, the file, the line, and the text.

A worker writes them before it orders the others, and before Spark commits the micro-batch. A file
is named by a hash of its content and appears atomically, so a repeated micro-batch changes nothing.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc

WHY, RAW, FILE, LINE = "_why", "_raw", "_file", "_line"
REJECTED = (WHY, RAW, FILE, LINE)
"""Columns beside those of a row while it is read; all null if the row is readable."""

NAME_DIGITS = 20


def folder_of_rejects(out: Path) -> Path:
    """Return the folder of rejects, beside the output.

    Inside the output, its readers would take the rejects for results.
    """
    return out.with_name(f"{out.name}-rejects")


def sift(rows: pa.Table, folder: Path) -> pa.Table:
    """Return the readable rows, and write the others to the folder."""
    is_readable = pc.is_null(rows[WHY])
    if rows[WHY].null_count < len(rows):
        rejected = rows.select(list(REJECTED)).filter(pc.invert(is_readable))
        write_rejects(rejected.to_pylist(), folder)
        rows = rows.filter(is_readable)
    return rows.drop_columns(list(REJECTED))


def write_rejects(rows: list[dict[str, Any]], folder: Path) -> None:
    """Write rows to a file, in one order whatever the order in which Spark has them."""
    rows = sorted(rows, key=lambda row: (row[FILE], row[LINE] or 0, row[RAW] or "", row[WHY]))
    numbers = _LineNumbers()
    lines = []
    for row in rows:
        path = local_path(row[FILE])
        line = row[LINE] if row[LINE] is not None else numbers.find(path, row[RAW])
        rejected = {"file": path, "line": line, "why": row[WHY], "raw": row[RAW]}
        lines.append(json.dumps(rejected, ensure_ascii=False))
    data = "".join(f"{line}\n" for line in lines).encode()
    name = hashlib.sha256(data).hexdigest()[:NAME_DIGITS]
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f".{name}.{os.getpid()}"
    unfinished.write_bytes(data)
    unfinished.replace(folder / f"{name}.jsonl")


def read_rejects(folder: Path, files_max: int | None = None) -> list[dict[str, Any]]:
    """Return the rejects in order of files and lines.

    files_max: read only so many files of the folder.
    """
    files = sorted(folder.glob("*.jsonl"))[:files_max]
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return sorted(rows, key=lambda row: (row["file"], row["line"] or 0))


def local_path(address: str) -> str:
    """Return the local path of a `file:` address; any other address unchanged."""
    parts = urlsplit(address)
    return unquote(parts.path) if parts.scheme == "file" else address


class _LineNumbers:
    """Find the line number of a rejected row by its text.

    Spark does not report line numbers. Only rejected rows are looked up, and only if this machine
    has the file.
    """

    def __init__(self) -> None:
        self._files: dict[str, dict[str, list[int]]] = {}

    def find(self, path: str, text: str) -> int | None:
        if path not in self._files:
            self._files[path] = _lines_of(Path(path))
        numbers = self._files[path].get(text, [])
        # Equal lines get their numbers in turn.
        return numbers.pop(0) if len(numbers) > 1 else numbers[0] if numbers else None


def _lines_of(path: Path) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    try:
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", errors="replace") as lines:
            for number, line in enumerate(lines, start=1):
                found.setdefault(line.rstrip("\n"), []).append(number)
    except OSError:
        return {}
    return found
