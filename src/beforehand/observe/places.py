"""Check the folders of a stream for conflicts, and read its checkpoint.

Spark logs what it will read before it reads it (`offsets`, and for each source the names of its
files), and what it has finished (`commits`).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from beforehand.errors import InputError
from beforehand.files import local_place
from beforehand.observe.rejects import folder_of_rejects, local_path
from beforehand.observe.settings import SETTINGS_FILE

SINK_LOG = "_spark_metadata"
"""The log in an output folder that lists its committed files."""
EVENTS_SOURCE = 0
NAMES_SHOWN = 3


class Read(NamedTuple):
    """A file that was read. Reads sort as files are to be read."""

    modified_ms: int
    path: str


def check_places(folder: Path, out: Path, checkpoint: Path | None) -> None:
    """Raise InputError for folders that would make rows repeat or get lost."""
    places = {"the input": folder, "the output": out, "the rejects": folder_of_rejects(out)}
    places |= {} if checkpoint is None else {"the checkpoint": checkpoint}
    for place in places.values():
        if local_place(place) != place:
            raise InputError("an address, not a path", where=str(place), hint="give the path")
    for (inner, inside), (outer, around) in permutations(places.items(), 2):
        if inside.resolve().is_relative_to(around.resolve()):
            raise InputError(
                f"{inner} lies in {outer}: {inside}", hint="give each a folder of its own"
            )
    if checkpoint is None or not (checkpoint / SETTINGS_FILE).exists():
        for place in (out, folder_of_rejects(out)):
            if place.is_file() or (place.is_dir() and any(place.iterdir())):
                raise InputError(f"there is something already: {place}", hint="give another folder")
        return
    kept = msgspec.json.decode((checkpoint / SETTINGS_FILE).read_bytes())["out"]
    has_written = bool(_numbers(checkpoint / "spark" / "commits"))
    if kept == str(out.resolve()) and has_written and not (out / SINK_LOG).is_dir():
        raise InputError(
            f"the output is gone: {out}",
            where=str(checkpoint),
            hint="put it back; or start anew, with another checkpoint",
        )
    if kept == str(out.resolve()):
        _check_whole(out, checkpoint)


def _check_whole(out: Path, checkpoint: Path) -> None:
    """Raise InputError if a part of Spark's checkpoint was deleted.

    Spark would count from 0 again, and skip the batches that the output has under these numbers.
    """
    log = checkpoint / "spark"
    parts = {log / "offsets": out / SINK_LOG, checkpoint / "observers": log / "commits"}
    parts |= {log / name: log / "offsets" for name in ("metadata", "sources")}
    for part, after in parts.items():
        if any(after.glob("[0-9]*")) and not _has_files(part):
            raise InputError(
                f"a part of the checkpoint is gone: {part}",
                where=str(checkpoint),
                hint="put it back; or start anew, with another checkpoint and another output",
            )


def _has_files(path: Path) -> bool:
    return path.is_file() or (path.is_dir() and any(path.iterdir()))


def check_begun(checkpoint: Path) -> None:
    """Raise InputError if a file of the micro-batch that was interrupted is missing.

    Spark would treat the batch as finished and the file as read.
    """
    begun = _numbers(checkpoint / "spark" / "offsets")
    done = max(_numbers(checkpoint / "spark" / "commits"), default=-1)
    files = files_between(checkpoint, _log_offset(checkpoint, done), _last(checkpoint, begun))
    if missing := [file for file in files if not Path(file).exists()]:
        raise InputError(
            f"{_listed(missing)} was being read when the stream stopped, and is not there",
            where=str(checkpoint),
            hint="put it back under that name; to do without it, put a file without rows there",
        )


def files_between(checkpoint: Path, start: int, end: int) -> list[str]:
    """Return the files that the source of events read after one offset, up to another."""
    return sorted({path for _, path in reads_between(checkpoint, start, end)})


def reads_between(checkpoint: Path, start: int, end: int) -> list[Read]:
    """Return the reads after one offset, up to another, in the order of `Read`."""
    folder = checkpoint / "spark" / "sources" / str(EVENTS_SOURCE)
    found: set[Read] = set()
    for log in folder.glob("[0-9]*"):
        number = int(log.name.removesuffix(".compact"))
        if number <= start:
            continue
        for line in log.read_text().splitlines()[1:]:
            entry = msgspec.json.decode(line, type=_Entry)
            if start < entry.batchId <= end:
                found.add(Read(entry.timestamp, local_path(entry.path)))
    return sorted(found)


def unsorted_files(reads: list[Read], before: Read | None) -> list[str]:
    """Return the files that should have been read in an earlier micro-batch.

    Spark takes files by time of modification, and those of one time in the order in which the
    system lists them, which may differ from run to run. Within a micro-batch the order of files has
    no effect.

    before: the last of the reads of all earlier micro-batches.
    """
    if before is None:
        return []
    return [read.path for read in reads if read.modified_ms == before.modified_ms and read < before]


def new_columns(files: Iterable[str], known: set[str]) -> set[str]:
    """Return the columns of Parquet files that are not among the known ones."""
    found: set[str] = set()
    for file in files:
        try:
            found |= set(pq.read_schema(file).names) - known
        except (OSError, pa.ArrowInvalid):
            continue  # gone or broken, which is reported elsewhere
    return found


class _Entry(msgspec.Struct):
    path: str
    timestamp: int
    batchId: int  # Spark's spelling


def _log_offset(checkpoint: Path, batch: int) -> int:
    log = checkpoint / "spark" / "offsets" / str(batch)
    if not log.exists():
        return -1
    offset = log.read_text().splitlines()[2 + EVENTS_SOURCE]
    return -1 if offset == "-" else int(msgspec.json.decode(offset)["logOffset"])


def _last(checkpoint: Path, begun: list[int]) -> int:
    return _log_offset(checkpoint, max(begun)) if begun else -1


def _numbers(log: Path) -> list[int]:
    return [int(path.name) for path in log.glob("[0-9]*") if path.name.isdigit()]


def _listed(names: list[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:NAMES_SHOWN])
    more = len(names) - NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
