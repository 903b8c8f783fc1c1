"""Ctrl-C and a polite kill while Spark works: an answer at once, an end soon, no tracebacks."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

from beforehand.commands.console import note

SECONDS_MAX = 4.0
"""So long after the first signal the process ends, whatever it still does: what is not committed
by then is done again."""
POLL_SECONDS = 0.1
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopping:
    """Whether to stop, and with which exit code."""

    def __init__(self, promise: str) -> None:
        self._promise = promise
        self._ends = float("inf")
        self.asked = threading.Event()
        self.exit_code = 0
        self.break_off: Callable[[], None] = _nothing
        """Ends what the work waits for; called in a thread of its own."""

    def on_signal(self, number: int, _: FrameType | None) -> None:
        if self.asked.is_set():
            self.force()
        note(f"stopping; {self._promise}")
        self._ends = time.monotonic() + SECONDS_MAX
        self.exit_code = 128 + number
        self.asked.set()
        threading.Thread(target=self.break_off, daemon=True).start()

    def check_time(self) -> None:
        if time.monotonic() > self._ends:
            self.force()

    def force(self) -> None:
        """No more is waited for, not for what the libraries do at the end either."""
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(self.exit_code)  # Java ends when its standard input does


def run_until_stopped(promise: str, work: Callable[[Stopping], int]) -> int:
    """The exit code of the work; after a signal 128 and its number, as shells have it.

    promise: what becomes of the work then.

    It runs in a thread of its own, and this one waits for signals. Else they would break off a call
    to Spark, which prints where that was; and Spark takes Ctrl-C for itself where it can.
    """
    state = Stopping(promise)
    codes: list[int] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            codes.append(work(state))
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, name="observe", daemon=True)
    before = [signal.signal(number, state.on_signal) for number in SIGNALS]
    try:
        thread.start()
        while thread.is_alive():
            thread.join(POLL_SECONDS)
            state.check_time()
    finally:
        for number, handler in zip(SIGNALS, before, strict=True):
            signal.signal(number, handler)
    if state.asked.is_set():
        atexit.register(state.force)
        return state.exit_code  # what was raised then is of no interest
    if raised:
        raise raised[0]
    return codes[0]


def _nothing() -> None:
    pass
