"""Attack a live node as strangers and misbehaving members, for any length of time. Claim: the node
delivers only messages signed by their origin, each once; it does not crash, its memory does not
grow, and it counts every refusal.

    python benchmarks/strangers_runtime.py --connections 100000 --frames 100000
    python benchmarks/strangers_runtime.py --connections 2000 --frames 2000 --seed 7

ann is a separate process. bob, an honest member, broadcasts all the time, and ann must deliver his
messages. A round: damaged connections (`check/fuzz/links.py`), another group's key, replayed
connections, reordered records, damaged frames of a member, forged and replayed messages, floods.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from strangers.attacks import GROUP, Round

from beforehand.check.fuzz.links import ANSWER_SECONDS
from beforehand.runtime.crypto.keys import GroupKey, new_group
from beforehand.runtime.group import Group
from beforehand.runtime.transport.address import Address
from beforehand.runtime.transport.limits import Limits

LIMITS = Limits(backoff_min_seconds=0.001, backoff_max_seconds=0.001, frames_per_second_max=5_000)
"""A disconnected attacker may reconnect at once; otherwise most of the time would be idle."""
SPEAK_SECONDS = 0.05
GROWTH_KB_MAX = 32_000
"""The allowed growth after the first round of attacks. ann's cache holds bob's messages."""
WARM_SECONDS = 0.5


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    options.add_argument("--connections", type=int, default=1000, help="damaged ones")
    options.add_argument("--frames", type=int, default=1000, help="damaged ones of a member")
    options.add_argument("--warm", type=int, default=50, help="of each, before memory is looked at")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    args = options.parse_args()
    if args.serve:
        asyncio.run(serve(args.serve))
        return 0
    with tempfile.TemporaryDirectory(prefix="strangers-") as folder:
        new_group(GROUP).write(Path(folder) / "group.key")
        found = asyncio.run(attack(Path(folder), args))
    print(json.dumps(found))
    return 0 if found["is_sound"] else 1


# ---- ann, in a separate process -----------------------------------------------------------------


async def serve(folder: Path) -> None:
    """Run ann: record her deliveries, and print her status for every input line."""
    group = Group(
        GROUP,
        name="ann",
        store=folder / "ann.db",
        key=folder / "group.key",
        lifetime="1h",
        listen="127.0.0.1:0",
        discover=False,
        limits=LIMITS,
    )
    async with group:
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        reading = asyncio.create_task(write_down(group, folder / "got.jsonl"))
        while await reader.readline():
            told = {
                "address": str(group.addresses[0]),
                "rss_kb": resident_kb(),
                "counters": msgspec.to_builtins(group.counters),
            }
            print(json.dumps(told), flush=True)
        reading.cancel()


async def write_down(group: Group, path: Path) -> None:
    with path.open("w", buffering=1) as file:
        async for message in group:
            print(json.dumps([*message.id, message.payload.hex()]), file=file)


def resident_kb() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


class Ann:
    """ann's process, as seen from the attacker."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def ask(self) -> dict[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(b"\n")
        async with asyncio.timeout(ANSWER_SECONDS):
            found: dict[str, Any] = json.loads(await self._process.stdout.readline())
        return found

    async def end(self) -> int:
        assert self._process.stdin
        self._process.stdin.close()
        async with asyncio.timeout(ANSWER_SECONDS):
            return await self._process.wait()


@asynccontextmanager
async def ann_at_home(folder: Path) -> AsyncIterator[Ann]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "--serve", str(folder), stdin=pipe, stdout=pipe
    )
    try:
        yield Ann(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


# ---- the attack ---------------------------------------------------------------------------------


async def attack(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    key, started = GroupKey.read(folder / "group.key"), time.perf_counter()
    said: dict[str, bytes] = {}
    async with ann_at_home(folder) as ann:
        target = Address.parse((await ann.ask())["address"])
        async with make_bob(folder, target) as bob:
            speaking = asyncio.create_task(speak(bob, said))
            await asyncio.sleep(WARM_SECONDS)
            spoken = [message for _, message in bob._core()._cache.entries.values()]
            attacks = Round(target, key, spoken, args.seed)
            await attacks.play(connections=args.warm, frames=args.warm)
            before = await ann.ask()
            await attacks.play(connections=args.connections, frames=args.frames)
            speaking.cancel()
            await asyncio.wait([speaking])
            await say(bob, said, b"all is well")
            await wait_for(folder / "got.jsonl", b"all is well".hex())
            after = await ann.ask()
        code = await ann.end()
    verdict = judge(folder / "got.jsonl", said)
    grown_kb = after["rss_kb"] - before["rss_kb"]
    left_open = dict(attacks.open_ended + Counter())
    is_clean = not any(verdict[kind] for kind in ("unsigned", "twice", "lost"))
    return {
        "bench": "strangers",
        "seed": args.seed,
        "is_sound": is_clean and code == 0 and not left_open and grown_kb < GROWTH_KB_MAX,
        **verdict,
        "thrown": dict(attacks.thrown),
        "frames_became": dict(attacks.became),
        "left_open": left_open,
        "refusals": refusals(after["counters"]),
        "rss_kb": after["rss_kb"],
        "grown_kb": grown_kb,
        "exit_code": code,
        "wall_s": round(time.perf_counter() - started, 1),
        "python": platform.python_version(),
    }


def make_bob(folder: Path, target: Address) -> Group:
    return Group(
        GROUP,
        name="bob",
        store=folder / "bob.db",
        key=folder / "group.key",
        lifetime="1h",
        listen="127.0.0.1:0",
        peers=[str(target)],
        discover=False,
        limits=LIMITS,
    )


async def speak(bob: Group, said: dict[str, bytes]) -> None:
    while True:
        await asyncio.shield(say(bob, said, secrets.token_bytes(50)))
        await asyncio.sleep(SPEAK_SECONDS)


async def say(bob: Group, said: dict[str, bytes], payload: bytes) -> None:
    origin, seq = await bob.broadcast(payload)
    said[f"{origin} {seq}"] = payload


async def wait_for(got: Path, last: str) -> None:
    """Wait until ann has recorded that message, and therefore all earlier ones."""
    async with asyncio.timeout(ANSWER_SECONDS):
        while not any(json.loads(line)[2] == last for line in got.read_text().splitlines()):
            await asyncio.sleep(0.05)


def judge(got: Path, said: dict[str, bytes]) -> dict[str, int]:
    """Compare ann's deliveries with bob's broadcasts; keys are ids as text."""
    found = [json.loads(line) for line in got.read_text().splitlines()]
    counts = Counter(f"{origin} {seq}" for origin, seq, _ in found)
    return {
        "said": len(said),
        "delivered": len(found),
        "unsigned": sum(
            said.get(f"{origin} {seq}") != bytes.fromhex(payload) for origin, seq, payload in found
        ),
        "twice": sum(count - 1 for count in counts.values()),
        "lost": len(said.keys() - counts.keys()),
    }


def refusals(counters: dict[str, Any]) -> dict[str, int]:
    told = {f"links.{kind}": count for kind, count in counters["links"].items() if kind != "links"}
    told |= {f"trust.{kind}": n for kind, n in counters["trust"].items() if kind != "bound"}
    told |= {f"node.{kind}": count for kind, count in counters["node"].items()}
    told["messages.refused"] = counters["messages"]["refused"]
    told["messages.duplicate"] = counters["messages"]["duplicate"]
    return {kind: count for kind, count in told.items() if count}


if __name__ == "__main__":
    sys.exit(main())
