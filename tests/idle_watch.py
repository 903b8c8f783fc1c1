"""Detect that a process waits for something that never happens.

Most mutants of code that waits fail in this way. The duration of a wait proves little: on a busy
machine, a correct process waits for a CPU. So only time in which no thread runs or waits for a CPU
counts, and none while the process has children, which may do the work.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

SAMPLE_SECONDS = 0.1
THREADS = Path("/proc/self/task")


def watch(seconds: float, on_idle: Callable[[], None]) -> None:
    """Call `on_idle` in a thread once this process was idle for `seconds` in all."""
    threading.Thread(target=_watch, args=(seconds, on_idle), daemon=True).start()


def _watch(seconds: float, on_idle: Callable[[], None]) -> None:
    idle_s, now_s, busy_s = 0.0, time.monotonic(), _busy_seconds()
    while idle_s < seconds:
        time.sleep(SAMPLE_SECONDS)
        before = now_s, busy_s
        now_s, busy_s = time.monotonic(), _busy_seconds()
        if not _has_children():
            # A thread that ended takes the time that it waited for a CPU with it.
            idle_s += max(0.0, now_s - before[0] - max(0.0, busy_s - before[1]))
    on_idle()


def _busy_seconds() -> float:
    """Return how long the threads of this process have run or waited for a CPU."""
    waited_ns = 0
    for thread in THREADS.iterdir():
        with contextlib.suppress(OSError):  # it has ended
            waited_ns += int((thread / "schedstat").read_text().split()[1])
    return time.process_time() + waited_ns / 1e9


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
