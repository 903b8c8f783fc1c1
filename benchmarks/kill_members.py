"""Claim: members of an overlay and mobile hosts lose and duplicate nothing, however often they are
killed: every broadcast is delivered everywhere, once and in causal order.

Each member is a process that broadcasts continuously. The benchmark kills one after the other with
SIGKILL, at a moment drawn from the seed, and restarts it; hosts also change their cells. Then all
members stop broadcasting, catch up and stop. Their event logs are merged and judged.

    python benchmarks/kill_members.py overlay --kills 100 --seed 1
    python benchmarks/kill_members.py host --kills 100 --seed 1
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import numpy as np

from beforehand import Overlay
from beforehand.runtime.crypto.keys import new_group
from beforehand.runtime.host import Host
from beforehand.runtime.station import Station
from beforehand.runtime.transport.limits import Limits
from beforehand.verify.verdict import RunVerdict, verify_events

NAMES = ("ann", "bob", "cid", "dee", "eve")
STATIONS = ("north", "mid", "south")
PERIOD_S = 0.1
QUICK = Limits(backoff_max_seconds=0.5, queue_bytes_max=4 << 20)
PATIENCE_S = 300.0


def free_ports(count: int, kind: int) -> list[int]:
    sockets = [socket.socket(socket.AF_INET, kind) for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


def prepare(folder: Path) -> None:
    new_group("soak").write(folder / "soak.key")
    tcp = free_ports(len(NAMES) + len(STATIONS), socket.SOCK_STREAM)
    udp = free_ports(len(STATIONS), socket.SOCK_DGRAM)
    lines = ['group = "soak"']
    for name, port in zip(NAMES, tcp, strict=False):
        lines += ["[[member]]", f'name = "{name}"', f'address = "127.0.0.1:{port}"']
    (folder / "members.toml").write_text("\n".join(lines))
    lines = ['group = "soak"']
    for at, name in enumerate(STATIONS):
        lines += ["[[station]]", f'name = "{name}"', f'address = "127.0.0.1:{tcp[-1 - at]}"']
        lines += [f'cell = "239.77.1.{at + 1}:{udp[at]}"', 'interface = "127.0.0.1"']
        lines += [f"wires = {['mid'] if name != 'mid' else []}"]
    (folder / "stations.toml").write_text("\n".join(lines))


# ---- one member ----------------------------------------------------------------------------------


def options_of(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "store": f"{name}.db",
        "key": "soak.key",
        "durable": "os",
        "log": "logs",
    }


def cells() -> list[str]:
    lines = Path("stations.toml").read_text().splitlines()
    return [line.split('"')[1] for line in lines if line.startswith("cell")]


async def live(member: Any, rng: random.Random, stop: asyncio.Event) -> None:
    """Broadcast until the file `quiet` exists, read until `stop`, and report the deliveries."""

    async def listen() -> None:
        async for _ in member:
            pass

    listening = asyncio.create_task(listen())
    for turn in range(10**9):
        if stop.is_set():
            break
        is_quiet = Path("quiet").exists()
        if Path("speak").exists() and not is_quiet:
            await member.broadcast(b"%d" % turn)
        if isinstance(member, Host):
            if rng.random() < 0.01 and not is_quiet:
                await member.move(rng.choice(cells()), "127.0.0.1")
            is_ready = member.is_connected and not (is_quiet and member.unacked)
        else:
            is_ready = len(member.peers) == len(NAMES) - 1
        told = {"ready": is_ready, "delivered": member.counters.messages.delivered}
        partial = Path(f".{member.name}.state")
        partial.write_text(json.dumps(told))
        partial.rename(f"{member.name}.state")
        await asyncio.sleep(PERIOD_S * rng.uniform(0.5, 1.5))
    listening.cancel()


async def be_member(kind: str, name: str) -> None:
    stop, rng = asyncio.Event(), random.Random(f"{name}{os.getpid()}")
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    if kind == "stations":
        async with AsyncExitStack() as stack:
            for station in STATIONS:
                made = Station("stations.toml", name=station, key="soak.key", limits=QUICK)
                await stack.enter_async_context(made)
            await stop.wait()
        return
    member: Any
    if kind == "overlay":
        member = Overlay("members.toml", limits=QUICK, **options_of(name))
    else:
        cell = rng.choice(cells())
        member = Host("soak", cell=cell, interface="127.0.0.1", **options_of(name))
    async with member:
        await live(member, rng, stop)


# ---- all members ---------------------------------------------------------------------------------


class Soak:
    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder = kind, folder
        self.members: dict[str, subprocess.Popen[bytes]] = {}
        self.others: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, kind: str = "") -> subprocess.Popen[bytes]:
        (self.folder / f"{name}.state").unlink(missing_ok=True)
        command = [sys.executable, os.path.abspath(__file__), "member", kind or self.kind, name]
        return subprocess.Popen(command, cwd=self.folder)

    def states(self) -> dict[str, dict[str, Any]]:
        paths = {name: self.folder / f"{name}.state" for name in self.members}
        return {n: json.loads(path.read_text()) for n, path in paths.items() if path.exists()}

    def wait(self, what: str, condition: Any) -> None:
        end = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > end:
                raise SystemExit(f"{what}: not after {PATIENCE_S:.0f} s: {self.states()}")
            time.sleep(0.1)

    def are_ready(self) -> bool:
        states = self.states()
        return len(states) == len(self.members) and all(s["ready"] for s in states.values())

    def run(self, kills: int, rng: random.Random) -> None:
        if self.kind == "host":
            self.others.append(self.start("stations", "stations"))
        for name in NAMES:
            self.members[name] = self.start(name)
        self.wait("all are there", self.are_ready)
        (self.folder / "speak").touch()
        for _ in range(kills):
            time.sleep(rng.uniform(0.0, 1.0))
            name = rng.choice(NAMES)
            self.members[name].kill()
            self.members[name].wait()
            time.sleep(rng.choice((0.0, rng.uniform(0.0, 1.0))))
            self.members[name] = self.start(name)
            if rng.random() < 0.7:
                self.wait(f"{name} is back", lambda name=name: name in self.states())
        (self.folder / "quiet").touch()
        self.wait("all are back", self.are_ready)

    def settle(self) -> None:
        """Wait until no state has changed for 10 s."""
        since, before = time.monotonic(), self.states()
        end = since + PATIENCE_S
        while time.monotonic() - since < 10.0 and time.monotonic() < end:
            time.sleep(0.2)
            if (now := self.states()) != before:
                since, before = time.monotonic(), now

    def stop(self) -> None:
        for process in (*self.members.values(), *self.others):
            process.terminate()
        for process in (*self.members.values(), *self.others):
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=("overlay", "host"))
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where stores and logs stay; else they go")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = args.folder or Path(name)
        folder.mkdir(exist_ok=True)
        prepare(folder)
        soak = Soak(args.kind, folder)
        started_s = time.monotonic()
        try:
            soak.run(args.kills, random.Random(args.seed))
            soak.settle()
        finally:
            soak.stop()
        (run,) = verify_events(folder / "logs").runs
    assert isinstance(run, RunVerdict)
    is_delivery = ~np.asarray(run.log.is_broadcast)
    delivered = Counter(np.asarray(run.log.node)[is_delivery].tolist())
    told = {
        "bench": f"kill/{args.kind}",
        "seed": args.seed,
        "kills": args.kills,
        "members": len(NAMES),
        "broadcasts": run.broadcasts,
        "deliveries": run.deliveries,
        "delivered": {run.log.name(node): count for node, count in sorted(delivered.items())},
        "lost": run.broadcasts * len(NAMES) - run.deliveries,
        "violations": run.counts,
        "verdict": run.state,
        "reason": run.reason,
        "seconds": round(time.monotonic() - started_s),
    }
    print(json.dumps(told))


if __name__ == "__main__":
    if sys.argv[1] == "member":
        asyncio.run(be_member(*sys.argv[2:]))
    else:
        main()
