"""Check that executors run the same code as the driver.

An executor with other code would store other results under the same dataset name. Each Python task
therefore reports a digest of its code, and the driver refuses a different one.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from beforehand.errors import InputError, InputErrors
from beforehand.spark.ship import files_of_package
from beforehand.temporary import own_name

Function = TypeVar("Function", bound=Callable[..., Any])

LOCAL = re.compile(r"local(\[.*\])?")
CONNECT_TASKS = 16
"""The number of probe tasks on a Connect server, which does not report its parallelism."""
ERRORS_MAX = 5
EXCEPTION_LINE = re.compile(r"^(?:[\w.]+\.)?(\w*(?:Error|Exception): .+)$", re.MULTILINE)
"""Matches the last line of a Python traceback within pages of Java output."""
NO_PYTHON = re.compile(r'Cannot run program "([^"]+)"')
NOT_THERE = "No module named 'beforehand"
CODE_HINT = (
    "install this version on every machine of the cluster, or pass `--ship`, which sends it; if it "
    "is installed, set PYSPARK_PYTHON to the path of its Python there; if the sources changed "
    "meanwhile, run the command again"
)
FOLDER_HINT = "give a folder that all machines of the cluster share, under the same path"


class ProbeResult(msgspec.Struct, frozen=True):
    """The findings of one probe task about its executor."""

    host: str
    code: str
    """Digest and versions of the package; empty if the executor lacks it or its dependencies."""
    problem: str
    """The import error if the executor does not have the package."""
    unshared: tuple[tuple[str, str], ...] = ()
    """Folders that differ from those of the driver, and the reason for each."""


@functools.cache
def code_here() -> str:
    """Return a digest of this package in the current process, and the versions of its compiler.

    The package may be in a zip file. Other versions of NumPy and Numba may compute other events.
    """
    digest = hashlib.sha256()
    for name, content in files_of_package():
        if name.endswith(".py"):
            digest.update(name.encode() + b"\0" + content)
    others = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba"))
    return f"sources {digest.hexdigest()[:12]}, {others}"


def same_code(function: Function) -> Function:
    """Wrap a function for tasks: it raises InputError on executors with other code than the
    driver."""
    expected = code_here()

    def run(*arguments: Any) -> Any:
        if code_here() != expected:
            raise other_code(code_here(), expected)
        return function(*arguments)

    return run  # type: ignore[return-value]


def other_code(found: str, expected: str) -> InputError:
    """Return the error that a task raises on an executor with other code."""
    import socket

    problem = f"an executor runs other code: {found}; here it is {expected}"
    return InputError(problem, where=socket.gethostname(), hint=CODE_HINT)


@contextmanager
def readable_failures() -> Iterator[None]:
    """Raise an InputError that a task raised as such, without pages of Java output."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        last_line = _last_words(error)
        if NO_PYTHON.search(str(error)):
            raise InputError(f"the tasks cannot be run: {last_line}", hint=CODE_HINT) from error
        if NOT_THERE in last_line:
            problem = f"an executor does not have this package: {last_line}"
            raise InputError(problem, hint=CODE_HINT) from error
        if last_line.startswith("InputError: "):
            raise InputError(last_line.partition(": ")[2], hint=CODE_HINT) from error
        raise


def has_executors(spark: SparkSession) -> bool:
    """Return whether tasks run outside child processes of this process."""
    return is_remote() or not is_local(spark.sparkContext.master or "")


def is_local(master: str) -> bool:
    """Return whether this master runs tasks without executors."""
    return LOCAL.fullmatch(master) is not None


def check_executors(spark: SparkSession, *folders: Path, reads: Iterable[Path] = ()) -> None:
    """Raise InputError for executors that lack this code or do not see the driver's files.

    folders: the folders that tasks write to.
    reads: files that tasks read, or a sample of them.
    """
    marks = {str(folder.absolute() / f".shared.{own_name()}"): own_name() for folder in folders}
    sizes = {str(path.absolute()): path.stat().st_size for path in reads}
    count = CONNECT_TASKS if is_remote() else spark.sparkContext.defaultParallelism
    try:
        for mark, last_line in marks.items():
            Path(mark).write_text(last_line)
        tasks = spark.range(0, count, 1, count)
        rows = tasks.mapInArrow(_probe(marks, sizes), "seen string").collect()
    except (PySparkException, Py4JError) as error:
        problem = f"the executors cannot run Python tasks: {_last_words(error)}"
        raise InputError(problem, hint=CODE_HINT) from error
    finally:
        for mark in marks:
            Path(mark).unlink(missing_ok=True)
    seen = {msgspec.json.decode(row["seen"], type=ProbeResult) for row in rows}
    problems = [p for one in sorted(seen, key=repr) for p in _problems(one)]
    if problems:
        raise problems[0] if len(problems) == 1 else InputErrors(problems[:ERRORS_MAX])


def _problems(seen: ProbeResult) -> Iterator[InputError]:
    if not seen.code:
        problem = f"an executor does not have this package, or what it needs: {seen.problem}"
        yield InputError(problem, where=seen.host, hint=CODE_HINT)
    elif seen.code != code_here():
        problem = f"an executor runs other code: {seen.code}; here it is {code_here()}"
        yield InputError(problem, where=seen.host, hint=CODE_HINT)
    for folder, why in dict(seen.unshared).items():
        problem = f"an executor does not share the folder: {why}"
        yield InputError(problem, where=f"{seen.host}: {folder}", hint=FOLDER_HINT)


def _probe(
    marks: Mapping[str, str], sizes: Mapping[str, int]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the probe function, which Spark sends by value: the package may be missing there.

    marks: marker files and their content. sizes: of the files that tasks read.
    """

    def look(batches: Iterator[Any]) -> Iterator[Any]:
        import importlib
        import json
        import os
        import socket
        import time

        import pyarrow

        def why_not(path: str) -> str:
            try:
                if path in sizes:
                    return "" if os.stat(path).st_size == sizes[path] else "it has another file"
                with open(path) as opened:
                    is_same = opened.read() == marks[path]
                may_write = os.access(os.path.dirname(path), os.W_OK | os.X_OK)
                return (
                    "the folder cannot be written to"
                    if not may_write
                    else ("" if is_same else "it has another file")
                )
            except OSError as error:
                return error.strerror or str(error)

        code = problem = ""
        try:
            code = importlib.import_module("beforehand.spark.executors").code_here()
        except ImportError as error:
            problem = str(error)
        for _ in range(5):  # a network file system may show a new file with a delay
            found = {path: why_not(path) for path in (*marks, *sizes)}
            if not any(found.values()):
                break
            time.sleep(0.2)
        unshared = [(os.path.dirname(path), why) for path, why in found.items() if why]
        seen = {"host": socket.gethostname(), "code": code, "problem": problem}
        text = json.dumps(seen | {"unshared": unshared})
        for _ in batches:
            yield pyarrow.RecordBatch.from_pydict({"seen": [text]})

    return look


def _last_words(error: Exception) -> str:
    text = str(error)
    if nowhere := NO_PYTHON.search(text):
        return f"there is no Python at `{nowhere[1]}`"
    found = EXCEPTION_LINE.findall(text)
    return found[-1] if found else (text.splitlines() or [type(error).__name__])[0]
