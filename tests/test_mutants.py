"""Every deliberate bug is killed by the test that is named for it.

A mutant is a change of the source text. The package is copied, changed, and the named test must
fail on the copy (and pass on the original, which the rest of the suite shows).
"""

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parent.parent
TABLES = sorted(path.stem for path in Path(__file__).parent.glob("mutants_*.py"))
MUTANTS = [
    pytest.param(*mutant[1:], id=f"{table.removeprefix('mutants_')}: {mutant[0]}")
    for table in TABLES
    for mutant in importlib.import_module(f"tests.{table}").MUTANTS
]
PYTEST_FAILED = 1

INTERPRETED = (
    "tests/commands/test_trace_symptoms.py",
    "tests/kernels/overlay/test_run.py",
    "tests/kernels/test_calendar.py",
    "tests/kernels/test_causality.py",
    "tests/kernels/test_contacts.py",
    "tests/kernels/test_drift.py",
    "tests/kernels/test_reorder.py",
    "tests/kernels/test_violations.py",
    "tests/mobility/test_odd_files.py",
    "tests/observe/test_state.py",
    "tests/observe/test_waking.py",
    "tests/pipeline/worlds/test_overlay.py",
    "tests/sim/test_radio.py",
    "tests/verify/test_doubts.py",
    "tests/verify/test_one_answer.py",
    "tests/verify/test_verdict.py",
)
"""Killers that need little of a kernel: to compile it takes ten times as long as to interpret it,
and a changed kernel is compiled anew with all that it calls."""


@pytest.fixture(scope="module")
def run_test():
    """(folder, tests) -> (exit code, what was printed)."""
    command = [sys.executable, str(REPO / "tests" / "mutant_server.py")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:

        def run(folder, *tests):
            compiles = not all(test.startswith(INTERPRETED) for test in tests)
            server.stdin.write(json.dumps([str(folder), tests, compiles]) + "\n")
            server.stdin.flush()
            return json.loads(server.stdout.readline())

        yield run
        server.stdin.close()


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A copy to link to: most of a mutant is what it was, and a link takes no time. Whatever is
    changed or compiled there is a new file."""
    copy = tmp_path_factory.mktemp("original") / "src"
    shutil.copytree(REPO / "src", copy, ignore=shutil.ignore_patterns("*.egg-info"))
    return copy


@pytest.mark.parametrize(("file", "before", "after", "killer"), MUTANTS)
def test_the_named_test_kills_the_mutant(tmp_path, source, run_test, file, before, after, killer):
    text = (REPO / file).read_text()
    assert text.count(before) == 1, f"the text to change must stand exactly once in {file}"
    shutil.copytree(source, tmp_path / "src", copy_function=os.link)
    (tmp_path / file).unlink()
    (tmp_path / file).write_text(text.replace(before, after))
    for stale in (tmp_path / file).parent.glob(f"__pycache__/{Path(file).stem}.*"):
        stale.unlink()
    code, printed = run_test(tmp_path, killer)
    assert code == PYTEST_FAILED, printed


def test_a_killer_passes_where_nothing_is_changed(tmp_path, source, run_test):
    shutil.copytree(source, tmp_path / "src", copy_function=os.link)
    assert run_test(tmp_path, "tests/core/test_needs.py")[0] == 0


def test_a_killer_passes_where_nothing_is_changed_and_no_kernel_is_compiled(
    tmp_path, source, run_test
):
    """The rest of the suite shows it for those that are compiled."""
    shutil.copytree(source, tmp_path / "src", copy_function=os.link)
    killers = {mutant.values[-1] for mutant in MUTANTS}
    code, printed = run_test(tmp_path, *sorted(k for k in killers if k.startswith(INTERPRETED)))
    assert code == 0, printed


def test_there_are_enough_of_them():
    assert len(MUTANTS) >= 10
