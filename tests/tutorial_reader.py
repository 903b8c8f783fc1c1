"""Follow a tutorial as its reader does: save its files, type its commands, compare the output.

A block with a title that is a file name is a file. In a block of the console a line with `$ ` is a
command, and the lines below it are its output: `...` stands for anything. Blocks titled
`terminal N` run at the same time; `^C` at the end of one is an interrupt, sent when the others have
ended.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
NOT_RUN = "pip install "
"""The package under test is installed already."""
INTERRUPT = "^C"
PATIENCE_S = 300


class Block(NamedTuple):
    language: str
    title: str
    text: str


class Typed(NamedTuple):
    """A command with the output that the page claims."""

    command: str
    shown: str


def blocks_of(page: str) -> list[Block]:
    return [Block(*found) for found in BLOCK.findall(page)]


def commands_of(block: Block) -> list[Typed]:
    parts = re.split(r"^\$ ", block.text.replace("\\\n", ""), flags=re.MULTILINE)[1:]
    pairs = [part.partition("\n") for part in parts]
    return [Typed(command, shown.strip("\n")) for command, _, shown in pairs]


def matches(shown: str, printed: str) -> bool:
    """Return whether the output matches the page, where `...` matches anything."""
    lines = [line.rstrip() for line in printed.strip("\n").splitlines()]
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line.rstrip()) + r"\n"
        for line in shown.splitlines()
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in lines)) is not None


class TutorialReader:
    """A person with a folder and some terminals."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": programs, "COLUMNS": "100"}
        self.environment["PYTHONUNBUFFERED"] = "1"  # output in the order of a terminal
        self.code = 0
        self.terminals: list[tuple[Typed, subprocess.Popen[str]]] = []

    def follow(self, page: str) -> None:
        """Carry out every step of the page. The first step that differs is an AssertionError."""
        try:
            for block in blocks_of(page):
                self._take(block)
            self._leave_terminals()
        finally:
            for _, process in self.terminals:
                _kill(process)

    def _take(self, block: Block) -> None:
        if block.language == "console" and block.title:
            (typed,) = commands_of(block)
            self.terminals.append((typed, self._start(typed.command)))
            return
        self._leave_terminals()
        if block.language == "console":
            typed = commands_of(block)
            following = [each.command for each in typed[1:]] + [""]
            for each, after in zip(typed, following, strict=True):
                self._type(each, may_fail=after == "echo $?")
        elif block.title:
            (self.folder / block.title).write_text(block.text)

    def _start(self, command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            # A program that was started with `&` or `nohup` ignores SIGINT, and its children too.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def _type(self, typed: Typed, *, may_fail: bool) -> None:
        if typed.command.startswith(NOT_RUN):
            return
        if typed.command == "echo $?":
            assert str(self.code) == typed.shown, f"exit code {self.code}, not {typed.shown}"
            return
        # In a shell of its own, with its redirections; `exec` would not take them all.
        process = self._start(f"bash -c {_quoted(typed.command)}")
        try:
            printed = process.communicate(timeout=PATIENCE_S)[0]
        finally:
            _kill(process)
        self.code = process.returncode
        assert may_fail or self.code == 0, f"{typed.command}: exit {self.code}\n{printed}"
        _compare(typed, printed)

    def _leave_terminals(self) -> None:
        """Wait for the programs that end by themselves, then interrupt the others."""
        waiting = [(t, p) for t, p in self.terminals if t.shown.endswith(INTERRUPT)]
        ending = [(t, p) for t, p in self.terminals if not t.shown.endswith(INTERRUPT)]
        for typed, process in [*ending, *waiting]:
            if typed.shown.endswith(INTERRUPT):
                process.send_signal(signal.SIGINT)
            printed = process.communicate(timeout=PATIENCE_S)[0]
            _compare(typed._replace(shown=typed.shown.removesuffix(INTERRUPT)), printed)
        self.terminals = []


def _compare(typed: Typed, printed: str) -> None:
    shown = typed.shown.strip("\n")
    told = f"$ {typed.command}\nthe page shows:\n{shown}\nit prints:\n{printed}"
    assert not shown or matches(shown, printed), told


def _kill(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _quoted(command: str) -> str:
    return "'" + command.replace("'", "'\\''") + "'"
