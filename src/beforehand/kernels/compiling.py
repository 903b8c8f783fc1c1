"""Compile kernels on their first call, and keep the machine code on disk for the next process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba

P = ParamSpec("P")
R = TypeVar("R")

# Without Numba's runtime (`_nrt`) arrays are not reference-counted. Code that allocates nothing
# does not need counting, which took two thirds of the time of the overlay world.
UNCOUNTED: dict[str, Any] = {"cache": True, "_nrt": False}
# A part is inlined: a call would pass some two hundred words of tuples by value.
PART: dict[str, Any] = {"forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function on its first call; the type checker sees `function`."""
    ready: Callable[P, R] = numba.njit(cache=True)(function)
    return ready


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that allocates nothing on its first call."""
    ready: Callable[P, R] = numba.njit(**UNCOUNTED)(function)
    return ready


def part(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that is inlined into such a kernel."""
    ready: Callable[P, R] = numba.njit(**UNCOUNTED, **PART)(function)
    return ready


def forget_stale(folder: Path) -> None:
    """Remove machine code that is older than any source file in or below the folder.

    Numba recompiles a file when that file has changed, but not when a file that it calls has
    changed. It would go on with the old code of the other file.
    """
    sources = folder.rglob("*.py")  # none, if the package is in a zip file
    changed_ns = max((path.stat().st_mtime_ns for path in sources), default=0)
    for kept in folder.rglob("__pycache__/*.nb[ci]"):
        try:
            if kept.stat().st_mtime_ns < changed_ns:
                kept.unlink()
        except OSError:
            pass  # another process was faster, or this process lacks the permission


forget_stale(Path(__file__).parent)
