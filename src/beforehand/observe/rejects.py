"""Rows that cannot be read, kept as they were found: why, from which file and line, and their text.

A worker writes them while it packs the others, before Spark commits the batch. A file is named
after what is in it and appears whole, so a batch that is done again changes nothing.
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
"""What stands beside the columns of a row on its way in; all null where it can be read."""

NAME_DIGITS = 20


def folder_of_rejects(out: Path) -> Path:
    """Beside the output: who reads that must not stumble over them."""
    return out.with_name(f"{out.name}-rejects")


def sift(rows: pa.Table, folder: Path) -> pa.Table:
    """The rows that can be read; the others are in the folder afterwards."""
    is_readable = pc.is_null(rows[WHY])
    if rows[WHY].null_count < len(rows):
        rejected = rows.select(list(REJECTED)).filter(pc.invert(is_readable))
        write_rejects(rejected.to_pylist(), folder)
        rows = rows.filter(is_readable)
    return rows.drop_columns(list(REJECTED))


def write_rejects(rows: list[dict[str, Any]], folder: Path) -> None:
    numbers = _LineNumbers()
    lines = []
    for row in rows:
        path = local_path(row[FILE])
        line = row[LINE] if row[LINE] is not None else numbers.find(path, row[RAW])
        said = {"file": path, "line": line, "why": row[WHY], "raw": row[RAW]}
        lines.append(json.dumps(said, ensure_ascii=False))
    data = "".join(f"{line}\n" for line in lines).encode()
    name = hashlib.sha256(data).hexdigest()[:NAME_DIGITS]
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f".{name}.{os.getpid()}"
    unfinished.write_bytes(data)
    unfinished.replace(folder / f"{name}.jsonl")


def read_rejects(folder: Path, files_max: int | None = None) -> list[dict[str, Any]]:
    """In order of files and lines.

    files_max: of the folder, where some rows are enough.
    """
    files = sorted(folder.glob("*.jsonl"))[:files_max]
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return sorted(rows, key=lambda row: (row["file"], row["line"] or 0))


def local_path(address: str) -> str:
    """The path of a file on this machine; any other address as it is."""
    parts = urlsplit(address)
    return unquote(parts.path) if parts.scheme == "file" else address


class _LineNumbers:
    """Spark does not say which line it reads, so the text is looked up in its file: only for
    rows that are rejected, and only where this machine has the file."""

    def __init__(self) -> None:
        self._files: dict[str, dict[str, list[int]]] = {}

    def find(self, path: str, text: str) -> int | None:
        if path not in self._files:
            self._files[path] = _lines_of(Path(path))
        numbers = self._files[path].get(text, [])
        # Lines of the same text are numbered one after the other.
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
