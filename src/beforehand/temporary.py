"""What is temporary has a name that says whose it is, so that what a killed process left behind is
known for it, and removed by the next one."""

from __future__ import annotations

import atexit
import functools
import os
import re
import secrets
import shutil
import socket
import tempfile
import time
from contextlib import suppress
from pathlib import Path

OWNED = re.compile(r".*\.(?P<host>[0-9A-Za-z-]+)-(?P<pid>[0-9]{1,9})-[0-9a-f]{8}")
"""Whatever it is, a dot, and `own_name`."""
HOST_LETTERS_MAX = 32
ELSEWHERE_SECONDS_MAX = 7 * 24 * 3600
"""Nobody here knows who lives on another machine: what is older than this is nobody's."""


def own_name() -> str:
    """For this process alone, also among several machines that share a folder."""
    return f"{_host()}-{os.getpid()}-{secrets.token_hex(4)}"


@functools.cache
def scratch_folder() -> Path:
    """A folder for the time of this process. What killed ones left beside it is removed first."""
    place = Path(tempfile.gettempdir())
    remove_left_behind(place, "beforehand.*")
    folder = place / f"beforehand.{own_name()}"
    folder.mkdir(mode=0o700)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def remove_left_behind(folder: Path, pattern: str) -> None:
    """What processes that are gone have there, as their names say: files and folders."""
    for path in folder.glob(pattern):
        owner = OWNED.fullmatch(path.name)
        if owner and _is_gone(owner["host"], int(owner["pid"]), path):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with suppress(OSError):
                    path.unlink()


def _is_gone(host: str, pid: int, path: Path) -> bool:
    if host != _host():
        with suppress(OSError):
            return time.time() - path.lstat().st_mtime > ELSEWHERE_SECONDS_MAX
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False  # somebody else's, and there
    return False


@functools.cache
def _host() -> str:
    """The end of a long name: that is where machines of one kind differ."""
    return re.sub(r"[^0-9A-Za-z-]", "-", socket.gethostname())[-HOST_LETTERS_MAX:] or "host"
