"""Ctrl-C in a command that can be given again: told at once, over soon, never with a traceback."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from beforehand.errors import EXIT_INTERRUPTED

STOPPING = "stopping; the same command goes on from here"
PATIENCE_SECONDS = 4


class Interruption:
    """Whether somebody asked to stop."""

    def __init__(self) -> None:
        self.asked = False

    def hear(self, _signal: int, _frame: FrameType | None) -> None:
        """The first time: tell, and let go of what is held. After that: over."""
        if self.asked:
            _leave()
        self.asked = True
        _say(STOPPING)
        logging.disable()  # libraries would tell of every connection that breaks now
        # What is called from C, as compilers do, may swallow what is raised here.
        patience = threading.Timer(PATIENCE_SECONDS, _leave)
        patience.daemon = True
        patience.start()
        _end_spark(at_once=False)
        raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """While the block runs, Ctrl-C ends it: with whatever exception, and `asked`.

    A second one ends the process on the spot, and so does a block that takes too long to leave.
    Datasets are all or nothing, so neither leaves half of one behind.
    """
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    before = signal.signal(signal.SIGINT, interruption.hear)
    try:
        yield interruption
    finally:
        # Once asked, the process is on its way out, and a second Ctrl-C still means now.
        if not interruption.asked:
            signal.signal(signal.SIGINT, before)


def _say(text: str) -> None:
    """Past Python's buffers, which may be in the middle of a line of their own."""
    start = "\r\x1b[2K" if sys.stderr.isatty() else ""  # over `^C` and half a progress bar
    with suppress(OSError):
        os.write(2, f"{start}{text}\n".encode())


def _end_spark(*, at_once: bool) -> None:
    session = sys.modules.get("beforehand.spark.session")
    if session is not None:  # else it was never started; this is no time to import it
        with suppress(Exception):
            session.end_java(at_once=at_once)


def _leave() -> None:
    _end_spark(at_once=True)
    os._exit(EXIT_INTERRUPTED)
