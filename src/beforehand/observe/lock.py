"""Keep a second process away from the checkpoint of a running stream."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from beforehand.errors import InputError

NAME = "lock"


@contextmanager
def locked(checkpoint: Path) -> Iterator[None]:
    """Hold the lock of a checkpoint; raise InputError if another process or thread has it.

    The system frees the lock when its process ends, also by `kill -9`. The file stays.
    """
    place = checkpoint / NAME
    opened = _open(place)
    try:
        _take(opened, place)
        os.ftruncate(opened, 0)
        os.write(opened, f"{os.getpid()}\n".encode())
        yield
    except BlockingIOError as error:
        owner = os.read(opened, 20).decode(errors="replace").strip()
        raise InputError(
            f"another stream runs on this checkpoint{f': process {owner}' if owner else ''}",
            where=str(place),
            hint="stop it first, or give this stream a checkpoint and an output of its own",
        ) from error
    finally:
        os.close(opened)


def check_unlocked(checkpoint: Path) -> None:
    """Raise InputError if a stream runs on the checkpoint."""
    if (checkpoint / NAME).exists():
        with locked(checkpoint):
            pass


def _take(opened: int, place: Path) -> None:
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as error:
        raise InputError(
            f"the file system has no locks: {error.strerror}",
            where=str(place),
            hint="put the checkpoint on one that has them",
        ) from error


def _open(place: Path) -> int:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        return os.open(place, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise InputError(
            f"no lock can be made: {error.strerror}",
            where=str(place),
            hint="check the free space of the disk and the write permission",
        ) from error
