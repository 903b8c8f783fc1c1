"""Runs tests on changed functions of the package, each in a fork of one warm pytest.

The server collects a file of tests when a request names it first. For each request it forks. The
fork gives the changed functions their new code and runs the tests, so that a mutant costs little
more than the tests that kill it: no import, no collection, no file.

A request is a line `[file, its text after the change, tests]`, an answer is a line
`[exit code or null, what was printed]`. With the argument `interpreted` no kernel is compiled.

Code alone is changed: a changed constant, default value, decorator or class body takes a new
import, as does a function that ran while the package was imported, and a process that a test
starts. The answer is `[null, reason]` where that can be seen. `tests/test_mutants.py` then tries
the mutant on a changed copy of the package.
"""

import gc
import importlib
import inspect
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType

import numba
import pytest
from numba.cpython.unsafe import numbers

from idle_watch import watch  # the folder of a script is on its path

REPO = Path(__file__).parent.parent
SECONDS_MAX = 600
IDLE_SECONDS_MAX = 3
"""Many mutants fail because something never happens. The tests that kill them take milliseconds."""
PRINTED_MAX = 4000
PASSED, FAILED = 0, 1
IDLE = f"idle for {IDLE_SECONDS_MAX} s"

# Other installed packages may have plugins for pytest. Every run would load each plugin and
# rewrite its asserts again.
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
OPTIONS = ["-q", "-s", "--tb=line", "-p", "_hypothesis_pytestplugin", "-p", "no:cacheprovider"]
OPTIONS += ["--hypothesis-profile", "mutant"]

Key = tuple[str, str, int]
"""File, qualified name and first line of a function."""


def main(mode: str, scratch: str) -> None:
    options = [*OPTIONS, "--basetemp", scratch]
    if mode == "interpreted":
        numba.config.DISABLE_JIT = True
        numbers.trailing_zeros = _trailing_zeros  # Numba has it for compiled code alone
        # Numbers of 64 bits wrap around, as draws want it; NumPy would have us know.
        options += ["-W", "ignore:overflow encountered:RuntimeWarning"]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what pytest prints is no answer
    # Any one test will do to begin with: a session wants one.
    first = str(REPO / "tests" / "test_units.py")
    pytest.main([*options, first], plugins=[Server(answers)])


class Server:
    def __init__(self, answers) -> None:
        self._answers = answers
        self._items: dict[str, list[pytest.Item]] = {}
        self._functions: dict[Key, list[FunctionType]] = {}
        self._reports: list[pytest.TestReport] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._reports.append(report)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        gc.unfreeze()  # `_note_functions` looks for what is not frozen
        for line in sys.stdin:
            file, text, tests = json.loads(line)
            if file:  # some tests import late what they test
                importlib.import_module(_module(file))
            items = [item for test in tests for item in self._collect(session, test)]
            self._note_functions()
            json.dump(self._answer(file, text, items), self._answers)
            self._answers.write("\n")
            self._answers.flush()
        return True

    def _collect(self, session: pytest.Session, test: str) -> list[pytest.Item]:
        path, _, name = test.partition("::")
        if path not in self._items:
            _keep_conftests(session)
            self._items[path] = list(session.perform_collect([str(REPO / path)]))
        return [
            item
            for item in self._items[path]
            if not name or item.name == name or item.name.startswith(f"{name}[")
        ]

    def _note_functions(self) -> None:
        gc.collect()
        for thing in gc.get_objects():  # those since the last `freeze`
            if type(thing) is FunctionType:
                self._functions.setdefault(_key(thing.__code__), []).append(thing)
        gc.freeze()  # what a fork does not look at, it does not copy

    def _answer(self, file: str | None, text: str, items: list[pytest.Item]) -> list[object]:
        if not items:
            return [None, "there is no such test"]
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            signal.alarm(SECONDS_MAX)
            watch(IDLE_SECONDS_MAX, lambda: _end([FAILED, IDLE], writing))
            _end(self._run(file, text, items), writing)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            told = pipe.read()
        os.waitpid(child, 0)
        return json.loads(told) if told else [None, "it died, or took too long"]

    def _run(self, file: str | None, text: str, items: list[pytest.Item]) -> list[object]:
        problem = self._change(str(REPO / file), text) if file else ""
        if problem:
            return [None, problem]
        for item in items:
            item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
            if self._reports:
                # A failure is what is wanted: a line of it will do.
                return [FAILED, str(self._reports[0].longrepr)[-PRINTED_MAX:]]
        return [PASSED, f"{len(items)} passed"]

    def _change(self, path: str, text: str) -> str:
        """Give the functions of a file their new code; return why that cannot be done, or ""."""
        before = compile(Path(path).read_text(), path, "exec", dont_inherit=True)
        after = compile(text, path, "exec", dont_inherit=True)
        changed = list(_changes(before, after))
        for old, new in changed:
            if not old.co_flags & inspect.CO_OPTIMIZED:
                return f"more than functions is changed: {old.co_qualname}"
            functions = self._functions.get(_key(old), [])
            if not functions and "<locals>" not in old.co_qualname:
                return f"no function has the code of {old.co_qualname}"
            for function in functions:
                if len(new.co_freevars) != len(function.__closure__ or ()):
                    return f"{old.co_qualname} uses other names of the function around it"
                function.__code__ = new
        return "" if changed else "nothing is changed"


def _keep_conftests(session: pytest.Session) -> None:
    """Give the fixtures of each conftest to its folder again, which is collected anew.

    Since pytest 9.1 they belong to the object that stands for the folder, no longer to its name.
    """
    pending = getattr(session._fixturemanager, "_pending_conftests", {})
    for name, plugin in session.config.pluginmanager.list_name_plugin():
        if name.endswith("conftest.py") and plugin:
            pending[Path(name).parent] = plugin


_ending = threading.Lock()


def _end(answer: list[object], writing: int) -> None:
    """Answer and end the process, whatever its threads wait for."""
    _ending.acquire()  # never released: nobody answers a second time
    os.write(writing, json.dumps(answer).encode())  # at once: it fits into a pipe
    os._exit(0)


def _module(file: str) -> str:
    return ".".join(Path(file).relative_to("src").with_suffix("").parts).removesuffix(".__init__")


def _key(code: CodeType) -> Key:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _changes(before: CodeType, after: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Pairs of code that differ in more than lines: functions with those around them, and modules
    and classes where more than their functions differs."""
    inner = [
        [const for const in code.co_consts if isinstance(const, CodeType)]
        for code in (before, after)
    ]
    if _own(before) != _own(after) or len(inner[0]) != len(inner[1]):
        yield before, after
        return
    changes = [change for pair in zip(*inner, strict=True) for change in _changes(*pair)]
    if changes and before.co_flags & inspect.CO_OPTIMIZED:
        yield before, after
    yield from changes


def _own(code: CodeType) -> tuple[object, ...]:
    """All of a code object but its lines and the code within it."""
    consts = [
        (type(const), const) if not isinstance(const, CodeType) else const.co_name
        for const in code.co_consts
    ]
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code, repr(consts), code.co_flags, names, code.co_exceptiontable


def _trailing_zeros(word: int) -> int:
    return (int(word) & -int(word)).bit_length() - 1


if __name__ == "__main__":
    main(*sys.argv[1:])
