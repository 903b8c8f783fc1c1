"""The rules for code that a machine can check, each with a sample that breaks it."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path, PurePath

import pytest

REPO = Path(__file__).parent.parent
PACKAGE = REPO / "src" / "beforehand"
FOLDERS = (".ci", "benchmarks", "docs", "examples", "src", "tests")
FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 50
LINE_COLUMNS_MAX = 100
FOLDER_ENTRIES_MAX = 13

# The imports that each part of the package may have: whole parts, or single modules of one.
PURE = ("errors", "promises", "units")
EVERYWHERE = (*PURE, "events", "files", "interval", "signals", "temporary")
MAY_IMPORT = {
    "errors": (),
    "units": ("errors",),
    "events": (),
    "promises": (),
    "temporary": (),
    "lazy": (),
    "signals": (),
    "files": ("errors", "temporary"),
    "interval": (),
    # A core has no files.
    "protocols": ("protocols", "lazy", *PURE),
    # Kernels know arrays, not our types.
    "kernels": ("kernels",),
    # Compiled code is kept in a temporary folder where nothing else can be written.
    "kernels.compiling": ("temporary",),
    "mobility": ("mobility", "kernels", *EVERYWHERE),
    # A world runs on a trace; how traces are read or made is not its business.
    "sim": ("sim", "protocols", "kernels", "mobility.trace", *EVERYWHERE),
    "runtime": ("runtime", "protocols", *EVERYWHERE),
    "check": ("check", "protocols", "sim", "runtime", "mobility.trace", *EVERYWHERE),
    "papers": ("papers", *EVERYWHERE),
    "scenario": ("scenario", "mobility", "sim", "protocols.registry", *EVERYWHERE),
    "spark": ("spark", *EVERYWHERE),
    # Event logs in, verdicts out: whatever wrote a log, its columns are the contract.
    "verify": ("verify", "logs", "kernels", *EVERYWHERE),
    # Logs of other systems in, events out.
    "logs": ("logs", *EVERYWHERE),
    "export": ("export", "kernels", "verify", *EVERYWHERE),
    "pipeline": (
        *("pipeline", "protocols", "sim", "kernels", "mobility", "check"),
        *("papers", "scenario", "spark", "verify", *EVERYWHERE),
    ),
    # The record of an experiment has its page, besides all that a pipeline may import.
    "pipeline.experiment": ("pipeline", "scenario", "report.content", *EVERYWHERE),
    "pipeline.worlds": (
        *("pipeline", "protocols", "sim", "kernels", "mobility", "check"),
        *("papers", "scenario", "spark", "verify", "report", *EVERYWHERE),
    ),
    "observe": ("observe", "protocols", "sim", "kernels", "spark", *EVERYWHERE),
    # Reads datasets: whatever wrote them, their columns are the contract.
    "report": ("report", "papers", "protocols.registry", *EVERYWHERE),
    # Logs in, a picture of a few events out.
    "diagram": ("diagram", "play", "verify", "logs", "kernels", *EVERYWHERE),
    # Logs and traces in, one page out.
    "play": ("play", "verify", "logs", "kernels", "mobility", *EVERYWHERE),
    "doctor": ("spark.java", *EVERYWHERE),
    "lab": ("lab", "lazy", "mobility", "sim", "pipeline", "report", "export", *EVERYWHERE),
    # All but the importer is imported when it is first used.
    "__init__": (
        "lazy",
        "protocols",
        "runtime",
        "observe.stream",
        "verify.verdict",
        "verify.causal_assertion",
        *EVERYWHERE,
    ),
    "__main__": ("cli",),
}
MAY_IMPORT["commands"] = (*(MAY_IMPORT.keys() - {"__init__", "__main__"}), "commands")
MAY_IMPORT["commands.shell.dispatch"] = (*MAY_IMPORT["commands"], "__init__")
MAY_IMPORT["cli"] = ("commands",)

ENTRY_POINTS = ("__init__", "__main__", "cli")
STANDALONE: tuple[str, ...] = (
    *("check.explore.explore", "check.fuzz.codec", "check.fuzz.links"),
    *("check.explore.liveness", "check.explore.small_nets", "verify.pytest_plugin"),
)
"""Modules that only tests import, and are meant so."""
BY_NAME = ("pipeline.worlds",)
"""Folders whose modules are found by their names, without a list."""

MACHINE_PATH = re.compile(r"/(?:work|root|home|Users)/\w+")
UNFINISHED = re.compile(r"\b(?:TO[D]O|FIX[M]E|X[X]X)\b")
VAGUE = re.compile(r"(?:^|_)utils?(?:_|$)|helper|manager", re.IGNORECASE)
GENERATED = re.compile(
    r"\.(?:parquet|arrow|feather|crc|png|jpe?g|gif|webm|pdf|zip|t?gz|zst|db|sqlite|pyc|so|nb[ci])$"
)


def read_modules(package: Path) -> dict[str, str]:
    """Return the source text by dotted name, without the name of the package itself."""
    modules = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        name = parts if parts == ("__init__",) or parts[-1] != "__init__" else parts[:-1]
        modules[".".join(name)] = path.read_text()
    return modules


def read_texts(suffixes: Iterable[str] | None = None) -> dict[str, str]:
    """Return the text files of the repository by path."""
    # In a linked worktree `.git` is a file, and says where the repository is.
    paths = [path for path in REPO.iterdir() if path.is_file() and path.name != ".git"]
    paths += [path for folder in FOLDERS for path in (REPO / folder).rglob("*") if path.is_file()]
    texts = {}
    for path in sorted(paths):
        if "__pycache__" in path.parts or any(part.endswith(".egg-info") for part in path.parts):
            continue
        if suffixes is None or path.suffix in suffixes:
            texts[str(path.relative_to(REPO))] = path.read_text(errors="replace")
    return texts


def our_imports(text: str, modules: Iterable[str]) -> set[str]:
    """Return the modules of the package that a source imports, anywhere in it."""
    known = {f"beforehand.{name}" for name in modules}
    named = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            # `from package import x`: x is a module or something in the package.
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            named |= {name if name in known else node.module for name in inner}
    ours = {name.partition(".") for name in named}
    return {rest or "__init__" for package, _, rest in ours if package == "beforehand"}


def wrong_way(module: str, imports: Iterable[str]) -> list[str]:
    around = [part for part in MAY_IMPORT if module == part or module.startswith(f"{part}.")]
    if not around:
        return [f"{module}: say in MAY_IMPORT what it may import"]
    allowed = MAY_IMPORT[max(around, key=len)]
    return [
        f"{module} must not import {name}"
        for name in sorted(imports)
        if not any(name == there or name.startswith(f"{there}.") for there in allowed)
    ]


def cycle(imports: Mapping[str, Iterable[str]]) -> list[str]:
    """Return rooms that import each other in a cycle, the first one again at the end; else empty.

    A room is a folder of the package with everything below it, or a module that is in none.
    """
    graph: dict[str, set[str]] = {}
    for module, names in imports.items():
        room = module.partition(".")[0]
        graph.setdefault(room, set()).update(name.partition(".")[0] for name in names)
    try:
        TopologicalSorter({room: names - {room} for room, names in graph.items()}).prepare()
    except CycleError as error:
        ring: list[str] = error.args[1]
        return ring[::-1]  # as they import, not as they would be made
    return []


def dead_modules(imports: Mapping[str, Iterable[str]], packages: Iterable[str]) -> list[str]:
    """Return the modules that no other module imports."""
    alive = {name for module, names in imports.items() for name in names if name != module}
    found = {module for module in imports if module.rpartition(".")[0] in BY_NAME}
    return sorted(set(imports) - alive - found - {*ENTRY_POINTS, *STANDALONE, *packages})


def long_functions(text: str) -> list[str]:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [
        f"{node.name}: {lines} lines"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, functions)
        and (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES_MAX
    ]


def long_file(text: str) -> list[str]:
    lines = text.count("\n")
    return [f"{lines} lines"] if lines > FILE_LINES_MAX else []


def long_lines(text: str) -> list[str]:
    lines = enumerate(text.splitlines(), 1)
    return [f"line {n}: {len(line)} columns" for n, line in lines if len(line) > LINE_COLUMNS_MAX]


def large_folders(paths: Iterable[str]) -> set[str]:
    """Return the folders with more entries than a reader takes in at a glance."""
    entries: dict[str, set[str]] = {}
    for path in map(PurePath, paths):
        for folder, entry in zip(path.parents, (path, *path.parents), strict=False):
            entries.setdefault(str(folder), set()).add(entry.name)
    return {
        folder
        for folder, names in entries.items()
        if len(names - {"__init__.py"}) > FOLDER_ENTRIES_MAX
    }


def machine_paths(text: str) -> list[str]:
    return [match[0] for match in MACHINE_PATH.finditer(text)]


def unfinished(text: str) -> list[str]:
    return [match[0] for match in UNFINISHED.finditer(text)]


def vague_names(path: str, text: str) -> list[str]:
    """Return the files, classes and functions whose name means only "useful"."""
    named = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    names = [node.name for node in ast.walk(ast.parse(text)) if isinstance(node, named)]
    names += PurePath(path).with_suffix("").parts
    return [name for name in names if VAGUE.search(name)]


def generated(paths: Iterable[str]) -> list[str]:
    return [path for path in paths if GENERATED.search(path)]


MODULES = read_modules(PACKAGE)
PACKAGES = {".".join(p.parent.relative_to(PACKAGE).parts) for p in PACKAGE.rglob("__init__.py")}


@pytest.fixture(scope="module")
def imports():
    """Return the imports of each module. To parse them all for each test would take seconds."""
    return {name: our_imports(text, MODULES) for name, text in MODULES.items()}


def expect_none(problems: Iterable[str]) -> None:
    found = list(problems)
    assert not found, "\n".join(["", *found])


def test_imports_point_one_way(imports):
    expect_none(problem for name in MODULES for problem in wrong_way(name, imports[name]))


def test_no_folders_import_each_other_in_a_cycle(imports):
    ring = cycle(imports)
    assert not ring, " -> ".join(ring)


def test_no_module_is_dead(imports):
    expect_none(f"nobody imports {name}" for name in dead_modules(imports, PACKAGES))


@pytest.mark.parametrize("check", [long_file, long_functions])
def test_the_package_comes_in_small_pieces(check):
    expect_none(f"{name}: {found}" for name, text in MODULES.items() for found in check(text))


@pytest.mark.parametrize("check", [long_lines, unfinished])
def test_source_is_tidy(check):
    sources = read_texts({".py"})
    expect_none(f"{path}: {found}" for path, text in sources.items() for found in check(text))


def test_each_large_folder_has_its_reason_in_the_design():
    paths = [path for path in PACKAGE.rglob("*") if path.is_file()]
    named = [str(path.relative_to(PACKAGE)) for path in paths if "__pycache__" not in path.parts]
    section = (REPO / "DESIGN.md").read_text().split("\n## Folders\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\|([^|]+)\|", section, flags=re.MULTILINE)
    reasoned = {name for row in rows for name in re.findall("`([^`]+)`", row)}
    assert {folder.replace(".", "src/beforehand") for folder in large_folders(named)} == reasoned


def test_names_of_files_classes_and_functions_are_specific():
    sources = read_texts({".py"})
    expect_none(f"{path}: {n}" for path, text in sources.items() for n in vague_names(path, text))


def test_no_file_contains_paths_of_the_machine_it_was_written_on():
    texts = read_texts()
    expect_none(f"{path}: {p}" for path, text in texts.items() for p in machine_paths(text))


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.skipif(not (REPO / ".git").exists(), reason="not a git checkout")
def test_generated_files_are_not_committed():
    answer = subprocess.run(["git", "ls-files"], cwd=REPO, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    expect_none(generated(answer.stdout.splitlines()))


@pytest.mark.parametrize(
    ("module", "statement"),
    [
        ("protocols.contract.base", "import beforehand.sim.engine"),
        ("protocols.contract.base", "from beforehand.sim import engine"),
        ("protocols.contract.base", "def f():\n    from beforehand.sim.engine import World"),
        ("protocols.contract.base", "from beforehand import sim"),
        ("protocols.contract.base", "from beforehand.files import write_text"),
        ("sim.engine", "from beforehand.pipeline import jobs"),
        ("sim.engine", "from beforehand.mobility.formats.gtfs.read import read_gtfs"),
        ("runtime.node", "from beforehand.sim.streams import mix"),
        ("kernels.queue.heap", "from beforehand.sim.streams import mix"),
        ("papers.observer", "from beforehand.sim.drift import Measure"),
        ("scenario.source", "from beforehand.pipeline.datasets import plan_dataset"),
        ("spark.session", "from beforehand.pipeline.jobs import run_scenario"),
        ("verify.verdict", "from beforehand.pipeline.schemas import EVENTS"),
        ("observe.files", "from beforehand.pipeline.jobs import run_scenario"),
        ("kernels.queue.heap", "from beforehand.sim import engine"),
        ("kernels.queue.heap", "from beforehand.protocols.contract.base import Message"),
        ("report.page", "from beforehand.protocols.contract.base import Message"),
        ("mobility.formats.gtfs.read", "from beforehand.sim.engine import World"),
        ("pipeline.jobs", "from beforehand.report.page import page"),
        ("pipeline.jobs", "from beforehand.cli import main"),
        ("pipeline.worlds.drift", "from beforehand.commands.experiments.run import run"),
        ("__init__", "from beforehand.cli import main"),
        ("errors", "from beforehand.units import parse_duration"),
        ("newcomer.thing", ""),
    ],
)
def test_an_import_the_wrong_way_is_caught(module, statement):
    modules = ["sim", "sim.engine", "sim.streams", "cli", "pipeline.jobs"]
    assert wrong_way(module, our_imports(statement, modules))


@pytest.mark.parametrize(
    ("module", "statement"),
    [
        ("protocols.contract.base", "import msgspec\nfrom beforehand.errors import LocalError"),
        ("check.fuzz.story", "from beforehand.sim import streams"),
        ("sim.overlay.world", "from beforehand.kernels.overlay.run import simulate"),
        ("report.vcube.page", "from beforehand.papers.vcube import read_published"),
        ("sim.engine", "from beforehand.protocols.contract.base import Message"),
        ("commands.experiments.report", "from beforehand.report.page import page"),
        ("pipeline.worlds.drift", "from beforehand.report.observer.page import page"),
        ("__main__", "from beforehand.cli import main"),
        ("protocols.contract.base", "import beforehandy.sim"),
    ],
)
def test_an_import_the_right_way_is_not(module, statement):
    modules = ["sim", "sim.streams"]
    assert wrong_way(module, our_imports(statement, modules)) == []


def test_a_large_folder_is_caught():
    paths = [f"room/{number}.py" for number in range(13)]
    assert large_folders([*paths, "room/__init__.py"]) == set()
    assert large_folders([*paths, "room/inner/one.py", "room/inner/two.py"]) == {"room"}


def test_a_cycle_of_imports_is_caught():
    imports = {
        "cli": ["sim.contacts.run", "errors"],
        "errors": [],
        "sim.contacts.run": ["sim.log", "kernels.overlay.run"],
        "sim.log": ["errors"],
        "kernels.queue.heap": [],
        "kernels.overlay.run": ["kernels.queue.heap"],
    }
    assert cycle(imports) == []
    ring = cycle(
        {**imports, "kernels.queue.heap": ["mobility.trace"], "mobility.trace": ["sim.log"]}
    )
    assert set(ring) == {"sim", "kernels", "mobility"}
    assert ring[0] == ring[-1]
    assert " -> ".join(ring) in " -> ".join(["sim", "kernels", "mobility"] * 3)


def test_a_dead_module_is_caught():
    imports = {
        "cli": ["protocols.contract.base"],
        "protocols": [],
        "protocols.contract.base": [],
        "protocols.old": ["protocols.old"],
    }
    imports["pipeline.worlds.drift"] = []
    assert dead_modules(imports, ["protocols"]) == ["protocols.old"]


def test_modules_are_named_as_they_are_imported(tmp_path):
    for name in ("__init__.py", "cli.py", "protocols/__init__.py", "protocols/contract/base.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    assert list(read_modules(tmp_path)) == [
        "__init__",
        "cli",
        "protocols",
        "protocols.contract.base",
    ]


@pytest.mark.parametrize(
    ("check", "bad", "good"),
    [
        (long_file, "x\n" * 401, "x\n" * 400),
        (long_functions, "def f():\n" + "    x\n" * 50, "def f():\n" + "    x\n" * 49),
        (long_functions, "class C:\n async def f():\n" + "  x\n" * 50, "x\n" * 90),
        (long_lines, "x" * 101, "x" * 100 + "\n" + "x" * 100),
        (machine_paths, "open('/ho" + "me/ann/data.csv')", "https://example.org/homework/x"),
        (machine_paths, "see /wo" + "rk/main", "the network/s"),
        (unfinished, "# TO" + "DO: later", "mastodon"),
        (unfinished, "# FIX" + "ME", "fixed"),
        (generated, ["a/b.parquet"], ["a/b.py", "docs/delay.svg"]),
        (generated, ["x.png"], ["reference/figure-3.csv"]),
    ],
)
def test_each_rule_catches_its_sample(check, bad, good):
    assert check(bad)
    assert check(good) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("src/utils.py", ""),
        ("src/protocols/help" + "ers/x.py", ""),
        ("src/protocols/contract/base.py", "class NodeManager: ..."),
        ("src/protocols/contract/base.py", "def parse_util(): ..."),
    ],
)
def test_a_vague_name_is_caught(path, text):
    assert vague_names(path, text)
    assert vague_names("src/protocols/contract/base.py", "class Node: ...") == []
