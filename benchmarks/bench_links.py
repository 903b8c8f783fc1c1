"""Frames per CPU second through two meshes on loopback, both in this process.

For comparison it also measures sealing and opening the same records alone; the rest is the cost of
sockets and Python. `--strangers N` opens N damaged connections to a live socket instead. Claim:
each is counted once, none is left hanging, and memory does not grow.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import resource
import statistics
import time

import msgspec

from beforehand.check.fuzz.links import throw
from beforehand.runtime.config import wall_clock_us
from beforehand.runtime.crypto.handshake import Opener, Sealer
from beforehand.runtime.crypto.key_ring import KeyRing
from beforehand.runtime.crypto.keys import GroupKey, new_group, new_member
from beforehand.runtime.crypto.trust import Trust
from beforehand.runtime.transport.address import Address
from beforehand.runtime.transport.connection.records import BATCH_BYTES, FRAME_OVERHEAD, pack_frames
from beforehand.runtime.transport.limits import Limits
from beforehand.runtime.transport.mesh import Mesh

SIZES = {200: 400_000, 16_384: 40_000}
REPEATS = 3
BURST = 32
"""Frames per call of `send`."""
LIMITS = Limits(
    frames_per_second_max=100_000_000, backoff_min_seconds=0.001, backoff_max_seconds=0.001
)
"""No rate counts as a flood here, and a refused peer may reconnect at once."""


class Node:
    """A mesh that counts the frames it receives."""

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
            KeyRing(key, wall_clock_us),
            Trust(name, member, {}, lambda *_: None),
            listen=[Address("127.0.0.1", 0)],
            peers=peers,
            discover=False,
            limits=LIMITS,
            on_link=lambda *_: self.is_linked.set(),
            on_frame=self._on_frame,
            on_room=lambda _: self.has_room.set(),
        )

    def _on_frame(self, peer: str, frame: bytes) -> None:
        self.received += 1
        if self.received == self.expected:
            self.is_done.set()


async def through_meshes(size: int, count: int) -> float:
    """Return the frames per CPU second."""
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
    """Return the frames per CPU second for sealing and opening the same records."""
    each = max(1, BATCH_BYTES // (size + FRAME_OVERHEAD))
    sealer, opener = Sealer(bytes(32)), Opener(bytes(32))
    content = pack_frames([bytes(size)] * each)
    started = time.process_time()
    for _ in range(count // each):
        opener.open(sealer.seal(content))
    return count // each * each / (time.process_time() - started)


def measure(size: int, count: int) -> dict[str, object]:
    rates = [asyncio.run(through_meshes(size, count)) for _ in range(REPEATS)]
    alone = [sealing_alone(size, count) for _ in range(REPEATS)]
    return {
        "bench": f"links/{size}",
        "frames_per_cpu_s": round(statistics.median(rates)),
        "mb_per_cpu_s": round(statistics.median(rates) * size / 1e6),
        "spread": round(max(rates) / min(rates), 2),
        "sealing_alone_frames_per_cpu_s": round(statistics.median(alone)),
        "python": platform.python_version(),
    }


async def be_thrown_at(count: int, seed: int) -> dict[str, object]:
    key, zed = new_group("bench"), new_member()
    ann = Node("ann", key)
    await ann.mesh.start()
    (address,) = ann.mesh.addresses()
    await throw(address, key, zed, count=min(count, 2000), seed=seed + 1)  # warm-up
    before, counted = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, refusals(ann)
    started = time.perf_counter()
    throws = await throw(address, key, zed, count=count, seed=seed)
    seconds = time.perf_counter() - started
    await asyncio.sleep(0.1)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = {
        "bench": "links/strangers",
        "seed": seed,
        "thrown": count,
        **msgspec.structs.asdict(throws),
        "counted": refusals(ann) - counted,
        "by_kind": {k: n for k, n in msgspec.structs.asdict(ann.mesh.counters).items() if n},
        "memory_max_growth_kb": after - before,
        "per_s": round(count / seconds),
        "python": platform.python_version(),
    }
    await ann.mesh.close()
    return found


def refusals(node: Node) -> int:
    counted: dict[str, int] = msgspec.structs.asdict(node.mesh.counters)
    return sum(counted.values()) - node.mesh.counters.links


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strangers", type=int, default=0, help="how many to throw")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.strangers:
        print(json.dumps(asyncio.run(be_thrown_at(args.strangers, args.seed))))
        return
    for size, count in SIZES.items():
        print(json.dumps(measure(size, count)))


if __name__ == "__main__":
    main()
