"""Each deliberate bug is killed by its named test.

A mutant is a change of the source text: a row of title, place, text before, text after and killer
in one of the tables of `tests/mutants/`. `tests/mutant_index.py` defines how places and killers are
named. The named test must fail with the change, and pass without it, which the rest of the suite
shows. `tests/mutant_server.py` changes functions in a process that has imported everything. Where
that is not possible or has no effect, the test runs on a changed copy of the package.
"""

import contextlib
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
INDEX = Index(REPO)
PYTEST_FAILED = 1
SECONDS_MAX = 600
PRINTED_MAX = 4000

INTERPRETED = (
    "tests/commands/test_trace_symptoms.py",
    "tests/kernels/overlay/test_run.py",
    "tests/kernels/queue/test_calendar.py",
    "tests/kernels/verify/test_causality.py",
    "tests/kernels/test_contacts.py",
    "tests/kernels/observer/test_drift.py",
    "tests/kernels/observer/test_reorder.py",
    "tests/kernels/verify/test_running.py",
    "tests/kernels/verify/test_violations.py",
    "tests/mobility/test_odd_files.py",
    "tests/observe/test_state.py",
    "tests/observe/test_versions.py",
    "tests/observe/test_waking.py",
    "tests/pipeline/contacts/test_verdicts.py",
    "tests/pipeline/worlds/test_overlay.py",
    "tests/sim/contacts/test_twin.py",
    "tests/sim/test_radio.py",
    "tests/verify/test_doubts.py",
    "tests/verify/test_floors.py",
    "tests/verify/test_one_answer.py",
    "tests/verify/test_stream.py",
    "tests/verify/test_verdict.py",
)
"""Killers that need little of a kernel: to compile it takes ten times as long as to interpret it,
and a changed kernel is compiled anew with all that it calls."""


def _mode(tests):
    return "interpreted" if all(test.startswith(INTERPRETED) for test in tests) else "compiled"


def _group(killer):
    """Return the group of a mutant: one worker gets all mutants whose killers are in one file,
    because it has collected that file. One worker gets all mutants without compilation, because
    they need a server of their own."""
    try:
        file = INDEX.killer(killer).partition("::")[0]
    except AssertionError:  # told by `test_every_mutant_finds_its_place_and_its_killer`
        file = "nowhere"
    return "interpreted mutants" if file in INTERPRETED else f"mutants of {file}"


MUTANTS = [
    pytest.param(
        *mutant[1:],
        id=f"{table}: {mutant[0]}",
        marks=pytest.mark.xdist_group(_group(mutant[-1])),
    )
    for table in TABLES
    for mutant in importlib.import_module(f"tests.mutants.{table}").MUTANTS
]


@pytest.fixture(scope="module")
def run_test(tmp_path_factory):
    """(file, its changed text, tests) -> (exit code or null, what was printed)."""
    servers = {}
    with contextlib.ExitStack() as stack:

        def start(mode):
            scratch = tmp_path_factory.mktemp(mode) / "base"
            command = [sys.executable, str(REPO / "tests" / "mutant_server.py"), mode, str(scratch)]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            server = stack.enter_context(subprocess.Popen(command, **pipes, text=True, cwd=REPO))
            stack.callback(server.stdin.close)
            return server

        def run(file, text, *tests):
            mode = _mode(tests)
            server = servers.get(mode) or servers.setdefault(mode, start(mode))
            server.stdin.write(json.dumps([file, text, tests]) + "\n")
            server.stdin.flush()
            return json.loads(server.stdout.readline())

        yield run


@pytest.fixture(scope="module")
def assert_sound(run_test):
    """A killer that fails in the server without any mutant would kill every mutant.

    One killer of each file is tried, and each that kills because it is idle.
    """
    passed = set()

    def check(test, printed):
        file = test.partition("::")[0]
        tried = test if printed.startswith("idle") else file
        if tried not in passed:
            code, said = run_test(None, None, test)
            assert code == 0, f"{test} fails where nothing is changed:\n{said}"
            passed.update((file, test))

    return check


@pytest.mark.parametrize(("place", "before", "after", "killer"), MUTANTS)
def test_the_named_test_kills_the_mutant(
    tmp_path, run_test, assert_sound, place, before, after, killer
):
    file, text = INDEX.mutate(place, before, after)
    test = INDEX.killer(killer)
    code, printed = run_test(file, text, test)
    if code == PYTEST_FAILED:
        assert_sound(test, printed)
    else:
        again, said = run_on_a_copy(tmp_path, file, text, test)
        assert again == PYTEST_FAILED, f"{printed}\nand on a copy of the package:\n{said}"


def run_on_a_copy(folder, file, text, test):
    """Run a test on a changed copy, with all imports anew: for changes beyond a function, and for
    code in another process."""
    shutil.copytree(REPO / "src", folder / "src", ignore=shutil.ignore_patterns("*.egg-info"))
    (folder / file).write_text(text)
    for stale in (folder / file).parent.glob(f"__pycache__/{Path(file).stem}.*"):
        stale.unlink()
    # A line of a failure will do.
    options = ["-q", "-x", "--tb=line", "-p", "no:cacheprovider", "--hypothesis-profile", "mutant"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(REPO / test)],
        env=os.environ | {"PYTHONPATH": f"{folder / 'src'}:{REPO}"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    return done.returncode, done.stdout[-PRINTED_MAX:]


def test_every_mutant_finds_its_place_and_its_killer():
    """The failure lists all of them, because a rename breaks many at once."""
    problems = []
    for mutant in MUTANTS:
        *change, killer = mutant.values
        for find, arguments in ((INDEX.mutate, change), (INDEX.killer, [killer])):
            try:
                find(*arguments)
            except AssertionError as error:
                problems.append(f"{mutant.id}: {error}")
    assert not problems, "\n".join(problems)


def test_a_killer_passes_where_nothing_is_changed(tmp_path, run_test):
    killer = INDEX.killer("test_needs::")
    assert run_test(None, None, killer)[0] == 0
    file = "src/beforehand/units.py"
    on_a_copy = run_on_a_copy(tmp_path, file, (REPO / file).read_text(), killer)
    assert on_a_copy[0] == 0, on_a_copy


@pytest.mark.xdist_group("interpreted mutants")
def test_a_killer_passes_where_nothing_is_changed_and_no_kernel_is_compiled(run_test):
    """The rest of the suite shows it for those that are compiled."""
    killers = {INDEX.killer(mutant.values[-1]) for mutant in MUTANTS}
    code, printed = run_test(None, None, *sorted(k for k in killers if k.startswith(INTERPRETED)))
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
def test_a_mutant_without_a_unique_place_is_refused_with_the_reason(index, place, before, problem):
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
