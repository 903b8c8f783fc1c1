"""Read files with errors that name the file, and write files atomically."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec

from beforehand.errors import InputError, list_some
from beforehand.temporary import own_name

if TYPE_CHECKING:
    import pyarrow as pa

MANIFEST = "manifest.json"
"""The file beside a result that describes how it was made, with length and digest of each file."""
SCENARIO_FILE = "scenario.json"
"""The file of a finished run with its parameters, which the report reads."""
ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?=/)(?://([^/]*))?(.*)")
"""A scheme of two letters or more, an optional host, and a path. `Path` makes one slash of two."""
WRITE_HINT = "check the free space of the disk and the write permission"


def read_text(path: Path, *, hint: str = "") -> str:
    """Return the whole file as text."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise unreadable(path, error, hint) from error
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 text: byte {error.object[error.start]:#04x} at {error.start}"
        raise InputError(
            problem, where=str(path), hint=hint or "check that the path names the right file"
        ) from error


def read_parquet(
    path: Path,
    columns: Sequence[str] | None = None,
    *,
    hint: str = "",
    content: bytes | None = None,
) -> pa.Table:
    """Read a whole Parquet file, and verify its page checksums, if it has any.

    columns: read only those of these columns that exist.
    content: the bytes of the file, if it was read before.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = path if content is None else pa.BufferReader(content)
    try:
        with pq.ParquetFile(source, page_checksum_verification=True) as opened:
            return opened.read(columns=None if columns is None else list(columns))
    except (pa.ArrowException, OSError) as error:
        raise unreadable(path, error, hint) from error


def refuse_device(path: Path) -> None:
    """Refuse a device, because reading it may never end. A pipe is allowed."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return  # the code that opens the file reports this error
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise InputError("a device, and not a file", where=str(path), hint="give a file")


def unreadable(path: Path, error: Exception, hint: str = "") -> InputError:
    """Return the error for a file that could not be read."""
    if isinstance(error, FileNotFoundError):
        return InputError("no such file", where=str(path), hint=hint or "check the path")
    if isinstance(error, OSError) and error.errno is not None:
        reason = error.strerror or "unreadable"
        return InputError(
            f"cannot read it: {reason}", where=str(path), hint=hint or "check the path"
        )
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return InputError(f"not a Parquet file, or a broken one: {reason}", where=str(path), hint=hint)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a binary file atomically."""
    with replaced(path) as partial:
        partial.write_bytes(content)


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Yield a temporary path, which is renamed to `path` when the block ends without an error.

    The temporary name is unique across processes and machines. A task that Spark gave up may still
    be writing while another task makes the same file again; both write the same content, and the
    last rename wins. The temporary file is removed in any case. If `path` is a symbolic link, its
    target is replaced and not the link.
    """
    _refuse_irregular(path)
    target = Path(os.path.realpath(path))
    partial = _partial(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        partial.replace(target)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def _partial(target: Path) -> Path:
    return target.parent / f".{target.name}.{own_name()}"


def _unwritable(path: Path, error: OSError) -> InputError:
    reason = error.strerror or str(error)
    return InputError(f"cannot write it: {reason}", where=str(path), hint=WRITE_HINT)


class Mark(msgspec.Struct, frozen=True):
    """The length and the digest by which a file is recognised."""

    bytes: int
    digest: str | None
    """SHA-256; None in manifests of earlier versions."""


def marks_below(folder: Path) -> dict[str, Mark]:
    """Return the mark of each file below a folder, by its relative path. Reads all files.

    The manifest and hidden files, which are still being written, are left out.
    """
    files = [f for f in folder.rglob("*") if f.name[0] != "." and f != folder / MANIFEST]
    return {f.relative_to(folder).as_posix(): _mark(f) for f in files if f.is_file()}


def _mark(path: Path) -> Mark:
    return Mark(path.stat().st_size, _digest(path))


def _digest(path: Path) -> str:
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def recorded_marks(folder: Path) -> dict[str, Mark]:
    """Return the marks that the folder's manifest records."""
    try:
        found = msgspec.json.decode(read_text(folder / MANIFEST), type=_Recorded).files
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from error
    return {
        name: Mark(mark, None) if isinstance(mark, int) else mark for name, mark in found.items()
    }


class _Recorded(msgspec.Struct):
    files: dict[str, Mark | int]


def find_damage(folder: Path) -> list[str]:
    """Return the differences between the files of a folder and its manifest; empty if there are
    none.

    Reads every file of the right length, because damage often leaves the length unchanged.
    """
    try:
        recorded = recorded_marks(folder)
    except (InputError, ValueError) as error:
        return [f"{MANIFEST}: not a manifest: {error}"]
    if old := [name for name, mark in recorded.items() if mark.digest is None]:
        return [f"{MANIFEST}: of an earlier version, without a digest of {list_some(old)}"]
    problems = [compare(folder, name, mark) for name, mark in recorded.items()]
    return [problem for problem in problems if problem]


def compare(folder: Path, name: str, mark: Mark) -> str:
    """Return what is wrong with one file; empty if it matches its mark."""
    path = folder / name
    try:
        there = path.stat().st_size
        if not path.is_file():
            return f"{name}: not a file"
        if there != mark.bytes:
            return f"{name}: {there:,} bytes, but {mark.bytes:,} in its manifest"
        if mark.digest is not None and _digest(path) != mark.digest:
            return f"{name}: of the length in its manifest, but with other bytes"
    except (FileNotFoundError, NotADirectoryError):
        return f"{name}: missing"
    except OSError as error:
        return f"{name}: cannot be read: {error.strerror}"
    return ""


def check_file_target(path: Path) -> None:
    """Refuse, before any work starts, a path where no file can be written."""
    if not path.parent.is_dir():
        raise InputError(f"no such folder: {path.parent}", hint="create it first")
    _refuse_irregular(path)
    _refuse_read_only(Path(os.path.realpath(path)).parent)
    _try_to_write(_partial(Path(os.path.realpath(path))), path)


def refuse_same(path: Path, source: Path) -> None:
    """Refuse to overwrite the input file."""
    if path.exists() and source.exists() and path.samefile(source):
        hint = "give another name"
        raise InputError("it would replace the input", where=str(path), hint=hint)


def check_folder_target(path: Path) -> None:
    """Refuse, before any work starts, a path where no writable folder can be."""
    there = first_folder(path)
    if not there.is_dir():
        hint = "give the path of a folder, there or not"
        raise InputError(f"not a folder: {there}", where=str(path), hint=hint)
    _refuse_read_only(there)
    _try_to_write(there / f".{path.name}.{own_name()}", path)


def local_place(address: str | Path) -> Path:
    """Return the path of a local address, `file:` or plain; refuse an address of another system.

    As a path, `s3a://bucket/x` would be the local folder `s3a:/bucket/x`.
    """
    match = ADDRESS.match(str(address))
    if match is None:
        return Path(address)
    scheme, host, path = match.groups()
    if scheme.lower() == "file" and host in (None, "", "localhost"):
        return Path(unquote(path))
    hint = "give a local path, or mount the storage; copy the result there when it is complete"
    problem = f"`{scheme}` addresses are not supported: only local files are"
    raise InputError(problem, where=str(address), hint=hint)


def first_folder(path: Path) -> Path:
    """Return the path itself, or its closest ancestor that exists, of any file type."""
    there = Path(os.path.realpath(path))
    while not there.exists() and there != there.parent:
        there = there.parent
    return there


def _refuse_irregular(path: Path) -> None:
    """Refuse to replace a folder, a device or a pipe by a file."""
    if path.is_dir():
        hint = "give the name of a file in it"
        raise InputError("a folder, where a file is to be written", where=str(path), hint=hint)
    if path.exists() and not path.is_file():
        hint = "give the name of a file"
        problem = "not a regular file, so it is not replaced"
        raise InputError(problem, where=str(path), hint=hint)


def _try_to_write(partial: Path, path: Path) -> None:
    """Create and remove a file: the name may be too long, or the file system may refuse files."""
    try:
        partial.touch()
        partial.unlink()
    except OSError as error:
        raise _unwritable(path, error) from error


def _refuse_read_only(folder: Path) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        hint = "choose another place, or change its permissions"
        raise InputError("the folder cannot be written to", where=str(folder), hint=hint)


def sync_folder(folder: Path) -> None:
    """Wait until the names of new files are on the disk, where a folder can be opened for that."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows, where NTFS logs changes of names by itself
        return
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
