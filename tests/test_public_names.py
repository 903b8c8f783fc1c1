"""The public names are pinned here: changing them changes this file."""

import ast
import importlib.metadata
import inspect
import os
import re
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import beforehand
from beforehand import lab, protocols
from beforehand.runtime.config import MemberConfig

REPO = Path(__file__).parent.parent
APPLICATIONS = [
    "BeforehandError",
    "BlockingGroup",
    "Group",
    "GroupMessage",
    "GroupOptions",
    "Host",
    "InputError",
    "InputErrors",
    "Limits",
    "LocalError",
    "MemberOptions",
    "MessageId",
    "MessageStatus",
    "Overlay",
    "Pending",
    "RemoteError",
    "Station",
    "Verdict",
    "assert_causal",
    "new_group",
    "observe_events",
    "verify_events",
]
CORES = [
    "Barrier",
    "Broadcaster",
    "BroadcasterDriver",
    "Codec",
    "Core",
    "Counters",
    "Dial",
    "Driver",
    "EVERYBODY",
    "Epidemic",
    "Guarantees",
    "Lifetimes",
    "Link",
    "Linked",
    "LogicalClock",
    "Message",
    "MessageId",
    "MessageStatus",
    "Needs",
    "NodeId",
    "Observer",
    "Options",
    "Order",
    "Outbox",
    "Port",
    "Proofs",
    "Stamp",
    "StampClock",
    "StampCodec",
    "Stamped",
    "Store",
    "Table",
    "Timer",
    "Unordered",
    "VCube",
    "Vector",
    "cbd",
    "dapw",
    "dpc1",
    "dpc2",
]
EXPERIMENTS = [
    "Result",
    "Spec",
    "Trace",
    "events_frame",
    "find_violations",
    "make_trace",
    "propagation",
    "read_trace",
    "register_sources",
    "run_scenario",
    "simulate",
    "simulate_runs",
    "summarise",
    "verify_runs",
    "write_report",
]
FACES = [(beforehand, APPLICATIONS), (protocols, CORES), (lab, EXPERIMENTS)]


@pytest.mark.parametrize(("module", "names"), FACES, ids=lambda part: getattr(part, "__name__", ""))
def test_the_public_names_are_pinned(module, names):
    assert sorted(module.__all__) == names
    assert all(hasattr(module, name) for name in names)
    assert set(names) <= {*dir(module)}


def test_the_public_version_is_that_of_the_installed_package():
    assert beforehand.__version__ == importlib.metadata.version("beforehand")


def test_public_classes_and_functions_have_a_docstring():
    found = [(module, name, getattr(module, name)) for module, names in FACES for name in names]
    silent = [
        f"{module.__name__}.{name}"
        for module, name, value in found
        if (inspect.isclass(value) or inspect.isfunction(value)) and not value.__doc__
    ]
    assert silent == []


def test_importing_a_public_module_imports_no_optional_package():
    script = (
        "import sys, beforehand, beforehand.lab, beforehand.protocols; "
        "heavy = {'numpy', 'numba', 'pyspark', 'pyarrow', 'nacl', 'msgspec', 'asyncio', 'typing'}; "
        "early = heavy & set(sys.modules); beforehand.lab.simulate; "
        "print(early or 'none', 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-S", "-c", script], **in_this_environment())
    assert done.stdout.strip() == "none True", done.stderr


@pytest.mark.parametrize("module", [beforehand, protocols, lab], ids=lambda module: module.__name__)
def test_an_unknown_name_is_refused_with_the_name_of_the_module(module):
    with pytest.raises(AttributeError, match=f"`{module.__name__}` has no attribute `nonsense`"):
        module.nonsense  # noqa: B018


@pytest.mark.parametrize(
    ("missing", "name", "extra"),
    [
        ("nacl", "beforehand.Group", "runtime"),
        ("nacl", "beforehand.Station", "runtime"),
        ("numba", "beforehand.verify_events", "sim"),
        ("pyspark", "beforehand.observe_events", "pipeline"),
        ("numpy", "beforehand.lab.simulate", "sim"),
        ("numpy", "beforehand.lab.read_trace", "sim"),
        ("pyspark", "beforehand.lab.simulate_runs", "pipeline"),
        ("pyarrow", "beforehand.lab.write_report", "pipeline,report"),
    ],
)
def test_a_missing_package_is_named_with_the_extra_that_installs_it(missing, name, extra):
    module, _, attribute = name.rpartition(".")
    code = f"import sys; sys.modules[{missing!r}] = None\nfrom {module} import {attribute}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert f"`{name}` needs `{missing}`: pip install 'beforehand[{extra}]'" in done.stderr


def test_public_functions_take_paths_as_strings():
    paths = {
        beforehand.verify_events: ["path"],
        MemberConfig: ["store", "key", "log"],
        beforehand.Overlay: ["members"],
        beforehand.Station: ["stations", "key"],
        lab.read_trace: ["path"],
        lab.run_scenario: ["path", "out"],
        lab.write_report: ["directory"],
    }
    for function, names in paths.items():
        signature = inspect.signature(function)
        for name in names:
            assert "str | os.PathLike[str]" in str(signature.parameters[name].annotation), function


def in_this_environment() -> dict[str, typing.Any]:
    """Return the options of a process that finds our packages although it skips `site`."""
    path = os.pathsep.join([str(Path(beforehand.__file__).parent.parent), *sys.path])
    return {
        "capture_output": True,
        "text": True,
        "env": {**os.environ, "PYTHONPATH": path},
    }


def repeated_classes(sources):
    """Return the names of public classes that occur in more than one of these sources."""
    parts = (ast.walk(ast.parse(source)) for source in sources)
    names = [
        node.name
        for nodes in parts
        for node in nodes
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    return {name for name in names if names.count(name) > 1}


def test_each_repeated_class_name_has_its_reason_in_the_design():
    design = (REPO / "DESIGN.md").read_text()
    _, _, section = design.partition("## Class names that occur more than once\n")
    rows = [row for row in section.partition("\n## ")[0].splitlines() if row.startswith("| `")]
    explained = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    sources = [path.read_text() for path in (REPO / "src").rglob("*.py")]
    assert repeated_classes(sources) == explained


def test_a_repeated_class_name_is_found():
    assert repeated_classes(["class A: ...\nclass B: ...", "class B: ...", "class _C: ..."]) == {
        "B"
    }
