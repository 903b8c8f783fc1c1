"""The steps of each tutorial, followed as they are written, print what the page shows."""

import re
import socket
import tomllib

import pytest

from tests.documentation import REPO
from tests.tutorial_reader import NOT_RUN, TutorialReader, blocks_of, commands_of, matches

FOLDER = REPO / "docs" / "tutorials"
PAGES = sorted(FOLDER.glob("*.md"))
SPARK = {"data", "research"}
CASES = [
    pytest.param(page, id=page.stem, marks=[pytest.mark.spark] if page.stem in SPARK else [])
    for page in PAGES
]
PORT = "7401"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.parametrize("page", CASES)
def test_the_steps_of_a_tutorial_print_the_shown_output(page, tmp_path):
    # The port is the one thing that two runs of this test on one machine cannot share.
    TutorialReader(tmp_path).follow(page.read_text().replace(PORT, str(free_port())))


def test_there_is_a_tutorial_for_each_reader():
    assert {page.stem for page in PAGES} == {"application", "audit", "data", "research"}
    for page in PAGES:
        blocks = [block for block in blocks_of(page.read_text()) if block.language == "console"]
        assert sum(bool(typed.shown) for block in blocks for typed in commands_of(block)) > 2


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_extras_that_a_tutorial_installs_exist(page):
    project = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
    lines = re.findall(rf"^\$ {NOT_RUN}(.*)$", page.read_text(), re.MULTILINE)
    assert lines
    for line in lines:
        (extras,) = re.findall(r'"beforehand\[([\w,]+)\]"', line)
        assert set(extras.split(",")) <= project["optional-dependencies"].keys()


BROKEN = {
    "another output": "```console\n$ echo one\ntwo\n```\n",
    "more output": "```console\n$ printf 'one\\ntwo\\n'\none\n```\n",
    "no output": "```console\n$ true\none\n```\n",
    "a failing command": "```console\n$ false\n```\n",
    "another exit code": "```console\n$ false\n$ echo $?\n3\n```\n",
    "a terminal": '```console title="terminal 1"\n$ echo one\ntwo\n```\n',
    "a program": '```python title="a.py"\nexit(1)\n```\n```console\n$ python a.py\n```\n',
}


@pytest.mark.parametrize("page", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_step_is_noticed(page, tmp_path):
    with pytest.raises(AssertionError):
        TutorialReader(tmp_path).follow(page)


def test_dots_stand_for_any_lines():
    assert matches("a\n...\nd", "a\nb\nc\nd\n")
    assert matches("...\nd", "d\n")
    assert not matches("a\n...", "b\n")
    assert not matches("a\nd", "a\nb\nd\n")
