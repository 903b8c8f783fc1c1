"""Frames per CPU second through two meshes on loopback, both in this process.

Beside it what sealing and opening the same records costs alone: the rest is the price of sockets
and Python. `--strangers N` throws N mutated records at a live socket instead, and says what the
node counted and how much its memory grew.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import resource
import statistics
import time

from beforehand.runtime.address import Address
from beforehand.runtime.keys import GroupKey, new_group, new_member
from beforehand.runtime.limits import Limits
from beforehand.runtime.mesh import Mesh
from beforehand.runtime.records import BATCH_BYTES, FRAME_OVERHEAD, pack_frames, unpack_frames
from beforehand.runtime.seal import Opener, Sealer
from beforehand.runtime.trust import Trust

SIZES = {200: 400_000, 16_384: 40_000}
REPEATS = 3
BURST = 32
"""Frames in one call of `send`."""
LIMITS = Limits(frames_per_second_max=100_000_000)


class Node:
    """A mesh that counts what it receives."""

    def __init__(self, name: str, key: GroupKey, *peers: Address) -> None:
        member = new_member()
        self.received = 0
        self.is_linked = asyncio.Event()
        self.is_done = asyncio.Event()
        self.has_room = asyncio.Event()
        self.expected = 0
        self.mesh = Mesh(
            name,
            member,
            key,
            Trust(name, member, {}, lambda name, public: None),
            listen=[Address("127.0.0.1", 0)],
            peers=peers,
            discover=False,
            limits=LIMITS,
            on_link=lambda peer, is_up: self.is_linked.set(),
            on_frame=self._on_frame,
            on_room=lambda peer: self.has_room.set(),
        )

    def _on_frame(self, peer: str, frame: bytes) -> None:
        self.received += 1
        if self.received == self.expected:
            self.is_done.set()


async def through_meshes(size: int, count: int) -> float:
    """Frames per CPU second."""
    key = new_group("bench")
    ann = Node("ann", key)
    await ann.mesh.start()
    bob = Node("bob", key, *ann.mesh.addresses())
    await bob.mesh.start()
    await bob.is_linked.wait()
    ann.expected = count
    burst = [bytes(size)] * BURST
    started = time.process_time()
    left = count
    while left > 0:
        if bob.mesh.room("ann") < LIMITS.queue_bytes_max // 2:
            bob.has_room.clear()
            await bob.has_room.wait()
        bob.mesh.send("ann", burst[:left])
        left -= len(burst)
    await ann.is_done.wait()
    spent = time.process_time() - started
    await bob.mesh.close()
    await ann.mesh.close()
    return count / spent


def sealing_alone(size: int, count: int) -> float:
    """Frames per CPU second, in the same records."""
    each = max(1, BATCH_BYTES // (size + FRAME_OVERHEAD))
    sealer, opener = Sealer(bytes(32)), Opener(bytes(32))
    content = pack_frames([bytes(size)] * each)
    started = time.process_time()
    for _ in range(count // each):
        opener.open(sealer.seal(content))
    return count // each * each / (time.process_time() - started)


def packing_alone(size: int, count: int) -> float:
    each = max(1, BATCH_BYTES // (size + FRAME_OVERHEAD))
    frames = [bytes(size)] * each
    started = time.process_time()
    for _ in range(count // each):
        unpack_frames(pack_frames(frames), size)
    return count // each * each / (time.process_time() - started)


def measure(size: int, count: int) -> dict[str, object]:
    rates = [asyncio.run(through_meshes(size, count)) for _ in range(REPEATS)]
    return {
        "frame_bytes": size,
        "frames_per_cpu_s": round(statistics.median(rates)),
        "mb_per_cpu_s": round(statistics.median(rates) * size / 1e6),
        "spread": round(max(rates) / min(rates), 2),
        "sealing_alone_frames_per_cpu_s": round(sealing_alone(size, count)),
        "packing_alone_frames_per_cpu_s": round(packing_alone(size, count)),
    }


print(json.dumps([measure(*x) for x in SIZES.items()]))
