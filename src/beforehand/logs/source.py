"""Open what a user names as a log: a file, packed or not, the standard input, or a folder."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zipfile
import zlib
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from beforehand.errors import InputError
from beforehand.files import unreadable

ZIP_MARK = b"PK\x03\x04"
Packing = Literal["gzip", "zstd", "bz2"]
PACKINGS: dict[bytes, Packing] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}
"""How a packed file begins."""
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
BYTES_MAX = 1 << 30
"""A larger log of another system is refused: it would not fit into memory as events."""
HEAD_BYTES = 1 << 16
"""How much of a file detection looks at."""
HINT = "give a log, a folder of logs, or `-`; `beforehand logs` lists the formats"


@dataclass(eq=False)
class Source:
    """One file in memory."""

    name: str
    """The path of the file; for a member of an archive, `archive.zip/member`."""
    data: bytes

    @cached_property
    def text(self) -> str:
        """The content as text. Bytes that are not UTF-8 are replaced."""
        return self.data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n")

    @cached_property
    def head(self) -> str:
        """The first lines, whole, for detection."""
        begin = self.text[:HEAD_BYTES]
        return begin if len(begin) == len(self.text) else begin.rpartition("\n")[0] or begin

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    @cached_property
    def _starts(self) -> list[int]:
        starts, at = [0], self.text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = self.text.find("\n", at + 1)
        return starts

    def line_at(self, offset: int) -> int:
        """Return the line number of an offset in the text; lines count from 1."""
        return bisect_right(self._starts, offset)

    @property
    def short(self) -> str:
        """The name of the file without its folders and without the suffix of a packer."""
        return self.name.rpartition("/")[2].removesuffix(".gz").removesuffix(".zst")

    @property
    def folder(self) -> str:
        return self.name.rpartition("/")[0]


def open_sources(path: Path) -> list[Source]:
    """Return the files at a path, sorted by name, unpacked."""
    if path == Path("-"):
        return _unpacked("-", sys.stdin.buffer.read())
    if not path.exists():
        raise InputError("no such file or folder", where=str(path), hint=HINT)
    if path.is_dir():
        found = [source for file in sorted(_files(path)) for source in _open(file)]
        if not found:
            raise InputError("no files in the folder", where=str(path), hint=HINT)
        return found
    return _open(path)


def source_of(name: str, data: bytes) -> list[Source]:
    """Return the files in bytes that were read before."""
    return _unpacked(name, data)


def _open(path: Path) -> list[Source]:
    if not path.is_file():
        raise InputError("not a regular file", where=str(path), hint=HINT)
    try:
        size = path.stat().st_size
        if size > BYTES_MAX:
            raise _too_large(str(path))
        return _unpacked(str(path), path.read_bytes())
    except OSError as error:
        raise unreadable(path, error, HINT) from error


def _unpacked(name: str, data: bytes) -> list[Source]:
    if data[:4] == ZIP_MARK:
        return list(_members(name, data))
    if data[:2] in UTF16_MARKS:
        return [Source(name, data.decode("utf-16", errors="replace").encode())]
    packing = next((word for mark, word in PACKINGS.items() if data.startswith(mark)), None)
    if packing is None:
        return [Source(name, data)]
    try:
        plain = _read_packed(data, packing)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot read it: {error}", where=name, hint=HINT) from error
    if len(plain) > BYTES_MAX:
        raise _too_large(name)
    return [Source(name, plain)]


def _read_packed(data: bytes, packing: Packing) -> bytes:
    """Return the content of packed bytes, up to one byte more than is allowed."""
    if packing == "gzip":
        with gzip.open(io.BytesIO(data)) as opened:
            return opened.read(BYTES_MAX + 1)
    import pyarrow as pa  # slow to import, and most logs are not packed

    with pa.CompressedInputStream(pa.BufferReader(data), packing) as stream:
        found: bytes = stream.read(BYTES_MAX + 1)
    return found


def _members(name: str, data: bytes) -> Iterator[Source]:
    room = BYTES_MAX
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in sorted(archive.namelist()):
                if member.endswith("/") or _is_hidden(member):
                    continue
                with archive.open(member) as opened:
                    plain = opened.read(room + 1)
                room -= len(plain)
                if room < 0:
                    raise _too_large(name)
                yield Source(f"{name}/{member}", plain)
    except (zipfile.BadZipFile, OSError, EOFError, zlib.error, RuntimeError) as error:
        raise InputError(f"cannot read it: {error}", where=name, hint=HINT) from error


def _too_large(name: str) -> InputError:
    hint = "write it as Parquet with the columns of the event log, which has no such bound"
    return InputError(f"more than {BYTES_MAX >> 20:,} MiB of text", where=name, hint=hint)


def _is_hidden(path: str) -> bool:
    return any(part[0] in "._" for part in path.split("/") if part)


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder; names that start with `.` or `_` are skipped."""
    for at, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name[0] not in "._")
        yield from (Path(at, name) for name in names if name[0] not in "._")
