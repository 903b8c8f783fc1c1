"""Report which requirements of Beforehand this machine meets, and how to get the rest.

The checks import none of the packages: a package that is broken or slow to load must not affect the
report.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
from pathlib import Path
from typing import Literal

import msgspec

from beforehand.spark.java import JAVA_HINT, find_java

PYTHON_MIN = (3, 11)
GIB = 2**30
MEMORY_AVAILABLE_MIN = 3 * GIB
"""Spark's driver takes 2 GiB, and two Python workers 0.5 GiB each."""
DISK_FREE_MIN = 2 * GIB
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM_HINT = "only tests of the report pages need it: `apt-get install chromium`"

# Distribution name -> the extra that installs it; empty if Beforehand itself requires it.
PACKAGES = {
    "msgspec": "",
    "pynacl": "runtime",
    "zeroconf": "runtime",
    "aiohttp": "gateway",
    "numpy": "sim",
    "numba": "sim",
    "pyarrow": "sim",
    "rich": "sim",
    "pyspark": "pipeline",
    "pandas": "pipeline",
    "protobuf": "pipeline",
    "altair": "report",
    "vl-convert-python": "report",
}


class Finding(msgspec.Struct, frozen=True):
    """One line of the report."""

    name: str
    state: Literal["ok", "warn", "missing"]
    value: str = ""
    hint: str = ""
    """How to install or fix it; empty if the state is ok."""


def examine() -> list[Finding]:
    """Return all findings, the most important first. Write nothing."""
    machine = [_python(), _java(), _memory(), _cpus(), _disk(), _chromium()]
    return machine + [_package(name, extra) for name, extra in PACKAGES.items()]


def _python() -> Finding:
    version = platform.python_version()
    if sys.version_info < PYTHON_MIN:
        needed = ".".join(map(str, PYTHON_MIN))
        return Finding("python", "warn", version, f"install Python {needed} or newer")
    return Finding("python", "ok", f"{version} ({sys.executable})")


def _java() -> Finding:
    java = find_java()
    if java is None:
        return Finding("java", "missing", "", JAVA_HINT)
    return Finding("java", "ok", f"{java.version} ({java.source}: {java.executable})")


def _memory() -> Finding:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    available = _memory_available()
    if available is None:
        return Finding("memory", "ok", f"{_gib(total)} in all")
    value = f"{_gib(available)} of {_gib(total)} available"
    if available < MEMORY_AVAILABLE_MIN:
        hint = f"Spark wants {_gib(MEMORY_AVAILABLE_MIN)}: close other programs"
        return Finding("memory", "warn", value, hint)
    return Finding("memory", "ok", value)


def _memory_available(meminfo: Path = Path("/proc/meminfo")) -> int | None:
    """Return the bytes available without swapping, or None on systems other than Linux."""
    if not meminfo.exists():
        return None
    fields = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
    return int(fields["MemAvailable"].split()[0]) * 1024


def _cpus() -> Finding:
    return Finding("cpus", "ok", str(os.cpu_count() or "unknown"))


def _disk() -> Finding:
    folder = Path.cwd()
    free = shutil.disk_usage(folder).free
    value = f"{_gib(free)} free in {folder}"
    if free < DISK_FREE_MIN:
        hint = f"make room for {_gib(DISK_FREE_MIN)}, or work in a folder on another disk"
        return Finding("disk", "warn", value, hint)
    return Finding("disk", "ok", value)


def find_chromium() -> str | None:
    """Return the path of the first Chromium or Chrome of the PATH, None if there is none."""
    return next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)


def _chromium() -> Finding:
    path = find_chromium()
    if path is None:  # no command opens a browser, so nothing is missing
        return Finding("chromium", "warn", "none", CHROMIUM_HINT)
    return Finding("chromium", "ok", path)


def _package(name: str, extra: str) -> Finding:
    try:
        return Finding(name, "ok", importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        wanted = f"beforehand[{extra}]" if extra else "beforehand"
        return Finding(name, "missing", "", f"pip install '{wanted}'")


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / GIB:.1f} GiB"
