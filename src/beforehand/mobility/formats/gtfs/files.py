"""Open the files of a GTFS feed in a zip or a folder, also in a subfolder."""

from __future__ import annotations

import csv
import io
import zipfile
import zlib
from collections.abc import Callable
from lzma import LZMAError
from pathlib import Path, PurePosixPath

from beforehand.errors import InputError, list_some
from beforehand.mobility import lines
from beforehand.mobility.repairs import Repairs

CALLS = "stop_times.txt"
REQUIRED = ("stops.txt", "trips.txt", CALLS)
MACOS = "__MACOSX"
"""The folder in which zips made by macOS hold a metadata copy of each file."""
FIELD_LINES_MAX = 20
"""A field with more lines than this comes from a quote that was never closed."""

BROKEN = (zipfile.BadZipFile, RuntimeError, OSError, EOFError, zlib.error, LZMAError)
"""Errors that corrupt bytes cause; each compression method raises its own."""
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")

Row = dict[str, str]
Open = Callable[[str], bytes | None]


class Feed:
    """The files of one feed. Every problem in them is reported with its file and line."""

    def __init__(self, path: Path, repairs: Repairs) -> None:
        self.path = path
        self.repairs = repairs
        self._open, renamed = _opener(path)
        what = f"named in another way than GTFS has it: {list_some(renamed)}"
        repairs.mend("file_name", "", None, what, len(renamed))
        missing = [name for name in REQUIRED if self._open(name) is None]
        if missing:
            raise InputError(
                f"not a GTFS feed: no {' and no '.join(f'`{name}`' for name in missing)}",
                where=str(path),
                hint="pass the zip or the folder that holds `stop_times.txt`",
            )

    def rows(self, name: str, needed: tuple[str, ...], parse: Callable[[int, Row], None]) -> None:
        """Call `parse(line, row)` for every row; a ValueError from it is a problem of that line.

        A row has every column of the header; a column that the line lacks is empty.
        """
        raw = self._open(name)
        if raw is None:
            return
        where = f"{self.path}/{name}"
        problems = lines.Problems(where)
        text = self._decoded(raw, name)
        if not text.strip() and name not in REQUIRED:
            self.repairs.mend("empty_file", name, None, "a file without a header; taken as none")
            return
        reader = csv.reader(io.StringIO(text, newline=""))
        try:
            header = [field.strip().lower() for field in next(reader, [])]
            for column in needed:
                if column not in header:
                    problems.add(1, f"no column `{column}`", hint="the GTFS reference requires it")
            for column in dict.fromkeys(filter(None, header)):
                if header.count(column) > 1:
                    problems.add(1, f"two columns `{column}`", hint="rename one")
            problems.check()
            empty = dict.fromkeys(header, "")
            for fields in reader:
                if any(map(str.strip, fields)):
                    try:
                        _check_fields(fields, header)
                        stripped = map(str.strip, fields)
                        parse(reader.line_num, empty | dict(zip(header, stripped, strict=False)))
                    except ValueError as error:
                        problems.add(reader.line_num, str(error))
        except csv.Error as error:
            problems.add(reader.line_num, f"no table of commas and quotes: {error}")
        problems.check()

    def _decoded(self, raw: bytes, name: str) -> str:
        if raw.startswith(UTF16_MARKS):
            self.repairs.mend("not_utf8", name, 1, "not UTF-8 text; read as UTF-16")
            return raw.decode("utf-16", errors="replace")
        try:
            return raw.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = raw.count(b"\n", 0, error.start) + 1
            what = f"not UTF-8 text: byte {raw[error.start]:#04x}; read as Windows-1252"
            self.repairs.mend("not_utf8", name, line, what)
            return raw.decode("cp1252", errors="replace")


def whole(row: Row, column: str) -> int:
    """Return the integer in a column."""
    try:
        return int(row[column].removesuffix(".0"))  # some tools write an integer as `5.0`
    except ValueError:
        raise ValueError(f"`{column}` is no whole number: `{row[column]}`") from None


def _check_fields(fields: list[str], header: list[str]) -> None:
    if any(field.strip() for field in fields[len(header) :]):
        raise ValueError(f"{len(fields)} fields under a header of {len(header)}")
    if any(field.count("\n") > FIELD_LINES_MAX for field in fields):
        raise ValueError("a quote is opened and not closed for many lines before this one")


def _opener(path: Path) -> tuple[Open, list[str]]:
    """Return a function that reads a file of the feed, and the files with a wrong name."""
    if path.is_dir():
        files = [file.relative_to(path).as_posix() for file in path.rglob("*") if not file.is_dir()]
        named, renamed = _tables(files, path)
        return lambda name: _bytes_of(path / named[name]) if name in named else None, renamed
    try:
        archive = zipfile.ZipFile(path)
        inner = [n for n in archive.namelist() if n.lower().endswith(".zip") and MACOS not in n]
        if inner and not any(_proper(name).endswith(CALLS) for name in archive.namelist()):
            if len(inner) > 1:
                listed = list_some(inner)
                hint = "unpack it and pass one of them"
                raise InputError(f"several feeds in one zip: {listed}", where=str(path), hint=hint)
            archive = zipfile.ZipFile(io.BytesIO(archive.read(inner[0])))
    except BROKEN as error:
        raise InputError(f"not a zip: {error}", where=str(path), hint="check the path") from error
    _refuse_twins(archive, path)
    named, renamed = _tables(sorted(set(archive.namelist())), path)
    return (lambda name: _unpacked(archive, named[name], path) if name in named else None), renamed


def _refuse_twins(archive: zipfile.ZipFile, path: Path) -> None:
    """Raise InputError if the zip has two different files of one name.

    Adding a file to a zip can create such a duplicate without a warning.
    """
    sums: dict[str, int] = {}
    for info in archive.infolist():
        if sums.setdefault(info.filename, info.CRC) != info.CRC:
            hint = "remove one of the two from the zip"
            problem = "there are two files of this name in the zip, and they differ"
            raise InputError(problem, where=f"{path}/{info.filename}", hint=hint)


def _bytes_of(file: Path) -> bytes:
    if not file.is_file():  # a broken link is a table that is missing by mistake
        raise InputError("not a regular file", where=str(file), hint="put the table there")
    return file.read_bytes()


def _tables(files: list[str], path: Path) -> tuple[dict[str, str], list[str]]:
    """Return the tables of the feed by their GTFS names, and the files with a wrong name."""
    proper = {file: _proper(file) for file in files}
    folder = _folder_of_feed(list(proper.values()), path)
    here = {
        file: name.removeprefix(folder)
        for file, name in proper.items()
        if name.startswith(folder) and "/" not in name.removeprefix(folder)
    }
    # If two files have the same GTFS name, the one with the exact name counts.
    ordered = sorted(here, key=lambda file: file.endswith(here[file]))
    named = {here[file]: file for file in ordered if here[file].endswith(".txt")}
    return named, [file for name, file in named.items() if not file.endswith(name)]


def _proper(file: str) -> str:
    """Return the path with a lower-case file name and `/` between folders, as GTFS requires."""
    folder, slash, name = file.replace("\\", "/").removeprefix("./").rpartition("/")
    return f"{folder}{slash}{name.lower()}"


def _unpacked(archive: zipfile.ZipFile, name: str, path: Path) -> bytes:
    try:
        return archive.read(name)
    except BROKEN as error:
        hint = "fetch the file again, and without a password"
        raise InputError(f"cannot unpack it: {error}", where=f"{path}/{name}", hint=hint) from error


def _folder_of_feed(names: list[str], path: Path) -> str:
    """Return the folder of the tables with a trailing slash; empty if they are at the top."""
    folders = [
        PurePosixPath(name).parent
        for name in names
        if PurePosixPath(name).name == CALLS and MACOS not in name
    ]
    if not folders:
        return ""
    depth = min(len(folder.parts) for folder in folders)
    nearest = [folder for folder in folders if len(folder.parts) == depth]
    if len(nearest) > 1:
        listed = list_some([str(folder) for folder in nearest])
        hint = "pass the folder of one of them"
        raise InputError(f"several feeds in one place: {listed}", where=str(path), hint=hint)
    return f"{nearest[0]}/" if nearest[0].parts else ""
