"""A program that talks: lines from the standard input, messages on the standard output."""

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
"""Lines that came together, without their ends; and whether they are the last."""


def start_reading(take: TakeLines) -> None:
    """In a thread that nobody waits for: reading from a terminal, a pipe or a file blocks each in
    its own way. The lines are taken in this loop, and no more are read until they are."""
    loop = asyncio.get_running_loop()
    threading.Thread(target=_read, args=(loop, take), daemon=True).start()


def _read(loop: asyncio.AbstractEventLoop, take: TakeLines) -> None:
    """Past Python's buffers, whose lock a thread that still reads would hold at the end."""
    rest = b""
    # The loop is closed, or the terminal gone, or nobody takes anything any more: the loop, where
    # all of it is taken, tells why.
    with suppress(RuntimeError, OSError, CancelledError, BeforehandError):
        while data := os.read(sys.stdin.fileno(), READ_BYTES):
            *lines, rest = (rest + data).split(b"\n")
            asyncio.run_coroutine_threadsafe(take(lines, False), loop).result()
        lines = [rest] if rest else []
        asyncio.run_coroutine_threadsafe(take(lines, True), loop).result()


async def until_first(*work: Coroutine[Any, Any, object]) -> None:
    """Until one of them is over, or fails; then the others are broken off."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()  # it raises what ended it
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def printable(payload: bytes) -> str:
    """Nothing that a terminal would obey."""
    text = payload.decode(errors="replace")
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
