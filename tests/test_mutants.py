"""Every deliberate bug is killed by the test that is named for it.

A mutant is a change of the source text. The package is copied, changed, and the named test must
fail on the copy (and pass on the original, which the rest of the suite shows).
"""

import importlib
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


@pytest.mark.parametrize(("file", "before", "after", "killer"), MUTANTS)
def test_the_named_test_kills_the_mutant(tmp_path, file, before, after, killer):
    text = (REPO / file).read_text()
    assert text.count(before) == 1, f"the text to change must stand exactly once in {file}"
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(REPO / "src", tmp_path / "src", ignore=ignore)
    (tmp_path / file).write_text(text.replace(before, after))
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "-p", "no:xdist", str(REPO / killer)],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": f"{tmp_path / 'src'}:{REPO}",
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == PYTEST_FAILED, done.stdout[-2000:] + done.stderr[-2000:]


def test_there_are_enough_of_them():
    assert len(MUTANTS) >= 10
