"""Runs tests on changed copies of the package, each in a fork of a process that has imported what
they all need and nothing of ours: that is most of what a short test costs.

A request is a line `[folder, tests, whether kernels are compiled]`, an answer a line
`[exit code or null, what was printed]`.
"""

import contextlib
import gc
import importlib
import io
import json
import os
import signal
import sys
from pathlib import Path

import numba
import pytest
from numba.cpython.unsafe import numbers

REPO = Path(__file__).parent.parent
SECONDS_MAX = 300
PRINTED_MAX = 4000

NEEDED = ("asyncio", "hypothesis", "msgspec", "numpy", "pandas", "pyarrow.parquet")

# What else is installed may come with a plugin for pytest, which is loaded, and its asserts
# rewritten, by every run anew.
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
# Many mutants die because something never happens. The tests that kill them take milliseconds.
os.environ["BEFOREHAND_TEST_SECONDS_MAX"] = "5"
PLUGINS = ["-p", "_hypothesis_pytestplugin", "-p", "no:cacheprovider"]


def main() -> None:
    for name in NEEDED:
        importlib.import_module(name)
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main(["--version", *PLUGINS])  # imports the rest of pytest
    gc.freeze()  # what a fork does not look at, it does not copy
    for line in sys.stdin:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            answer = _run(*json.loads(line))
            with os.fdopen(writing, "w") as pipe:
                json.dump(answer, pipe)
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            told = pipe.read()
        os.waitpid(child, 0)
        sys.stdout.write((told or json.dumps([None, "it died, or took too long"])) + "\n")
        sys.stdout.flush()


def _run(folder: str, tests: list[str], compiles: bool) -> tuple[int, str]:
    signal.alarm(SECONDS_MAX)
    if not compiles:
        numba.config.DISABLE_JIT = True
        numbers.trailing_zeros = _trailing_zeros  # Numba has it for compiled code alone
    os.chdir(folder)
    os.environ["PYTHONPATH"] = f"{folder}/src:{REPO}"
    sys.path[:0] = [f"{folder}/src", str(REPO)]
    sys.dont_write_bytecode = True
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        # A failure is what is wanted: a line of it will do, and a page takes longer than the test.
        options = ["-q", "-x", "--tb=line", *PLUGINS]
        # Hypothesis is imported already, and need not be rewritten.
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        options += ["--hypothesis-profile", "mutant"]
        if not compiles:
            # Numbers of 64 bits wrap around, as draws want it; NumPy would have us know.
            options += ["-W", "ignore:overflow encountered:RuntimeWarning"]
        code = pytest.main([*options, *(str(REPO / test) for test in tests)])
    return int(code), printed.getvalue()[-PRINTED_MAX:]


def _trailing_zeros(word: int) -> int:
    return (int(word) & -int(word)).bit_length() - 1


if __name__ == "__main__":
    main()
