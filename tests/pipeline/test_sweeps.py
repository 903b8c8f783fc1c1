"""A sweep computes what is missing and no more; its scenario is refused with all its mistakes."""

import shutil

import pytest

from beforehand.errors import InputError, InputErrors
from beforehand.pipeline.sweep_scenario import Option, list_of, read_sweep_scenario, world_of
from beforehand.pipeline.sweeps import ROWS_FILE, Task, run_sweep
from beforehand.pipeline.work import read_progress
from beforehand.scenario import values
from tests.pipeline.in_process import InProcess

TASKS = [Task(f"n{n}", {"n": n}, n, cost=n) for n in (2, 5, 3)]


class Squares:
    """A function that remembers what it was called with."""

    def __init__(self):
        self.calls = []

    def __call__(self, n):
        self.calls.append(n)
        return [{"n": n, "square": n * n}, {"n": n, "square": -n * n}]


def sweep(root, function, tasks=TASKS, session=None):
    session = session or InProcess()
    return run_sweep(
        root, "squares", tasks, function, sources=("errors.py",), open_spark=session.open
    )


def folder_of(root, label):
    (found,) = (root / "data" / "squares").glob(f"{label}-*")
    return found


def test_all_rows_come_in_the_order_of_the_tasks_and_the_longest_start_first(tmp_path):
    squares = Squares()
    swept = sweep(tmp_path, squares)
    assert [row["square"] for row in swept.rows] == [4, -4, 25, -25, 9, -9]
    assert squares.calls == [5, 3, 2]
    assert swept.computed == 3


def test_a_finished_sweep_opens_no_session(tmp_path):
    first = sweep(tmp_path, Squares())
    session, squares = InProcess(), Squares()
    again = sweep(tmp_path, squares, session=session)
    assert (session.opened, squares.calls, again.computed) == (0, [], 0)
    assert again.rows == first.rows


@pytest.mark.parametrize("lost", ["folder", "manifest.json"])
def test_what_is_missing_is_computed_and_no_more(tmp_path, lost):
    first = sweep(tmp_path, Squares())
    if lost == "folder":
        shutil.rmtree(folder_of(tmp_path, "n5"))
    else:  # a task that was killed after it wrote its rows
        (folder_of(tmp_path, "n5") / lost).unlink()
        (folder_of(tmp_path, "n5") / ROWS_FILE).write_bytes(b"cut off")
    squares = Squares()
    again = sweep(tmp_path, squares)
    assert squares.calls == [5]
    assert again.computed == 1
    assert again.rows == first.rows


def test_other_parameters_are_another_result(tmp_path):
    sweep(tmp_path, Squares())
    squares = Squares()
    sweep(tmp_path, squares, [Task("n2", {"n": 2, "tries": 9}, 2), *TASKS])
    assert squares.calls == [2]


def test_a_task_that_fails_leaves_what_others_finished(tmp_path):
    def fails_at_3(n):
        if n == 3:
            raise RuntimeError("out of luck")
        return [{"n": n}]

    with pytest.raises(RuntimeError, match="out of luck"):
        sweep(tmp_path, fails_at_3)
    (progress,) = read_progress(tmp_path)
    assert (progress.stage, progress.there, progress.wanted) == ("squares", 1, 3)


OPTIONS = {
    "size": Option(values.whole(1), 7),
    "kinds": Option(list_of(values.one_of("a", "b")), ("a",)),
}


def read(path, text, **options):
    path.write_text(text)
    return read_sweep_scenario(path, "toy", OPTIONS, **options)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "toy-story.toml"


def test_what_is_not_written_has_a_default(path):
    scenario = read(path, "")
    assert (scenario.name, scenario.title, scenario.paper) == ("toy-story", "toy-story", None)
    assert scenario.seeds == (1, 2, 3)
    assert scenario.options == {"size": 7, "kinds": ("a",)}


def test_what_is_written_counts_and_what_is_set_counts_more(path):
    text = '[scenario]\ntitle = "Toys"\n[sweep]\nseeds = 5\n[toy]\nsize = 2\nkinds = ["b", "a"]'
    scenario = read(path, text)
    assert (scenario.title, scenario.seeds) == ("Toys", (1, 2, 3, 4, 5))
    assert scenario.options == {"size": 2, "kinds": ("b", "a")}
    scenario = read(path, text, seeds=1, overrides=["toy.size=3", "scenario.title=More toys"])
    assert (scenario.title, scenario.seeds, scenario.options["size"]) == ("More toys", (1,), 3)
    assert scenario.document["toy"]["size"] == 3


def test_all_mistakes_are_told_at_once_with_their_lines(path):
    text = '[scenario]\nworld = "toy"\nworlds = 1\n[sweep]\nseeds = 0\n[toy]\nkinds = ["c"]\n[x]\n'
    with pytest.raises(InputErrors) as caught:
        read(path, text, overrides=["toy.size=none", "toy"])
    told = {(error.where.removeprefix(str(path)), error.problem) for error in caught.value.errors}
    assert told == {
        (":3", "no such key: `worlds`"),
        (":5", "`seeds`: not a whole number from 1 on: `0`"),
        (":7", "`kinds`: no such choice: `c`"),
        (":8", "no such table: `x`"),
        ("--set toy.size", "`size`: not a whole number from 1 on: `none`"),
        ("", "not a setting: `toy`"),
    }


@pytest.mark.parametrize("kinds", ["[]", '"a"', '["a", "a"]'])
def test_a_list_has_something_in_it_and_nothing_twice(path, kinds):
    with pytest.raises(InputError, match="`kinds`"):
        read(path, f"[toy]\nkinds = {kinds}")


@pytest.mark.parametrize(
    ("text", "world"),
    [("", "contacts"), ('[scenario]\nworld = "drift"', "drift"), ("scenario = 1", "contacts")],
)
def test_a_scenario_says_its_world_and_without_that_it_is_for_contacts(path, text, world):
    path.write_text(text)
    assert world_of(path) == world


def test_what_is_no_toml_or_not_there_is_refused(path):
    with pytest.raises(InputError, match="no such scenario"):
        world_of(path)
    with pytest.raises(InputError, match="not TOML"):
        read(path, "[toy\n")
