"""One incarnation of one node: a group, and an application that broadcasts, reads and records.

The application appends one line of JSON per fact at once. The records survive a kill, because the
kernel keeps the written pages. The harness reads the node's status from its standard output, and
tells it on its standard input to stop.
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
from collections.abc import Coroutine, Sequence
from typing import Any

import msgspec
import pyarrow.parquet as pq

from beforehand.events import BROADCAST, DELIVER
from beforehand.protocols.contract.base import Message, MessageId
from beforehand.protocols.contract.tables import Store
from beforehand.runtime.node import Recorder
from beforehand.runtime.queues.inbox import GroupMessage
from beforehand.runtime.storage.event_log import EventLog
from soak.draw import NodeScript, Speech
from soak.kinds import GROUP, KINDS, Place

LOGS = "logs"
KEPT = ("deliver", "broadcast")
STATUS_SECONDS = 0.1
ANSWERS_DEEP_MAX = 3
GREETING_SECONDS = 0.03
WANDERS = 0.3
"""The probability that a mobile node moves before it broadcasts."""
LATE_SECONDS = 0.3
"""A broadcast that is overdue by more than this, because the node was down, is skipped."""


class Log(EventLog):
    """An event log that also reports its messages to this process."""

    def tell_all_to(self, has: set[MessageId]) -> None:
        """Add the messages of earlier incarnations to `has`, and from now on every new one."""
        self._has = has
        for file in self.folder.glob(f"{self._stem}.*.node.parquet"):
            rows = pq.read_table(file, columns=["kind", "origin", "seq"]).to_pylist()
            has.update((row["origin"], row["seq"]) for row in rows if row["kind"] in KEPT)
        kept = (DELIVER, BROADCAST)
        has.update((origin, seq) for _, kind, origin, seq, _ in self._events if kind in kept)

    def broadcasted(self, message: MessageId, deliveries: Sequence[Message]) -> None:
        super().broadcasted(message, deliveries)
        self._has.add(message)

    def delivered(self, messages: Sequence[Message]) -> None:
        super().delivered(messages)
        self._has.update(message.id for message in messages)


def live(script: NodeScript, place: Place) -> None:
    """Run a node until the stop command arrives or the node is killed."""
    asyncio.run(_Life(script, place).run())


class _Life:
    def __init__(self, script: NodeScript, place: Place) -> None:
        self.script, self.place = script, place
        self.kind = KINDS[place.kind]
        self.is_station = script.at < self.kind.stations
        self.has: set[MessageId] = set()
        """The messages that it delivered or broadcast, in all incarnations."""
        self.rng = random.Random(f"{script.seed} {time.time_ns()}")
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self.records = os.open(place.folder / f"{script.name}.jsonl", flags, 0o644)
        self.starts = 0
        self.said = 0
        self.has_spoken = False
        self.is_busy = False
        self.unacknowledged: list[MessageId] = []

    async def run(self) -> None:
        more = {"clock_us": self.clock_us, "make_recorder": self.make_log}
        group = self.kind.make(self.script, self.place, more)
        async with group:
            hearing = asyncio.create_task(_hear_stop())
            if self.is_station:
                await self.attend(hearing, [self.tell(group), group.failed()])
            else:
                await self.attend(hearing, [self.read(group), self.tell(group), self.speak(group)])
        self.note("end", self.starts)

    async def attend(
        self, hearing: asyncio.Task[None], jobs: list[Coroutine[Any, Any, None]]
    ) -> None:
        """Run all jobs until the stop command. Raise the exception of a job that fails."""
        doing = {asyncio.create_task(job) for job in jobs}
        while not hearing.done():
            await asyncio.wait([*doing, hearing], return_when=asyncio.FIRST_COMPLETED)
            for job in [job for job in doing if job.done()]:
                job.result()
                doing.remove(job)
        for job in doing:
            job.cancel()
        await asyncio.gather(*doing, return_exceptions=True)

    def clock_us(self) -> int:
        clock, began = self.script.clock, self.place.began
        now = time.monotonic() - began if began else 0.0
        offset_us = clock[max(0, bisect.bisect(clock, (now, 1 << 62)) - 1)][1]
        return time.time_ns() // 1000 + offset_us + int(now * self.script.drift * 1e6)

    def make_log(self, store: Store, starts: int) -> Recorder:
        self.starts = starts
        self.note("start", starts)
        log = Log(
            self.place.folder / LOGS,
            self.script.name,
            run=GROUP,
            store=store,
            incarnation=starts,
            now_us=self.clock_us,
            rows_max=self.script.log_rows_max,
        )
        log.tell_all_to(self.has)
        return log

    def note(self, *fact: object) -> None:
        os.write(self.records, json.dumps(fact).encode() + b"\n")

    # ---- the application ------------------------------------------------------------------------

    async def speak(self, group: Any) -> None:
        while not self.place.began:
            await asyncio.sleep(STATUS_SECONDS / 4)
        for _ in range(self.script.greetings):
            await self.say(group, Speech(0.0, 20, None), deep=0)
            await asyncio.sleep(self.rng.random() * GREETING_SECONDS)
        for speech in self.script.speeches:
            if self.kind.wander is not None and self.rng.random() < WANDERS:
                station = self.rng.randrange(self.kind.stations)
                await self.kind.wander(self.script, self.place, group, station)
            wait = self.place.began + speech.at_s - time.monotonic()
            if wait > -LATE_SECONDS:
                await asyncio.sleep(max(0.0, wait))
                await self.say(group, speech, deep=0)
        self.has_spoken = True

    async def say(self, group: Any, speech: Speech, deep: int) -> None:
        self.said += 1
        words = f"{self.script.name}.{self.starts}.{self.said}.{deep}"
        payload = words.encode() + b"." + b"~" * min(speech.size, group.payload_bytes_max - 100)
        self.note("say", words)
        options = {"lifetime": speech.lifetime} if self.kind.has_lifetimes else {}
        id = await group.broadcast(payload, **options)
        self.note("said", *id, words)

    async def read(self, group: Any) -> None:
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

    async def acknowledge(self, group: Any, message: GroupMessage) -> None:
        """Acknowledge without waiting, or confirmed with all postponed ones, or postpone it."""
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

    async def tell(self, group: Any) -> None:
        while not self.kind.is_up(group):
            await asyncio.sleep(STATUS_SECONDS / 4)
        while True:
            line = json.dumps(self.status(group)).encode() + b"\n"
            await asyncio.get_running_loop().run_in_executor(None, os.write, 1, line)
            await asyncio.sleep(STATUS_SECONDS)

    def status(self, group: Any) -> dict[str, Any]:
        if self.is_station:
            return {"is_quiet": True, "pending": 0, "counters": msgspec.to_builtins(group.counters)}
        if self.kind.progress is None:
            has, pending = sorted(map(repr, self.has)), 0
        else:
            has, pending = self.kind.progress(group, self.clock_us())
        assert group._parts is not None
        return {
            "life": self.starts,
            "digest": hashlib.blake2b(repr(has).encode(), digest_size=8).hexdigest(),
            "is_quiet": self.is_quiet(group._parts),
            "pending": pending,
            "counters": msgspec.to_builtins(group.counters),
        }

    def is_quiet(self, parts: Any) -> bool:
        """Return whether the node will broadcast nothing more, unless it receives another message.

        A delivery of the core may still wait for the disk and then for the application, which may
        answer it.
        """
        commits = parts.group_commit
        is_saved = commits._flying is None and not (commits._open.rows or commits._open.actions)
        return is_saved and self.has_spoken and not self.is_busy and not parts.reading._queue


async def _hear_stop() -> None:
    """Wait for the stop command; exit if the harness has ended."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    if await reader.readline() != b"stop\n":
        os._exit(1)
