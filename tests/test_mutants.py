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


@pytest.fixture(scope="module")
def run_test():
    """(folder, test) -> (exit code, what was printed)."""
    command = [sys.executable, str(REPO / "tests" / "mutant_server.py")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:

        def run(folder, test):
            server.stdin.write(json.dumps([str(folder), test]) + "\n")
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


def test_there_are_enough_of_them():
    assert len(MUTANTS) >= 10
