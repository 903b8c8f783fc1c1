"""A release: source archive and wheel are complete, and work with what each extra lists.

The wheel is built from the source archive. Each environment is empty but for the wheel and the
packages that the wheel's metadata names for the extra, with all that these require. The packages
are links into the environment of the tests: nothing is downloaded but setuptools.
"""

import importlib.metadata
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_string
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import beforehand

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("release")]

REPO = Path(__file__).parent.parent
SECONDS_MAX = 600
BUILD = "import sys; from setuptools.build_meta import *; print({}(sys.argv[1]))"
TRACE = "a b 0 60\nb c 30 90\na c 80 120\n"


def call(*command, **options):
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        **options,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return the source archive and the wheel; skip without a package index."""
    place = tmp_path_factory.mktemp("release")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    wanted = "setuptools>=77,<100"
    found = subprocess.run(
        [*pip, "install", "--no-deps", "--target", str(place / "setuptools"), wanted],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    if found.returncode != 0:
        pytest.skip(f"no package index to get {wanted} from: {found.stderr.splitlines()[-1:]}")
    source = place / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "MANIFEST.in"):
        shutil.copy(REPO / name, source)
    generated = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.nb[ci]")
    shutil.copytree(REPO / "src", source / "src", ignore=generated)
    builder = {**os.environ, "PYTHONPATH": str(place / "setuptools")}
    call(sys.executable, "-c", BUILD.format("build_sdist"), place, cwd=source, env=builder)
    (archive,) = place.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(place / "unpacked", filter="data")
    (unpacked,) = (place / "unpacked").iterdir()
    call(sys.executable, "-c", BUILD.format("build_wheel"), place, cwd=unpacked, env=builder)
    (wheel,) = place.glob("*.whl")
    return archive, wheel


def test_the_wheel_has_every_file_of_the_package(built):
    archive, wheel = built
    name = f"beforehand-{beforehand.__version__}"
    with zipfile.ZipFile(wheel) as opened:
        inside = {*opened.namelist()}
    files = (path for path in (REPO / "src" / "beforehand").rglob("*") if path.is_file())
    made = (".nbi", ".nbc", ".pyc")
    known = {str(path.relative_to(REPO / "src")) for path in files if path.suffix not in made}
    assert known - inside == set()
    assert any(file.endswith("shipped/quick.toml") for file in inside)
    assert {"beforehand/py.typed", f"{name}.dist-info/licenses/LICENSE"} <= inside
    with tarfile.open(archive) as opened:
        packed = {*opened.getnames()}
    assert {f"{name}/{file}" for file in ("LICENSE", "README.md", "CHANGELOG.md")} <= packed


def test_the_wheel_has_version_licence_and_typed_marker(built):
    _, wheel = built
    with zipfile.ZipFile(wheel) as opened:
        text = opened.read(f"beforehand-{beforehand.__version__}.dist-info/METADATA").decode()
    found = message_from_string(text)
    assert found["Version"] == beforehand.__version__
    assert found["License-Expression"] == "Apache-2.0"
    assert "Typing :: Typed" in found.get_all("Classifier")
    assert f"## [{beforehand.__version__}]" in (REPO / "CHANGELOG.md").read_text()


def required(requirements, extras=("",)):
    """Return the names of all distributions that the requirements need, with what those need."""
    names, open_ = set(), [(Requirement(text), extras) for text in requirements]
    while open_:
        wanted, wanted_for = open_.pop()
        marker = wanted.marker
        if marker is not None and not any(marker.evaluate({"extra": e}) for e in wanted_for):
            continue
        name = canonicalize_name(wanted.name)
        more = tuple(wanted.extras) or ("",)
        if name == "beforehand":
            open_ += [(Requirement(text), more) for text in requirements]
        elif (name, more) not in names:
            names.add((name, more))
            inner = importlib.metadata.requires(name) or []
            open_ += [(Requirement(text), ("", *wanted.extras)) for text in inner]
    return {name for name, _ in names}


def test_requirements_of_an_extra_are_followed_through_all_packages():
    listed = ["msgspec; extra == 'a'", "pytest; extra == 'b'", "beforehand[a]; extra == 'c'"]
    assert required(listed, ("c",)) == {"msgspec"}
    assert {"pytest", "pluggy"} <= required(listed, ("b",))


@pytest.fixture
def installed(built, tmp_path):
    """Install the wheel with an extra; return the runner of a Python program there."""

    def install(extra, *, is_compiled=False):
        """is_compiled: whether the kernels come with the machine code of this environment."""
        site = tmp_path / "site"
        with zipfile.ZipFile(built[1]) as opened:
            opened.extractall(site)
        (about,) = site.glob("beforehand-*.dist-info")
        listed = importlib.metadata.PathDistribution(about).requires or []
        for name in required(listed, ("", extra) if extra else ("",)):
            found = importlib.metadata.distribution(name)
            for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
                if not (site / top).exists():
                    (site / top).symlink_to(found.locate_file(top))
        # Without `site` nothing but this folder and the standard library can be imported.
        start = f"import sys; sys.path.insert(0, {str(site)!r})\n"
        environment = {n: v for n, v in os.environ.items() if not n.startswith("PYTHON")}
        environment["PYTHONPATH"] = str(site)
        if is_compiled:
            copy_machine_code(site)
        else:
            environment["NUMBA_CACHE_DIR"] = str(tmp_path / "numba")

        def run(program):
            return call(
                *(sys.executable, "-S", "-P", "-c", start + program), cwd=tmp_path, env=environment
            ).stdout

        return run

    (tmp_path / "trace.txt").write_text(TRACE)
    return install


def copy_machine_code(site):
    """Numba takes what it has compiled where a source file has its size and time."""
    for path in (REPO / "src").rglob("*.py"):
        copy = site / path.relative_to(REPO / "src")
        shutil.copystat(path, copy)
        for code in path.parent.glob(f"__pycache__/{path.stem}.*.nb[ci]"):
            (copy.parent / "__pycache__").mkdir(exist_ok=True)
            shutil.copy2(code, copy.parent / "__pycache__")


COMMAND = """
import beforehand.cli
def command(*arguments):
    code = beforehand.cli.main(list(arguments))
    assert code in (0, 3, None), (arguments, code)
"""
REFUSED = """
import beforehand, beforehand.lab
for module, name, extra in {}:
    try:
        getattr(module, name)
    except ModuleNotFoundError as error:
        assert f"pip install 'beforehand[{{extra}}]'" in str(error), error
    else:
        raise SystemExit(f"{{name}} works without its extra")
"""


def test_the_base_runs_cores_and_lists_scenarios(installed):
    run = installed("")
    run("""
import random
from beforehand.protocols import Barrier, Epidemic, Outbox
ann, out = Epidemic("ann", Barrier("ann"), random.Random(1)), Outbox()
ann.on_link(0, "bob", True, out)
ann.on_broadcast(1_000, b"hello", out)
assert out.sends
""")
    run(REFUSED.format("[(beforehand, 'Group', 'runtime'), (beforehand.lab, 'simulate', 'sim')]"))
    assert "city-bus" in run(COMMAND + "command('scenarios', '--json')")


def test_the_extra_runtime_runs_a_group(installed):
    run = installed("runtime")
    assert "delivered b'fog'" in run("""
from beforehand import BlockingGroup, new_group
new_group("harbour").write(__import__("pathlib").Path("harbour.key"))
def member(name, *peers):
    return BlockingGroup("harbour", name=name, store=f"{name}.db", key="harbour.key",
                         lifetime="20m", listen="127.0.0.1:0", peers=peers, discover=False)
with member("ann") as ann:
    with member("bob", str(ann.addresses[0])) as bob:
        ann.broadcast(b"fog")
        print("delivered", bob.receive(timeout=60).payload)
""")
    run(REFUSED.format("[(beforehand, 'verify_events', 'sim')]"))


def test_the_extra_sim_reads_simulates_and_verifies(installed):
    run = installed("sim")
    out = run(
        COMMAND
        + """
command("contacts", "trace.txt")
command("simulate", "trace.txt", "--protocol", "causal", "--events", "log.parquet")
command("verify", "log.parquet")
from beforehand.lab import Spec, read_trace, simulate
print(len(simulate(read_trace("trace.txt"), Spec("causal")).columns["t_us"]), "events")
"""
    )
    assert "contacts" in out
    assert "events" in out
    run(REFUSED.format("[(beforehand, 'observe_events', 'pipeline')]"))


@pytest.mark.spark
def test_the_extra_pipeline_runs_a_scenario_on_spark(installed):
    run = installed("pipeline", is_compiled=True)
    out = run("""
from beforehand.lab import run_scenario
if __name__ == "__main__":
    summary = run_scenario("quick", "out", seeds=1, overrides=["mobility.hours=0.05"])
    print("state", summary.state)
""")
    assert "state" in out
