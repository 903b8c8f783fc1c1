"""Only a process that waits for an event that never comes counts as idle."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parent.parent
IDLE = 7
WATCHED = """
import os, subprocess, sys, time
from tests.idle_watch import watch

watch(0.4, lambda: os._exit(7))
"""
WORK = "while time.process_time() < 0.2: pass"


def exit_code(lines, cpu=None):
    command = [sys.executable, "-c", f"{WATCHED}\n{lines}"]
    if cpu is not None:
        command = ["taskset", "--cpu-list", str(cpu), *command]
    return subprocess.run(command, cwd=REPO, timeout=120).returncode


@pytest.mark.parametrize("lines", ["time.sleep(100)", "while True: time.sleep(0.02)"])
def test_a_process_that_waits_for_ever_is_idle(lines):
    assert exit_code(lines) == IDLE


@pytest.mark.parametrize(
    "lines",
    [
        WORK.replace("0.2", "1"),
        "subprocess.run([sys.executable, '-c', 'import time; time.sleep(1)'])",
    ],
    ids=["work", "work of a child"],
)
def test_a_process_that_works_or_whose_child_works_is_not_idle(lines):
    assert exit_code(lines) == 0


def test_a_process_that_waits_for_a_cpu_is_not_idle():
    cpu = min(os.sched_getaffinity(0))
    with contextlib.ExitStack() as stack:
        for _ in range(6):
            command = ["taskset", "--cpu-list", str(cpu), sys.executable, "-c", "while True: pass"]
            stack.callback(stack.enter_context(subprocess.Popen(command)).kill)
        assert exit_code(WORK, cpu) == 0
