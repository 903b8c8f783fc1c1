"""The saved states of a partition: one file for each micro-batch, which never changes.

Spark repeats a micro-batch that was not committed, with its number and its rows. A task that reads
the state of the batch before, and writes the next under the number of its batch, therefore has the
same effects however often it runs.

A folder is a path, or an address of a file system that PyArrow knows (`s3a://`, `hdfs://`, `gs://`,
`abfss://`): the workers of Spark have no other access to storage.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import Any

from pyarrow import fs

from beforehand.errors import LocalError

KEPT = 2
"""How many versions are kept besides the newest. Spark repeats only the last batch."""
WHOLE_WRITES = ("s3", "gcs", "abfs")
"""File systems on which a file appears when it is complete."""
ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+:/", re.IGNORECASE)
GONE_HINT = "put it back; or start anew, with another checkpoint and another output"


class Versions:
    """The versions of one partition of the observers of a query.

    folder: that of all states. name: tells two observers of one query apart.
    """

    def __init__(self, folder: str, query: str, name: str, partition: int) -> None:
        self._files, top = open_folder(folder)
        self._of_query = f"{top}/{query}/{name}"
        self._folder = f"{self._of_query}/{partition}"

    def read_before(self, batch: int) -> tuple[bytes | None, list[int]]:
        """Return the state before a batch, None before the first one, and the versions there are.

        A batch without rows may have run without this operator. Then the version before it counts.
        """
        if batch == 0:
            return None, []
        found = self._read(batch - 1)
        if found is not None:
            # One more than are kept: a batch that was skipped leaves one.
            return found, list(range(max(batch - 2 - KEPT, 0), batch))
        versions = sorted(number for number in self._numbers() if number < batch)
        if not versions or self._is_elsewhere(batch - 1):
            problem = f"the state of the observers before batch {batch} is gone"
            raise LocalError(problem, where=self._folder, hint=GONE_HINT)
        return self._read(versions[-1]), versions

    def write(self, batch: int, data: bytes, versions: list[int]) -> None:
        """Write the state after a batch, and remove versions that Spark cannot go back to.

        versions: those that there are.
        """
        self._files.create_dir(self._folder)
        place = f"{self._folder}/{batch}"
        written = place
        if self._files.type_name not in WHOLE_WRITES:
            written = f"{self._folder}/.{batch}.{os.getpid()}"
        with self._files.open_output_stream(written) as stream:
            stream.write(data)
        if written != place:
            _replace(self._files, written, place)
        for version in versions[:-KEPT]:
            _remove(self._files, f"{self._folder}/{version}")

    def _read(self, version: int) -> bytes | None:
        try:
            with self._files.open_input_stream(f"{self._folder}/{version}") as stream:
                data: bytes = stream.read()
                return data
        except FileNotFoundError:
            return None

    def _numbers(self) -> list[int]:
        return _numbers(self._files, self._folder)

    def _is_elsewhere(self, version: int) -> bool:
        """Return whether another partition has this version: then this one has lost its own."""
        return any(
            version in _numbers(self._files, f"{self._of_query}/{partition}")
            for partition in _numbers(self._files, self._of_query)
        )


def open_folder(folder: str) -> tuple[Any, str]:
    """Return the file system of a path or an address, and the path in it."""
    if ADDRESS.match(folder) is None:
        return fs.LocalFileSystem(), folder
    address = re.sub("^s3[an]:", "s3:", folder)
    try:
        files, path = fs.FileSystem.from_uri(address)
    except (OSError, ValueError) as error:
        hint = "give a folder that all workers share, or an address of S3, HDFS, GCS or ABFS"
        raise LocalError(f"no state can be kept there: {error}", where=folder, hint=hint) from error
    return files, path


def newest_states(folder: str, query: str, name: str, size: int | None = None) -> list[bytes]:
    """Return the newest state of each partition, or its first `size` bytes."""
    files, top = open_folder(folder)
    found = []
    for partition in _numbers(files, f"{top}/{query}/{name}"):
        place = f"{top}/{query}/{name}/{partition}"
        for version in _numbers(files, place)[-1:]:
            with files.open_input_stream(f"{place}/{version}") as stream:
                found.append(stream.read(size))
    return found


def _numbers(files: Any, folder: str) -> list[int]:
    entries = files.get_file_info(fs.FileSelector(folder, allow_not_found=True))
    return sorted(int(entry.base_name) for entry in entries if entry.base_name.isdigit())


def _replace(files: Any, written: str, place: str) -> None:
    try:
        files.move(written, place)
    except OSError:  # HDFS does not replace files
        _remove(files, place)
        files.move(written, place)


def _remove(files: Any, path: str) -> None:
    with suppress(FileNotFoundError):
        files.delete_file(path)
