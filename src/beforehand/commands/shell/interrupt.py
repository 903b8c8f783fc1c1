"""Handle SIGINT and SIGTERM: acknowledge at once, stop soon, and show no traceback."""

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
"""The process exits this long after the first signal, whatever it is doing. The next run computes
incomplete datasets again."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """Whether a signal asked the command to stop."""

    def __init__(self, promise: str) -> None:
        self.asked = threading.Event()
        self.exit_code = EXIT_INTERRUPTED
        self.break_off: Callable[[], None] = break_off
        """Aborts what the work waits for; the signal handler calls it once."""
        self._promise = promise

    def hear(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal. The first one reports it and starts the shutdown; the second exits at
        once."""
        if self.asked.is_set():
            self._leave()
        self.asked.set()  # first, because a second signal may arrive before the next line
        self.exit_code = 128 + number  # the shell convention
        _say(f"stopping; {self._promise}")
        logging.disable()  # libraries would log every connection that breaks now
        # Python would report exceptions that are raised where no code can catch them.
        sys.unraisablehook = lambda _: None
        leave_after_patience(self._leave)
        self.break_off()

    def unless_asked(self, tell: Callable[[str], None]) -> Callable[[str], None]:
        """Wrap `tell` so that it raises KeyboardInterrupt once a stop was requested.

        Compiled code and C callbacks may have swallowed the exception that the handler raised.
        """

        def told(text: str) -> None:
            if self.asked.is_set():
                raise KeyboardInterrupt
            tell(text)

        return told

    def _leave(self) -> None:
        _end_spark(at_once=True)
        os._exit(self.exit_code)


def leave_after_patience(leave: Callable[[], None]) -> threading.Timer:
    """Start a timer that calls `leave` if the process is still running.

    C callbacks (compilers use them) and code that catches every exception may swallow what the
    signal handler raises, and continue.
    """
    patience = threading.Timer(PATIENCE_SECONDS, leave)
    patience.daemon = True
    patience.start()
    return patience


@contextmanager
def interruptible(promise: str = GOES_ON) -> Iterator[Interruption]:
    """Let a signal end the block: the block raises some exception, and `asked` is set.

    promise: what happens to the work, for the message to the user. A second signal ends the process
    at once, and so does a block that takes too long to exit. Datasets are written atomically, so
    neither leaves a partial dataset behind.
    """
    interruption = Interruption(promise)
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    before = [signal.signal(number, interruption.hear) for number in SIGNALS]
    try:
        yield interruption
    finally:
        # After a signal the process is exiting; a second signal must still exit at once.
        if not interruption.asked.is_set():
            for number, handler in zip(SIGNALS, before, strict=True):
                signal.signal(number, handler)


def break_off() -> None:
    """Abort the work at any point by KeyboardInterrupt, and end Spark if it runs."""
    _end_spark(at_once=False)
    raise KeyboardInterrupt


def _say(text: str) -> None:
    """Write to stderr past Python's buffers, which may hold an incomplete line."""
    start = "\r\x1b[2K" if sys.stderr.isatty() else ""  # overwrite `^C` and a partial progress bar
    with suppress(OSError):
        os.write(2, f"{start}{text}\n".encode())


def _end_spark(*, at_once: bool) -> None:
    session = sys.modules.get("beforehand.spark.session")
    if session is not None:  # if Spark was never started, do not import it now
        with suppress(Exception):
            session.end_java(at_once=at_once)
