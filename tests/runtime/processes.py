"""Members as processes of their own, on loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

SECONDS_MAX = 20
NOT_NEEDED = ("numpy", "numba", "pandas", "pyarrow", "pyspark", "rich")
"""What `pip install beforehand[runtime]` does not bring along."""


def small_installation(folder: Path) -> Path:
    """A folder for PYTHONPATH under which only the runtime's own dependencies can be imported."""
    for name in NOT_NEEDED:
        module = folder / "small" / f"{name}.py"
        module.parent.mkdir(exist_ok=True)
        module.write_text(f"raise ImportError('{name} is not installed here')\n")
    return folder / "small"


class Process:
    """A Python process whose lines can be waited for."""

    def __init__(
        self,
        *arguments: object,
        folder: Path,
        path: Path | None = None,
        before: Sequence[str] = (),
    ) -> None:
        """before: what runs it somewhere else."""
        paths = [str(path)] if path else []
        paths += [os.environ["PYTHONPATH"]] if "PYTHONPATH" in os.environ else []
        self.output = folder / f"output-{time.monotonic_ns()}"
        with self.output.open("wb") as out:
            self.process = subprocess.Popen(
                [*before, sys.executable, "-u", *map(str, arguments)],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
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
