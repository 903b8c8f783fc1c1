"""Members as processes of their own, on loopback."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

from tests.conftest import REPO
from tests.waiting import SECONDS_MAX


def fresh_environment(folder: Path) -> Path:
    """The interpreter of a new virtual environment that has what `pip install beforehand[runtime]`
    would put there and nothing else. No index is asked: files are copied from this environment, as
    the packages list them."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    where = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.check_output(where, text=True).strip())
    shutil.copytree(REPO / "src" / "beforehand", packages / "beforehand", ignore=NO_CACHES)
    for name in needed_by("beforehand", "runtime"):
        package = distribution(name)
        for file in package.files or ():
            if ".." not in file.parts and "__pycache__" not in file.parts:
                (packages / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(str(package.locate_file(file)), packages / file)
    return python


NO_CACHES = shutil.ignore_patterns("__pycache__")


def needed_by(name: str, extra: str = "") -> set[str]:
    """Packages that a package says it needs here, and what those need."""
    found: set[str] = set()
    for line in distribution(name).requires or ():
        needed = Requirement(line)
        if needed.marker is None or needed.marker.evaluate({"extra": extra}):
            found |= {needed.name} | needed_by(needed.name)
    return found


class Process:
    """A Python process whose lines can be waited for."""

    def __init__(
        self,
        *arguments: object,
        folder: Path,
        python: Path | None = None,
        before: Sequence[str] = (),
    ) -> None:
        """python: of another environment. before: what runs it somewhere else."""
        environment = dict(os.environ)
        if python is not None:
            environment.pop("PYTHONPATH", None)
        self.output = folder / f"output-{time.monotonic_ns()}"
        with self.output.open("wb") as out:
            self.process = subprocess.Popen(
                [*before, python or sys.executable, "-u", *map(str, arguments)],
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=out,
            )

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        assert self.process.stdin is not None
        self.process.stdin.close()

    def type(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def text(self) -> str:
        return self.output.read_text(errors="replace")

    def wait_for(self, word: str, seconds: float = SECONDS_MAX) -> str:
        """The first line with this in it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for line in self.text().splitlines(keepends=True):
                if word in line and line.endswith("\n"):
                    return line
            if self.process.poll() is not None and word not in self.text():
                break
            time.sleep(0.02)
        raise AssertionError(f"no `{word}` in:\n{self.text()}")

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(SECONDS_MAX)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(SECONDS_MAX)


def lines_of(process: Process) -> list[dict[str, object]]:
    return [json.loads(line) for line in process.text().splitlines() if line.startswith("{")]
