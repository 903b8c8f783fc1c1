"""Install handlers of SIGINT and SIGTERM for a block, and restore what was there.

Only the main thread may install handlers, so in another thread a block runs as it is.
`commands/shell/interrupt.py` defines how a command reacts to an interrupt.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""The signals with which a terminal, a supervisor or a person ends a process."""

Handler = Callable[[int, FrameType | None], Any]


def is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextmanager
def handled(handler: Handler, *, unless: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Call `handler` on each signal within the block.

    unless: at the end of the block, if it returns true the handler stays.
    """
    before = {}
    if is_main_thread():
        before = {number: signal.signal(number, handler) for number in SIGNALS}
    try:
        yield
    finally:
        for number, earlier in ({} if unless() else before).items():
            signal.signal(number, earlier)


@contextmanager
def postponed() -> Iterator[None]:
    """Start workers in this block without interrupts, and raise pending signals at the end.

    A terminal sends Ctrl-C to all processes. Workers started here ignore it; the parent ends them.
    A worker whose parent is interrupted during the start would end with a traceback. Blocking the
    signal in this thread is not enough, because another thread may receive it. So a handler also
    records the signal.
    """
    kept: list[int] = []
    with handled(lambda number, _: kept.append(number)):
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    for late in kept:
        signal.raise_signal(late)


@contextmanager
def restored() -> Iterator[None]:
    """Restore the handler of SIGINT after a block in which a library replaces it."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if is_main_thread():
            signal.signal(signal.SIGINT, before)
