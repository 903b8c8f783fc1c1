"""One life of one node: a group, and a program that broadcasts, reads and writes down what it got.

What it writes down is one line of JSON per fact, appended at once: it survives a kill, since that
takes no page of a file away. The harness hears from it on its standard output how things are, and
tells it on its standard input to come to an end.
"""

from __future__ import annotations

import asyncio
import bisect
import hashlib
import json
import os
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from beforehand.core.base import MessageId
from beforehand.core.tables import Store
from beforehand.runtime.eventlog import EventLog
from beforehand.runtime.group import Group
from beforehand.runtime.limits import Limits
from beforehand.runtime.node import Recorder
from beforehand.runtime.reading import GroupMessage
from soak.draw import NodeScript, Speech

GROUP = "soak"
KEY_FILE = "soak.key"
LOGS = "logs"
STATUS_SECONDS = 0.1
ALIVE_US = 300_000_000
"""What lives longer than this lives to the end of the seed."""
ANSWERS_DEEP_MAX = 3
LATE_SECONDS = 0.3
"""What a node should have said longer ago than this, while it was away, it does not say."""
LIMITS = Limits(
    heartbeat_seconds=0.25,
    silence_seconds=1.0,
    handshake_seconds=1.0,
    backoff_min_seconds=0.05,
    backoff_max_seconds=0.4,
)


@dataclass(frozen=True)
class Place:
    """Where a node lives."""

    folder: Path
    address: str
    peers: tuple[str, ...]
    began: float
    """Of the seed, on the monotonic clock: all times of scripts are since then."""


def live(script: NodeScript, place: Place) -> None:
    """Until it is told to stop, or killed."""
    asyncio.run(_Life(script, place).run())


class _Life:
    def __init__(self, script: NodeScript, place: Place) -> None:
        self.script, self.place = script, place
        self.rng = random.Random(f"{script.seed} {time.time_ns()}")
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self.records = os.open(place.folder / f"{script.name}.jsonl", flags, 0o644)
        self.starts = 0
        self.said = 0
        self.has_spoken = False
        self.is_busy = False
        self.unacknowledged: list[MessageId] = []

    async def run(self) -> None:
        script, place = self.script, self.place
        group = Group(
            GROUP,
            name=script.name,
            store=place.folder / f"{script.name}.db",
            key=place.folder / KEY_FILE,
            lifetime="20m",
            listen=place.address,
            peers=place.peers,
            discover=False,
            durable=script.durable,
            inbox=script.inbox,
            limits=LIMITS,
            clock_us=self.clock_us,
            make_recorder=self.make_log,
        )
        async with group:
            doing = [
                asyncio.create_task(job)
                for job in (self.read(group), self.speak(group), self.tell(group))
            ]
            hearing = asyncio.create_task(_hear_stop())
            await asyncio.wait([*doing, hearing], return_when=asyncio.FIRST_COMPLETED)
            # Where one of them failed, that is what is told; reading and telling have no end.
            for job in doing:
                if job.done():
                    job.result()
            while not hearing.done():
                await asyncio.wait([*doing[::2], hearing], return_when=asyncio.FIRST_COMPLETED)
                for job in doing[::2]:
                    if job.done():
                        job.result()
            for job in doing:
                job.cancel()
            await asyncio.gather(*doing, return_exceptions=True)
        self.note("end", self.starts)

    def clock_us(self) -> int:
        now, clock = time.monotonic() - self.place.began, self.script.clock
        offset_us = clock[max(0, bisect.bisect(clock, (now, 1 << 62)) - 1)][1]
        return time.time_ns() // 1000 + offset_us + int(now * self.script.drift * 1e6)

    def make_log(self, store: Store, starts: int) -> Recorder:
        self.starts = starts
        self.note("start", starts)
        return EventLog(
            self.place.folder / LOGS,
            self.script.name,
            run=GROUP,
            store=store,
            incarnation=starts,
            now_us=self.clock_us,
            rows_max=self.script.log_rows_max,
        )

    def note(self, *fact: object) -> None:
        os.write(self.records, json.dumps(fact).encode() + b"\n")

    # ---- the program ----------------------------------------------------------------------------

    async def speak(self, group: Group) -> None:
        for speech in self.script.speeches:
            wait = self.place.began + speech.at_s - time.monotonic()
            if wait > -LATE_SECONDS:
                await asyncio.sleep(max(0.0, wait))
                await self.say(group, speech, deep=0)
        self.has_spoken = True

    async def say(self, group: Group, speech: Speech, deep: int) -> None:
        self.said += 1
        words = f"{self.script.name}.{self.starts}.{self.said}.{deep}"
        payload = words.encode() + b"." + b"~" * speech.size
        self.note("say", words)
        id = await group.broadcast(payload, lifetime=speech.lifetime)
        self.note("said", *id, words)

    async def read(self, group: Group) -> None:
        async for message in group:
            self.is_busy = True
            words = message.payload.decode().rstrip("~").removesuffix(".")
            self.note("got", *message.id, words)
            if self.script.reading_s:
                await asyncio.sleep(self.rng.random() * self.script.reading_s)
            deep = int(words.rpartition(".")[2]) + 1
            if deep <= ANSWERS_DEEP_MAX and self.rng.random() < self.script.answers:
                await self.say(group, Speech(0.0, 20, None), deep)
            if self.script.inbox:
                await self.acknowledge(group, message)
            self.is_busy = False

    async def acknowledge(self, group: Group, message: GroupMessage) -> None:
        """In one of three ways: surely, some time soon, or later together with others."""
        way = self.rng.randrange(3)
        if way == 0:
            self.note("acking", *message.id)
            message.ack()
            return
        self.unacknowledged.append(message.id)
        if way == 1:
            done, self.unacknowledged = self.unacknowledged, []
            for id in done:
                self.note("acking", *id)
            await group.acknowledge(done)
            for id in done:
                self.note("acked", *id)

    # ---- for the harness ------------------------------------------------------------------------

    async def tell(self, group: Group) -> None:
        while True:
            line = json.dumps(self.status(group)).encode() + b"\n"
            await asyncio.get_running_loop().run_in_executor(None, os.write, 1, line)
            await asyncio.sleep(STATUS_SECONDS)

    def status(self, group: Group) -> dict[str, Any]:
        alive_us = time.time_ns() // 1000 + ALIVE_US
        held = group._core().holds(self.clock_us())
        alive = sorted((str(origin), seq) for origin, seq in held if seq > alive_us)
        assert group._parts is not None
        return {
            "life": self.starts,
            "held": len(alive),
            "digest": hashlib.blake2b(repr(alive).encode(), digest_size=8).hexdigest(),
            "is_quiet": self.has_spoken and not self.is_busy and not group._parts.reading._queue,
            "pending": len(group.pending),
            "peers": len(group.peers),
            "counters": msgspec.to_builtins(group.counters),
        }


async def _hear_stop() -> None:
    """Or die with the harness."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    if await reader.readline() != b"stop\n":
        os._exit(1)
