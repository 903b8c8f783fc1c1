"""Report failures of files and disks in one line: Spark raises pages of Java stack traces."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from beforehand.errors import InputError
from beforehand.observe.rejects import local_path

READING = re.compile(r"Encountered error while reading file (\S+?)\.?\s+(.*)")
CAUSE = re.compile(r"^Caused by: [\w.$]+(?:Exception|Error): (.+)", re.MULTILINE)
DISK = re.compile(r"^(?:Caused by: )?java\.(?:io|nio)\.[\w.$]+: (.+)", re.MULTILINE)
FULL = re.compile("No space left on device|Disk quota exceeded")
FULL_HINT = "make room there, and give the same command again"
STATE = re.compile(r"\s*SQLSTATE: \w+")


@contextmanager
def readable_files(folder: Path) -> Iterator[None]:
    """Raise InputError with the path if Spark cannot read a file or write to the disk."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        failure = failure_of(whole_text(error), str(folder))
        if failure is None:
            raise
        raise failure from error


@contextmanager
def disk_named(folder: Path) -> Iterator[None]:
    """Raise InputError with the folder if the disk is full."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise InputError("the disk is full", where=str(folder), hint=FULL_HINT) from error


def whole_text(error: BaseException) -> str:
    """Return the message of an error of Spark, of Java's stack, and of the causes."""
    found: list[str] = []
    cause: BaseException | None = error
    while cause is not None:
        found += [str(cause), str(getattr(cause, "_stackTrace", "") or "")]
        cause = getattr(cause, "_cause", None)
    return "\n".join(found)


def failure_of(text: str, where: str) -> InputError | None:
    """Return the error of a file or a disk; None if the failure has another cause."""
    if FULL.search(text):
        return InputError("the disk is full", where=where, hint=FULL_HINT)
    causes = [STATE.sub("", cause) for cause in CAUSE.findall(text)]
    if reading := READING.search(text):
        reason = STATE.sub("", reading[2]).strip() or (causes[-1] if causes else "it is broken")
        hint = "repair it in its place, or remove it from the folder"
        return InputError(f"cannot be read: {reason}", where=local_path(reading[1]), hint=hint)
    if disk := DISK.findall(text):
        hint = "check the free space of the disk, and the permissions to read and write"
        return InputError(f"the system reports: {disk[-1]}", where=where, hint=hint)
    return None
