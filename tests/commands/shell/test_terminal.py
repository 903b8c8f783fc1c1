"""Lines are read from a terminal, a pipe or a file."""

from __future__ import annotations

import asyncio
import os
import threading

import pytest

from beforehand.commands.shell.terminal import start_reading, until_first
from beforehand.errors import InputError
from tests.waiting import SECONDS_MAX


def test_a_last_line_without_a_newline_is_a_line(monkeypatch):
    readable, writable = os.pipe()
    taken = []

    async def talk():
        over = asyncio.Event()

        async def take(lines, is_last):
            taken.extend(lines)
            if is_last:
                over.set()

        start_reading(take)
        os.write(writable, b"one\ntwo\nthr")
        os.write(writable, b"ee")
        os.close(writable)
        await asyncio.wait_for(over.wait(), SECONDS_MAX)

    with os.fdopen(readable) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        asyncio.run(talk())
    assert taken == [b"one", b"two", b"three"]


@pytest.mark.parametrize("how", ["failed", "stopped"])
def test_a_chat_that_failed_or_was_stopped_while_it_read_showed_where_its_thread_was(
    monkeypatch, how
):
    readable, writable = os.pipe()
    shown = []
    monkeypatch.setattr(threading, "excepthook", lambda about: shown.append(about.exc_value))
    before = {*threading.enumerate()}

    async def talk():
        taken = asyncio.Event()

        async def take(lines, is_last):
            taken.set()
            if how == "failed":
                raise InputError("the disk is full")
            await asyncio.sleep(600)

        start_reading(take)
        os.write(writable, b"one\n")
        await asyncio.wait_for(taken.wait(), SECONDS_MAX)

    with os.fdopen(readable) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        asyncio.run(talk())
        os.close(writable)
        for thread in {*threading.enumerate()} - before:
            thread.join(SECONDS_MAX)
    assert shown == []


def test_a_failing_task_ends_the_others_and_is_reported():
    ended = []

    async def wait():
        try:
            await asyncio.sleep(600)
        finally:
            ended.append("broken off")

    async def fail():
        await asyncio.sleep(0)
        raise ValueError("out of ink")

    with pytest.raises(ValueError, match="out of ink"):
        asyncio.run(until_first(wait(), fail()))
    assert ended == ["broken off"]
