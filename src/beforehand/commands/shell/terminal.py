"""Helpers for interactive commands: lines from stdin, messages to stdout."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any

from beforehand.errors import BeforehandError

READ_BYTES = 1 << 16

TakeLines = Callable[[list[bytes], bool], Coroutine[Any, Any, None]]
"""Called with lines that were read together, without line ends, and whether they are the last."""


def start_reading(take: TakeLines) -> None:
    """Read stdin in a daemon thread, because terminals, pipes and files block differently.

    The lines are handled in this event loop. The thread reads no more until they are handled.
    """
    loop = asyncio.get_running_loop()
    threading.Thread(target=_read, args=(loop, take), daemon=True).start()


def _read(loop: asyncio.AbstractEventLoop, take: TakeLines) -> None:
    """Read past Python's buffers: a blocked reader would hold their lock at interpreter exit."""
    rest = b""
    # The loop may be closed, the terminal may be gone, or the handler may have failed. The loop
    # that runs the handler reports the reason.
    with suppress(RuntimeError, OSError, CancelledError, BeforehandError):
        while data := os.read(sys.stdin.fileno(), READ_BYTES):
            *lines, rest = (rest + data).split(b"\n")
            asyncio.run_coroutine_threadsafe(take(lines, False), loop).result()
        lines = [rest] if rest else []
        asyncio.run_coroutine_threadsafe(take(lines, True), loop).result()


async def until_first(*work: Coroutine[Any, Any, object]) -> None:
    """Wait until the first coroutine ends or fails, then cancel the others."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()  # raises the exception that ended it
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def printable(payload: bytes) -> str:
    """Replace characters that a terminal would interpret."""
    text = payload.decode(errors="replace")
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
