"""Temporary files whose names identify their process.

A later process can therefore recognise and remove what a killed process left behind.
"""

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
"""Matches any name that ends in a dot and `own_name()`."""
HOST_LETTERS_MAX = 32
ELSEWHERE_SECONDS_MAX = 7 * 24 * 3600
"""Another machine's processes cannot be checked; its files are abandoned after this time."""


def own_name() -> str:
    """Return a name that is unique to this call, also among machines that share a folder."""
    return f"{_host()}-{os.getpid()}-{secrets.token_hex(4)}"


@functools.cache
def scratch_folder() -> Path:
    """Return the temporary folder of this process. Remove the folders of killed processes first."""
    place = Path(tempfile.gettempdir())
    remove_left_behind(place, "beforehand.*")
    folder = place / f"beforehand.{own_name()}"
    folder.mkdir(mode=0o700)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def remove_left_behind(folder: Path, pattern: str) -> None:
    """Remove files and folders whose names show that their process has ended."""
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
        return False  # a running process of another user
    return False


@functools.cache
def _host() -> str:
    """Return the end of the host name, because similar machines differ at the end of long names."""
    return re.sub(r"[^0-9A-Za-z-]", "-", socket.gethostname())[-HOST_LETTERS_MAX:] or "host"
