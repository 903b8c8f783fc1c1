"""One process of `bench_runtime.py`: it hosts nodes and executes commands, one per line.

A node is a member of a group, or a plain one: TCP connections that send the same bytes to all
peers, without order, signature, encryption or store.
"""

from __future__ import annotations

import asyncio
import gc
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from runtime_parts import Watch

from beforehand.runtime.group import Group

STAMP_BYTES = 8
OUTSTANDING = 64
"""Concurrent broadcasts of a node that broadcasts at the maximum rate."""
LATENCIES_MAX = 4000


class Node(Protocol):
    address: str

    async def say(self, payload: bytes) -> None: ...
    async def read(self, count: int, on_payload: Callable[[bytes], None]) -> None: ...
    async def close(self) -> None: ...


class GroupNode:
    """A member of a group."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self.address = ""

    @classmethod
    async def open(cls, order: dict[str, Any]) -> GroupNode:
        folder = Path(order["folder"])
        node = cls(
            Group(
                "bench",
                name=order["name"],
                store=folder / f"{order['name']}.db",
                key=folder / "bench.key",
                lifetime="1h",
                listen="127.0.0.1:0",
                peers=order["peers"],
                discover=False,
                durable=order["durable"],
            )
        )
        await node._group.open()
        node.address = str(node._group.addresses[0])
        while len(node._group.peers) < len(order["peers"]):
            await asyncio.sleep(0.01)
        return node

    async def say(self, payload: bytes) -> None:
        await self._group.broadcast(payload)

    async def read(self, count: int, on_payload: Callable[[bytes], None]) -> None:
        for _ in range(count):
            on_payload((await anext(self._group)).payload)

    async def close(self) -> None:
        await self._group.close()


class PlainNode:
    """The asyncio baseline: send the same bytes without a group."""

    _server: asyncio.Server

    def __init__(self) -> None:
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._arrived: asyncio.Queue[bytes] = asyncio.Queue()
        self.address = ""

    @classmethod
    async def open(cls, order: dict[str, Any]) -> PlainNode:
        node = cls()
        node._server = await asyncio.start_server(node._accept, "127.0.0.1", 0)
        node.address = "127.0.0.1:{1}".format(*node._server.sockets[0].getsockname())
        for peer in order["peers"]:
            host, _, port = peer.rpartition(":")
            node._accept(*await asyncio.open_connection(host, int(port)))
        return node

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        task = asyncio.create_task(self._receive(reader))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _receive(self, reader: asyncio.StreamReader) -> None:
        while True:
            try:
                size = int.from_bytes(await reader.readexactly(4))
                self._arrived.put_nowait(await reader.readexactly(size))
            except (asyncio.IncompleteReadError, ConnectionError):
                return

    async def say(self, payload: bytes) -> None:
        frame = len(payload).to_bytes(4) + payload
        for writer in self._writers:
            writer.write(frame)
        for writer in self._writers:
            await writer.drain()
        await asyncio.sleep(0)

    async def read(self, count: int, on_payload: Callable[[bytes], None]) -> None:
        for _ in range(count):
            on_payload(await self._arrived.get())

    async def close(self) -> None:
        self._server.close()
        for writer in self._writers:
            writer.close()
        await asyncio.gather(*self._tasks)
        await self._server.wait_closed()


class Worker:
    """The nodes of one process."""

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._watch: Watch | None = None

    async def watch(self, order: dict[str, Any]) -> dict[str, Any]:
        """Start profiling; must come before the first node is opened."""
        self._watch = Watch()
        return {}

    async def open(self, order: dict[str, Any]) -> dict[str, Any]:
        kind = PlainNode if order["kind"] == "plain" else GroupNode
        node = await kind.open(order)
        self._nodes.append(node)
        return {"address": node.address}

    async def run(self, order: dict[str, Any]) -> dict[str, Any]:
        """Let every node broadcast `count` messages and read those of all others.

        rate: broadcasts per second and node; 0 for the maximum.
        is_mixed: the nodes broadcast at different instants.
        """
        gc.collect()
        if self._watch is not None:
            self._watch.begin()
        waits: list[int] = []
        started, cpu = time.monotonic(), time.process_time()
        await asyncio.gather(*(self._play(node, order, waits) for node in self._nodes))
        return {
            "seconds": time.monotonic() - started,
            "cpu_seconds": time.process_time() - cpu,
            "waits_us": waits[:: max(1, len(waits) // LATENCIES_MAX)],
            "parts": None if self._watch is None else self._watch.told(),
        }

    async def _play(self, node: Node, order: dict[str, Any], waits: list[int]) -> None:
        def arrived(payload: bytes) -> None:
            stamp = int.from_bytes(payload[:STAMP_BYTES])
            waits.append((time.monotonic_ns() - stamp) // 1000)

        reading = asyncio.create_task(node.read(order["others"] * order["count"], arrived))
        filler = bytes(order["size"] - STAMP_BYTES)
        if order["rate"]:
            phase = random.random() if order.get("is_mixed") else 0.0
            await self._say_paced(node, order["count"], order["rate"], filler, phase)
        else:
            await self._say_together(node, order["count"], filler)
        await reading

    async def _say_together(self, node: Node, count: int, filler: bytes) -> None:
        # Equal shares: a task with more left than the others would end alone, without batching.
        least, more = divmod(count, OUTSTANDING)
        shares = [least + (index < more) for index in range(OUTSTANDING)]
        await asyncio.gather(*(self._say(node, share, filler) for share in shares))

    async def _say(self, node: Node, count: int, filler: bytes) -> None:
        for _ in range(count):
            await node.say(time.monotonic_ns().to_bytes(STAMP_BYTES) + filler)

    async def _say_paced(
        self, node: Node, count: int, rate: float, filler: bytes, phase: float
    ) -> None:
        started, saying = time.monotonic(), set()
        for index in range(count):
            due = started + (index + phase) / rate
            if (wait := due - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            # The stamp is the due time, so that a late broadcast counts as latency.
            stamp = round(due * 1e9).to_bytes(STAMP_BYTES)
            task = asyncio.create_task(node.say(stamp + filler))
            saying.add(task)
            task.add_done_callback(saying.discard)
        await asyncio.gather(*saying)

    async def say_alone(self, order: dict[str, Any]) -> dict[str, Any]:
        cpu = time.process_time()
        filler = bytes(order["size"] - STAMP_BYTES)
        await self._say_together(self._nodes[0], order["count"], filler)
        return {"said": order["count"], "cpu_seconds": time.process_time() - cpu}

    async def read_alone(self, order: dict[str, Any]) -> dict[str, Any]:
        started, cpu = time.monotonic(), time.process_time()
        await self._nodes[0].read(order["count"], lambda _: None)
        return {"seconds": time.monotonic() - started, "cpu_seconds": time.process_time() - cpu}

    async def memory(self, order: dict[str, Any]) -> dict[str, Any]:
        fields = [line.split() for line in Path("/proc/self/status").read_text().splitlines()]
        sizes = {field[0]: int(field[1]) for field in fields if field[0] in ("VmRSS:", "VmHWM:")}
        return {"rss_kb": sizes["VmRSS:"], "peak_kb": sizes["VmHWM:"]}

    async def close(self, order: dict[str, Any]) -> dict[str, Any]:
        for node in self._nodes:
            await node.close()
        self._nodes.clear()
        return {}


async def main() -> None:
    worker, loop = Worker(), asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        order = json.loads(line)
        print(json.dumps(await getattr(worker, order["do"])(order)), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
