"""Handle SIGINT and SIGTERM in a command: acknowledge at once, stop soon, and show no traceback.

`Signals` is for every command; `interruptible` for those that a second run continues.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

from beforehand.errors import EXIT_INTERRUPTED
from beforehand.signals import SIGNALS, handled, is_main_thread

GOES_ON = "the same command goes on from here"
AGAIN_SECONDS = 0.05
"""How long after Python has dropped a signal it is sent again."""
PATIENCE_SECONDS = 4
"""The process exits this long after the first signal, whatever it is doing. The next run computes
incomplete datasets again."""


class Interruption:
    """Whether a signal asked the command to stop."""

    def __init__(self, promise: str) -> None:
        self.asked = threading.Event()
        self.exit_code = EXIT_INTERRUPTED
        self.break_off: Callable[[], None] = break_off
        """Aborts what the work waits for; the signal handler calls it once."""
        self._promise = promise

    def on_signal(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal. The first one reports it and starts the shutdown; the second exits at
        once."""
        if self.asked.is_set():
            self._leave()
        self.asked.set()  # first, because a second signal may arrive before the next line
        self.exit_code = 128 + number  # the shell convention
        _write_error(f"stopping; {self._promise}")
        logging.disable()  # libraries would log every connection that breaks now
        # Python would report exceptions that are raised where no code can catch them.
        sys.unraisablehook = lambda _: None
        leave_after_patience(self._leave)
        self.break_off()

    def unless_asked(self, note: Callable[[str], None]) -> Callable[[str], None]:
        """Wrap `note` so that it raises KeyboardInterrupt once a stop was requested.

        Compiled code and C callbacks may have swallowed the exception that the handler raised.
        """

        def checked(text: str) -> None:
            if self.asked.is_set():
                raise KeyboardInterrupt
            note(text)

        return checked

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
    # After a signal the process is exiting; a second signal must still exit at once.
    with handled(interruption.on_signal, unless=interruption.asked.is_set):
        yield interruption


def break_off() -> None:
    """Abort the work at any point by KeyboardInterrupt, and end Spark if it runs."""
    _end_spark(at_once=False)
    raise KeyboardInterrupt


def _write_error(text: str) -> None:
    """Write to stderr past Python's buffers, which may hold an incomplete line."""
    start = "\r\x1b[2K" if sys.stderr.isatty() else ""  # overwrite `^C` and a partial progress bar
    with suppress(OSError):
        os.write(2, f"{start}{text}\n".encode())


def _end_spark(*, at_once: bool) -> None:
    session = sys.modules.get("beforehand.spark.session")
    if session is not None:  # if Spark was never started, do not import it now
        with suppress(Exception):
            session.end_java(at_once=at_once)


class Terminated(KeyboardInterrupt):
    """SIGTERM, handled like Ctrl-C except for the exit code. The default action would end this
    process and leave its child processes running."""


class Signals:
    """Handlers for SIGINT and SIGTERM while a command runs, unless the command installs its own.

    An exception raised by a handler may be lost. Python drops it in a destructor or a callback; the
    handler then raises it again. Some libraries catch every exception; a timer then ends the
    process.
    """

    def __init__(self) -> None:
        self.interrupt: KeyboardInterrupt | None = None
        """Stored because an interrupted import or compilation may raise another exception
        instead."""
        self._is_lost = False
        self._patience: threading.Timer | None = None
        self._before: dict[int, Any] = {}
        self._show, self._drop = sys.excepthook, sys.unraisablehook

    def install(self) -> None:
        if not is_main_thread():
            return
        sys.excepthook, sys.unraisablehook = self._show_others, self._drop_others
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as under `nohup` or `&`
                self._before[number] = signal.signal(number, self._raise)

    def restore(self) -> None:
        if sys.excepthook == self._show_others:
            sys.excepthook = self._show
        if sys.unraisablehook == self._drop_others:
            sys.unraisablehook = self._drop
        if self._patience is not None:
            self._patience.cancel()
        for number, handler in self._before.items():
            if signal.getsignal(number) == self._raise:
                signal.signal(number, handler)

    def _show_others(self, kind: type[BaseException], error: BaseException, trace: Any) -> None:
        """Hide our interrupt: compiled modules of other packages print it if their import is
        aborted."""
        if error is not self.interrupt:
            self._show(kind, error, trace)

    def _drop_others(self, dropped: sys.UnraisableHookArgs) -> None:
        """Send the signal again shortly after Python dropped our interrupt."""
        if self.interrupt is None or dropped.exc_value is not self.interrupt:
            self._drop(dropped)
            return
        self._is_lost = True
        number = self._number(self.interrupt)
        # Signal the main thread itself: a signal to another thread would not end its sleep.
        main = threading.main_thread().ident
        send = threading.Timer(AGAIN_SECONDS, signal.pthread_kill, (main, number))
        send.daemon = True
        send.start()

    def _raise(self, number: int, _frame: object) -> NoReturn:
        if self.interrupt is None:
            self.interrupt = Terminated() if number == signal.SIGTERM else KeyboardInterrupt()
            self._patience = leave_after_patience(self._leave)
        elif not self._is_lost:
            os._exit(128 + number)  # second signal: exit at once
        self._is_lost = False
        raise self.interrupt

    def _leave(self) -> None:
        os.write(2, b"interrupted\n")
        os._exit(128 + self._number(self.interrupt))

    @staticmethod
    def _number(interrupt: KeyboardInterrupt | None) -> int:
        return signal.SIGTERM if isinstance(interrupt, Terminated) else signal.SIGINT
