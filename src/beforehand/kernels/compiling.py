"""Compile kernels on their first call, and keep the machine code on disk for the next process.

Numba keeps it beside the source, or else in the user's cache. If both are read-only, the code goes
into a temporary folder, which the processes of this one share and which is removed at the end. If
there is no temporary folder either, every process compiles what it calls.
"""

from __future__ import annotations

import functools
import hashlib
import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba
from numba.core.caching import IndexDataCacheFile

from beforehand.temporary import scratch_folder

P = ParamSpec("P")
R = TypeVar("R")

INTERPRETED: bool = numba.config.DISABLE_JIT  # type: ignore[attr-defined]
"""Whether kernels are not compiled (NUMBA_DISABLE_JIT=1, in tests): Python then checks every
index."""
# Without Numba's runtime (`_nrt`) arrays are not reference-counted. Code that allocates nothing
# does not need counting, which took two thirds of the time of the overlay world.
UNCOUNTED: dict[str, Any] = {"_nrt": False}
# A part is inlined: a call would pass some two hundred words of tuples by value.
UNWRAPPED: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
PART: dict[str, Any] = {"forceinline": True, **UNWRAPPED}

SETTINGS: Any = numba.config
CACHE_VARIABLE = "NUMBA_CACHE_DIR"
NO_CACHE = (
    "compiled code cannot be kept: neither the folder of the package nor the user's cache can be"
    f" written, so each start compiles again for some seconds; set {CACHE_VARIABLE} to a folder"
)


class CodeFiles(IndexDataCacheFile):
    """The kept machine code of one function: an index, and a file for each signature.

    Numba numbers the files and writes the index first. Two processes that compile two signatures at
    once take one number, and the one that writes last leaves its code under the other's signature.
    A process that reads in between gets the code of the source as it was before.
    """

    def save(self, key: Any, data: object) -> None:
        """Write the code to a file that has the name of its signature and source, then list it."""
        files: Any = self  # Numba has no types
        place = repr((key, files._source_stamp, files._version)).encode()
        digest = hashlib.blake2b(place, digest_size=8).hexdigest()
        name = f"{files._index_name.removesuffix('.nbi')}.{digest}.nbc"
        files._save_data(name, data)
        files._save_index(files._load_index() | {key: name})


class NotKept(UserWarning):
    """The machine code of this process is not kept for the next one."""


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function on its first call; the type checker sees `function`."""
    return _compiled(function)


def unlocked(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that other threads of Python may run beside."""
    return _compiled(function, nogil=True)


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that allocates nothing on its first call."""
    return _compiled(function, **UNCOUNTED)


def part(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that is inlined into such a kernel."""
    return _once_for_integers(_compiled(function, **UNCOUNTED, **PART))


def cold(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that such a kernel calls, and does not inline: it is large, and called
    less often than once per message.

    A function that is inlined at several places, in functions that are inlined in turn, is
    optimised at each of them: that made most of the compilation of the contact world."""
    return _once_for_integers(_compiled(function, **UNCOUNTED, **UNWRAPPED))


def _once_for_integers(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function once for all sizes of integers, and all constants, that compiled code
    passes to it.

    Numba has a type for each of them, and would compile `add_row` eleven times."""
    dispatcher: Any = function
    if not SETTINGS.DISABLE_JIT:
        template = dispatcher.get_call_template

        def get_call_template(args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
            return template(tuple(map(_widened, args)), kws)

        dispatcher.get_call_template = get_call_template
    return function


def _widened(kind: Any) -> Any:
    """Return the type to which a part converts an argument."""
    unliteral: Any = numba.types.unliteral
    kind = unliteral(kind)
    return numba.types.int64 if kind == numba.types.int32 else kind


def _compiled(function: Callable[P, R], **options: Any) -> Callable[P, R]:
    ready = numba.njit(**options)(function)
    if not SETTINGS.DISABLE_JIT:
        try:
            _keep_code(ready)
        except RuntimeError:  # Numba found no folder that it may write to
            _keep_in_temporary_folder()
            with suppress(RuntimeError):
                _keep_code(ready)
    typed: Callable[P, R] = ready
    return typed


def _keep_code(dispatcher: Any) -> None:
    dispatcher.enable_caching()
    dispatcher._cache._cache_file.__class__ = CodeFiles


@functools.cache
def _keep_in_temporary_folder() -> None:
    """Make Numba use a temporary folder, here and in the processes that this one starts."""
    warnings.warn(NO_CACHE, NotKept, stacklevel=2)
    with suppress(OSError):  # there is no temporary folder
        SETTINGS.CACHE_DIR = os.environ[CACHE_VARIABLE] = str(scratch_folder())


def is_compiled(function: Callable[..., Any]) -> bool:
    """Return whether a kernel needs no compilation: this process or an earlier one has compiled
    it."""
    dispatcher: Any = function
    if INTERPRETED or dispatcher.signatures:
        return True
    name = f"{dispatcher.py_func.__module__.rpartition('.')[2]}.{dispatcher.__name__}-*.nbi"
    return any(Path(dispatcher.stats.cache_path).glob(name))


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
