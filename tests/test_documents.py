"""Every command in the documents works as shown, or is listed here with the reason."""

from __future__ import annotations

import json
import re
import shlex
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from beforehand.cli import main
from beforehand.commands.shell.dispatch import COMMANDS
from beforehand.runtime.crypto.keys import new_group
from tests.mobility.town import write_feed
from tests.report.made_up import write_datasets
from tests.verify.test_node_logs import SOUND, split, write_all
from tests.verify.test_verdict import CHAIN, table_of

REPO = Path(__file__).parent.parent
DOCUMENTS = [REPO / "README.md", *sorted((REPO / "docs").glob("*.md"))]
FENCED = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"^(?:\$ )?(?:PYTHONPATH=src )?(?:\.venv/bin/)?((?:beforehand|python) .*)$")

NOT_RUN = {
    "python benchmarks/": "measures for minutes",
    "python examples/observer_live/watch.py": "goes on until it is stopped; its own test runs it",
    "beforehand chat": "goes on until it is stopped; tests/commands runs it",
    "beforehand gateway": "goes on until it is stopped; tests/runtime runs it",
    "beforehand node": "goes on until it is stopped; tests/commands runs it",
    "beforehand station": "goes on until it is stopped; tests/runtime runs it",
    "beforehand host": "goes on until it is stopped; tests/runtime runs it",
    "python examples/overlay_failing_node.py": "starts processes; its own test runs it",
    "beforehand group join beforehand1-": "an invite is a secret; tests/commands runs it",
    "beforehand observe events": "starts Spark; tests/observe runs it",
    "beforehand observe sample": "starts Spark; tests/observe runs it",
}
"""The reason why a command is parsed and not run, by the beginning of the command."""
EXIT_CODES = {
    "beforehand verify hosts.csv": 1,  # a delivery in it is late
    "beforehand verify events.parquet": 1,  # the log of the fixture is one with a story
    "beforehand status out/": 3,  # nothing of it is there yet
    "beforehand doctor": None,  # it depends on the machine
}
"""The exit code by the beginning of the command, where it is not 0."""


def commands(text: str) -> Iterator[str]:
    for block in FENCED.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            if found := SHOWN.match(line):
                yield " ".join(shlex.split(found[1], comments=True, posix=False))


ALL = sorted({(command, path.name) for path in DOCUMENTS for command in commands(path.read_text())})
RUN = [pair for pair in ALL if not pair[0].startswith(tuple(NOT_RUN))]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return a folder with the files that the documents name and that the repository lacks."""
    monkeypatch.chdir(tmp_path)
    feed = write_feed(tmp_path / "feed")
    with zipfile.ZipFile(tmp_path / "feed.zip", "w") as packed:
        for file in feed.iterdir():
            packed.write(file, file.name)
    (tmp_path / "contacts.txt").write_text("a b 0 600\nb c 100 900\nc d 500 1200\n")
    rows = "1,0,18.06,59.33,3\n1,60,18.07,59.33,3\n2,0,18.07,59.33,4\n2,60,18.06,59.33,4\n"
    (tmp_path / "taxis.csv").write_text(f"taxi_id,timestamp,lng,lat,speed\n{rows}")
    (tmp_path / "sends.csv").write_text("node,kind,message\na,send,1\nb,receive,1\n")
    hosts = (
        "ann,broadcast,1",
        "bob,deliver,1",
        "bob,broadcast,2",
        "eve,deliver,2",
        "eve,deliver,1",
    )
    (tmp_path / "hosts.csv").write_text("\n".join(["host,what,uuid", *hosts]))
    new_group("harbour").write(tmp_path / "harbour.key")
    pq.write_table(table_of(CHAIN), tmp_path / "events.parquet")
    (tmp_path / "parts").mkdir()
    sound = table_of(CHAIN[:10])
    pq.write_table(sound.slice(0, 5), tmp_path / "parts" / "part-0.parquet")
    pq.write_table(sound.slice(5), tmp_path / "parts" / "part-1.parquet")
    write_all(tmp_path / "logs", split(SOUND))
    for name in ("city-bus", "observer-figures"):
        folder = tmp_path / "out" / name
        folder.mkdir(parents=True)
        plan = {"scenario": name, "world": "contacts", "stages": {"events": ["data/events/a"]}}
        (folder / "plan.json").write_text(json.dumps(plan))
    return tmp_path


def arguments(command: str) -> list[str]:
    """Return the arguments of a command in a short form: no Spark, few seeds."""
    words = shlex.split(command)[1:]
    if words[0] == "run" and "--dry-run" not in words:
        words.append("--dry-run")
    if words[:2] == ["group", "new"]:
        words += ["--out", "another.key"]  # the one that other commands read is there
    if words[0] == "fuzz":
        words[words.index("--seeds") + 1] = "1"
        words += ["--workers", "1"]
    return words


@pytest.mark.parametrize(("command", "document"), RUN)
def test_a_command_of_the_documents_prints_the_shown_output(place, capsys, command, document):
    if command == "beforehand verify out/city-bus":
        pq.write_table(table_of(CHAIN[:10]), place / "out" / "city-bus" / "events.parquet")
        (place / "out" / "city-bus" / "plan.json").unlink()
    if command.startswith("beforehand export"):
        assert main(["simulate", "contacts.txt", "--events", "run.parquet"]) == 0
    if command.startswith(("beforehand diff", "beforehand report")):
        for folder in re.findall(r"out/\S+", command):
            (place / folder).mkdir(exist_ok=True)
            write_datasets(place / folder, seeds=2)
    code = main(arguments(command))
    codes = [code for start, code in EXIT_CODES.items() if command.startswith(start)] or [0]
    shown = capsys.readouterr()
    assert codes[0] in (code, None), shown.err
    assert "error:" not in shown.err


def test_every_command_is_in_a_document():
    shown = {command.split()[1] for command, _ in ALL if command.startswith("beforehand ")}
    assert {module.__name__.rpartition(".")[2] for module in COMMANDS} <= shown


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_imports_in_the_python_of_a_document_work(document):
    blocks = re.findall(r"^```python\n(.*?)^```", document.read_text(), re.MULTILINE | re.DOTALL)
    imports = re.findall(r"^(?:from beforehand\S* )?import .*$", "\n".join(blocks), re.MULTILINE)
    for line in imports:
        exec(line, {})


def test_the_commands_of_the_documents_are_found():
    assert len(RUN) > 15
    assert all(any(command.startswith(start) for command, _ in ALL) for start in NOT_RUN)
    text = "```console\n$ beforehand run a.toml \\\n   --seeds 3   # what\n$ ls\n```\n"
    assert list(commands(text)) == ["beforehand run a.toml --seeds 3"]


@pytest.mark.parametrize("command", [c for c, _ in ALL if c.startswith("python ")])
def test_a_script_named_in_the_documents_exists(command):
    assert (REPO / command.split()[1]).is_file()


PAGES = [*sorted(REPO.glob("*.md")), *sorted((REPO / "docs").rglob("*.md"))]
FILE = re.compile(r"`([a-z][\w.-]*/[\w./-]+\.(?:css|html|js|md|py|toml))`")
PLACES = ("", "src/beforehand", "tests")
MEMBER = re.compile(r"`([A-Z]\w+)\.(\w+)(?:\(\S*\))?`")


def strange_names(text: str, sources: dict[str, str]) -> list[str]:
    """Return the files and members of classes that a text names and that do not exist."""
    plain = re.sub(FENCED, "", text)
    strange = [
        name
        for name in FILE.findall(plain)
        if not re.search("^out/|[A-Z]{4}", name)  # results, and what the reader fills in
        and not any((REPO / place / name).is_file() for place in PLACES)
    ]
    for owner, member in MEMBER.findall(plain):
        homes = [
            source for source in sources.values() if re.search(rf"^class {owner}\b", source, re.M)
        ]
        if homes and not any(re.search(rf"\b{member}\b", home) for home in homes):
            strange.append(f"{owner}.{member}")
    return strange


@pytest.fixture(scope="module")
def sources():
    return {str(path): path.read_text() for path in (REPO / "src").rglob("*.py")}


@pytest.mark.parametrize("document", PAGES, ids=lambda path: path.name)
def test_files_and_members_named_in_a_document_exist(document, sources):
    assert strange_names(document.read_text(), sources) == []


def test_names_that_no_longer_exist_are_found(sources):
    text = (
        "`check/cube_net.py`, `check/net/net.py`, `Barrier._forget`, `Barrier.on_evict`, "
        "`Nobody.here`"
    )
    assert strange_names(text, sources) == ["check/cube_net.py", "Barrier._forget"]
