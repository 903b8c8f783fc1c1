"""Every deliberate bug is killed by the test that is named for it.

A mutant is a change of the source text: a row of name, place, text before, text after and killer in
one of the tables of `tests/mutants/`. How places and killers are named is said in
`tests/mutant_index.py`. The package is copied, changed, and the named test must fail on the copy
(and pass on the original, which the rest of the suite shows).
"""

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutant_index import Index

REPO = Path(__file__).parent.parent
TABLES = sorted(path.stem for path in (REPO / "tests" / "mutants").glob("[a-z]*.py"))
MUTANTS = [
    pytest.param(*mutant[1:], id=f"{table}: {mutant[0]}")
    for table in TABLES
    for mutant in importlib.import_module(f"tests.mutants.{table}").MUTANTS
]
INDEX = Index(REPO)
PYTEST_FAILED = 1

INTERPRETED = (
    "tests/commands/test_trace_symptoms.py",
    "tests/kernels/overlay/test_run.py",
    "tests/kernels/queue/test_calendar.py",
    "tests/kernels/verify/test_causality.py",
    "tests/kernels/test_contacts.py",
    "tests/kernels/observer/test_drift.py",
    "tests/kernels/observer/test_reorder.py",
    "tests/kernels/verify/test_violations.py",
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


@pytest.mark.parametrize(("place", "before", "after", "killer"), MUTANTS)
def test_the_named_test_kills_the_mutant(tmp_path, source, run_test, place, before, after, killer):
    file, text = INDEX.mutate(place, before, after)
    test = INDEX.killer(killer)
    shutil.copytree(source, tmp_path / "src", copy_function=os.link)
    (tmp_path / file).unlink()
    (tmp_path / file).write_text(text)
    for stale in (tmp_path / file).parent.glob(f"__pycache__/{Path(file).stem}.*"):
        stale.unlink()
    code, printed = run_test(tmp_path, test)
    assert code == PYTEST_FAILED, printed


def test_every_mutant_finds_its_place_and_its_killer():
    """All that do not, in one list: they are many after functions were renamed."""
    problems = []
    for mutant in MUTANTS:
        *change, killer = mutant.values
        for find, arguments in ((INDEX.mutate, change), (INDEX.killer, [killer])):
            try:
                find(*arguments)
            except AssertionError as error:
                problems.append(f"{mutant.id}: {error}")
    assert not problems, "\n".join(problems)


def test_a_killer_passes_where_nothing_is_changed(tmp_path, source, run_test):
    shutil.copytree(source, tmp_path / "src", copy_function=os.link)
    assert run_test(tmp_path, INDEX.killer("test_needs::"))[0] == 0


def test_a_killer_passes_where_nothing_is_changed_and_no_kernel_is_compiled(
    tmp_path, source, run_test
):
    """The rest of the suite shows it for those that are compiled."""
    shutil.copytree(source, tmp_path / "src", copy_function=os.link)
    killers = {INDEX.killer(mutant.values[-1]) for mutant in MUTANTS}
    code, printed = run_test(tmp_path, *sorted(k for k in killers if k.startswith(INTERPRETED)))
    assert code == 0, printed


def test_enough_cases_are_generated():
    assert len(MUTANTS) >= 10


WAITING = '''"""Two ways to wait."""

LIMIT = 3


class Waiting:
    @property
    def limit(self):
        return LIMIT

    def admit(self, message):
        if message.past:
            return False

        return True


def admit(message):
    def look(id):
        return id

    return look(message)
'''


@pytest.fixture
def index(tmp_path):
    """Of a small repository, in which two modules and two files of tests define the same names."""
    files = {
        "src/ours/__init__.py": "",
        "src/ours/north/waiting.py": WAITING,
        "src/ours/south/waiting.py": "def admit(message):\n    return None\n",
        "tests/north/test_net.py": "def test_it_waits(): ...\ndef test_alone(): ...\n",
        "tests/south/test_net.py": "async def test_it_waits(): ...\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return Index(tmp_path)


@pytest.mark.parametrize(
    ("place", "before", "after", "in_file"),
    [
        (
            "Waiting.admit",
            "    if message.past:\n        return False\n\n",
            "    if message:\n        pass\n",
            (
                "        if message.past:\n            return False\n\n",
                "        if message:\n            pass\n",
            ),
        ),
        ("Waiting.admit", "message.past", "message", None),
        ("Waiting.limit", "LIMIT", "4", ("return LIMIT", "return 4")),
        ("Waiting", "    @property\n", "", None),
        ("north.waiting:admit", "look(message)", "None", None),
        ("admit.look", "return id\n", "return 1\n", None),
        ("north.waiting:", "LIMIT = 3", "LIMIT = 4", None),
    ],
)
def test_a_mutant_is_made_by_function_and_text(index, place, before, after, in_file):
    file, text = index.mutate(place, before, after)
    assert file == "src/ours/north/waiting.py"
    assert text == WAITING.replace(*(in_file or (before, after))) != WAITING


@pytest.mark.parametrize(
    ("place", "before", "problem"),
    [
        ("Waiting.refuse", "x", "no function or class is called `Waiting.refuse`"),
        ("barrier:Waiting.admit", "x", "no function or class is called `barrier:Waiting.admit`"),
        ("admit", "return", "`admit` is in north.waiting and south.waiting: begin with `module:`"),
        ("waiting:", "return", "`waiting:` is in north.waiting and south.waiting: begin"),
        ("Waiting.admit", "maybe", "0 times in `Waiting.admit`, and must be there once:\nmaybe"),
        ("Waiting.admit", "return", "2 times in `Waiting.admit`, and must be there once:\nreturn"),
    ],
)
def test_a_mutant_without_one_place_is_told_why(index, place, before, problem):
    with pytest.raises(AssertionError) as told:
        index.mutate(place, before, "")
    assert str(told.value).startswith(problem)


def test_a_killer_is_found_by_its_name(index):
    assert index.killer("test_alone") == "tests/north/test_net.py::test_alone"
    assert index.killer("south/test_net::test_it_waits[a::b[0]]") == (
        "tests/south/test_net.py::test_it_waits[a::b[0]]"
    )
    assert index.killer("north/test_net::") == "tests/north/test_net.py"
    for name, problem in {
        "test_nothing": "no test is called `test_nothing`",
        "test_it_waits": "`test_it_waits` is in north/test_net and south/test_net: begin with",
        "test_net::": "`test_net::` is in north/test_net and south/test_net: begin with `file::`",
    }.items():
        with pytest.raises(AssertionError) as told:
            index.killer(name)
        assert str(told.value).startswith(problem)
