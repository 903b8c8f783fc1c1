"""Ctrl-C and a polite kill: told at once, over soon, never with a traceback."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from beforehand.errors import EXIT_INTERRUPTED

GOES_ON = "the same command goes on from here"
PATIENCE_SECONDS = 4
"""So long after the first signal the process ends, whatever it still does: what is not whole by
then is done again."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """Whether somebody asked to stop."""

    def __init__(self, promise: str) -> None:
        self.asked = threading.Event()
        self.exit_code = EXIT_INTERRUPTED
        self.break_off: Callable[[], None] = break_off
        """Ends what the work waits for: called once, in the handler of the signal."""
        self._promise = promise

    def hear(self, number: int, _frame: FrameType | None) -> None:
        """The first time: tell, and let go of what is held. After that: over."""
        if self.asked.is_set():
            self._leave()
        self.asked.set()  # first of all: the second signal may come before the next line
        self.exit_code = 128 + number  # as shells have it
        _say(f"stopping; {self._promise}")
        logging.disable()  # libraries would tell of every connection that breaks now
        # And Python would tell of what is raised where nobody can catch it.
        sys.unraisablehook = lambda _: None
        leave_after_patience(self._leave)
        self.break_off()

    def unless_asked(self, tell: Callable[[str], None]) -> Callable[[str], None]:
        """The same, but it ends the work where that went on all the same: what is compiled or
        called from C may have swallowed what was raised."""

        def told(text: str) -> None:
            if self.asked.is_set():
                raise KeyboardInterrupt
            tell(text)

        return told

    def _leave(self) -> None:
        _end_spark(at_once=True)
        os._exit(self.exit_code)


def leave_after_patience(leave: Callable[[], None]) -> threading.Timer:
    """What is called from C, as compilers do, or catches everything, may swallow what the handler
    of a signal raises, and go on."""
    patience = threading.Timer(PATIENCE_SECONDS, leave)
    patience.daemon = True
    patience.start()
    return patience


@contextmanager
def interruptible(promise: str = GOES_ON) -> Iterator[Interruption]:
    """While the block runs, a signal ends it: with whatever exception, and `asked`.

    promise: what becomes of the work then. A second signal ends the process on the spot, and so
    does a block that takes too long to leave. Datasets are all or nothing, so neither leaves half
    of one behind.
    """
    interruption = Interruption(promise)
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    before = [signal.signal(number, interruption.hear) for number in SIGNALS]
    try:
        yield interruption
    finally:
        # Once asked, the process is on its way out, and a second signal still means now.
        if not interruption.asked.is_set():
            for number, handler in zip(SIGNALS, before, strict=True):
                signal.signal(number, handler)


def break_off() -> None:
    """The work ends wherever it is; Spark, if it runs, with it."""
    _end_spark(at_once=False)
    raise KeyboardInterrupt


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
