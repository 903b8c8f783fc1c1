"""Two islands that are never connected, and a ferry that carries messages between them.

Each island and the ferry has its own network namespace. A cable connects the ferry with the island
at which it lies, and with no other. The ferry runs `beforehand node`, a carrier without an
application. Where namespaces are not permitted, everything runs on loopback: the carrier then
listens at one quay, and is stopped and restarted at the other.

The event logs need pyarrow: `pip install beforehand[runtime,sim]`.
"""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from beforehand import Group, Limits, new_group

PORT = 7400
PATIENT = Limits(
    heartbeat_seconds=0.5, silence_seconds=2.0, handshake_seconds=2.0, backoff_max_seconds=0.5
)
"""Islanders try to reconnect to the ferry twice a second."""


async def be_islander(folder: Path, name: str, quay: str) -> None:
    """Run an islander: broadcast lines of standard input, and print delivered messages."""
    async with Group(
        "sea",
        name=name,
        store=folder / f"{name}.db",
        key=folder / "sea.key",
        lifetime="1h",
        peers=[quay],
        discover=False,
        limits=PATIENT,
        log=folder / "logs",
    ) as group:

        async def listen() -> None:
            async for message in group:
                print(f"{message.origin}: {message.payload.decode()}", flush=True)

        listening = asyncio.create_task(listen())
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            await group.broadcast(line.strip().encode())
            print(f"said {line.strip()}", flush=True)
        listening.cancel()


class Sea:
    """Three namespaces and two cables, of which at most one is plugged in."""

    kind = "namespaces"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names = {place: f"bfh{os.getpid()}-{place}" for place in ("north", "south", "ferry")}
        self.quays = {"north": f"10.78.1.1:{PORT}", "south": f"10.78.2.1:{PORT}"}
        try:
            for name in self.names.values():
                run("ip", "netns", "add", name)
            for number, island in enumerate(("north", "south"), 1):
                ends = ("link", "add", island, "type", "veth", "peer", "name", "ferry", "netns")
                self.ip("ferry", *ends, self.names[island])
                self.ip("ferry", "addr", "add", f"10.78.{number}.1/24", "dev", island)
                self.ip(island, "addr", "add", f"10.78.{number}.2/24", "dev", "ferry")
                self.ip(island, "link", "set", "ferry", "up")
        except BaseException:
            self.close()
            raise

    def ip(self, place: str, *words: str) -> None:
        run("ip", "-n", self.names[place], *words)

    def at(self, place: str) -> tuple[str, ...]:
        """Return the command prefix that runs a command at this place."""
        return ("ip", "netns", "exec", self.names[place])

    async def launch(self) -> None:
        self.ferry = await start_carrier(self.folder, f":{PORT}", self.at("ferry"))

    async def land(self, island: str) -> None:
        self.ip("ferry", "link", "set", island, "up")

    async def sail(self, island: str) -> None:
        self.ip("ferry", "link", "set", island, "down")

    def close(self) -> None:
        for name in self.names.values():
            subprocess.run(("ip", "netns", "del", name), capture_output=True)


class Loopback:
    """The same on loopback: the carrier runs only while the ferry lies at a quay."""

    kind = "loopback"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
        ports = [one.getsockname()[1] for one in sockets]
        self.quays = dict(zip(("north", "south"), (f"127.0.0.1:{p}" for p in ports), strict=True))
        for one in sockets:
            one.close()

    def at(self, place: str) -> tuple[str, ...]:
        return ()

    async def launch(self) -> None:
        self.ferry = None

    async def land(self, island: str) -> None:
        self.ferry = await start_carrier(self.folder, self.quays[island])

    async def sail(self, island: str) -> None:
        await stop_carrier(self.ferry)
        self.ferry = None

    def close(self) -> None: ...


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


def make_sea(folder: Path) -> Sea | Loopback:
    try:
        return Sea(folder)
    except (OSError, subprocess.CalledProcessError):
        return Loopback(folder)


async def start_carrier(folder: Path, listen: str, before: tuple[str, ...] = ()):
    command = (sys.executable, "-m", "beforehand.cli", "node", "sea", "--name", "ferry")
    files = ("--key", folder / "sea.key", "--store", folder / "ferry.db", "--log", folder / "logs")
    options = ("--listen", listen, "--no-discover", "--json", "--every", "100ms")
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(*before, *command, *files, *options, stdout=pipe)


async def stop_carrier(ferry) -> None:
    if ferry is not None:
        ferry.send_signal(signal.SIGTERM)
        await ferry.stdout.read()
        assert await ferry.wait() == 0


async def carries(ferry, count: int) -> None:
    """Wait until the carrier holds this many messages."""
    async with asyncio.timeout(60):
        while json.loads(await ferry.stdout.readline())["held"] < count:
            pass


async def start_islander(folder: Path, name: str, quay: str, before: tuple[str, ...]):
    command = (sys.executable, os.path.abspath(__file__), str(folder), name, quay)
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(*before, *command, stdin=pipe, stdout=pipe)


async def say(islander, text: str) -> None:
    islander.stdin.write(f"{text}\n".encode())
    await expect(islander, f"said {text}")


async def expect(islander, line: str) -> None:
    """Check that this is the next line that the islander prints."""
    async with asyncio.timeout(60):
        heard = (await islander.stdout.readline()).decode().strip()
    assert heard == line, f"{heard!r}, not {line!r}"


async def travel(folder: Path, sea: Sea | Loopback) -> None:
    homes = {"ann": "north", "bob": "south"}
    ann, bob = [
        await start_islander(folder, name, sea.quays[home], sea.at(home))
        for name, home in homes.items()
    ]
    await sea.launch()
    await say(ann, "is there bread in the south?")

    await sea.land("north")
    await carries(sea.ferry, 1)
    await sea.sail("north")
    print("the ferry leaves the north with a question")

    await sea.land("south")
    await expect(bob, "ann: is there bread in the south?")
    await say(bob, "there is, and fish")
    await carries(sea.ferry, 2)
    await sea.sail("south")
    print("the ferry leaves the south with the answer")

    await sea.land("north")
    await expect(ann, "bob: there is, and fish")
    print("ann has her answer, and never was connected with bob")
    await stop_carrier(sea.ferry)
    for islander in (ann, bob):
        islander.stdin.close()
        await islander.stdout.read()
        assert await islander.wait() == 0


def main(folder: Path) -> None:
    new_group("sea").write(folder / "sea.key")
    sea = make_sea(folder)
    print(f"islands and ferry are on: {sea.kind}", flush=True)
    try:
        asyncio.run(travel(folder, sea))
    finally:
        sea.close()


if __name__ == "__main__":
    if len(sys.argv) == 4:
        asyncio.run(be_islander(Path(sys.argv[1]), *sys.argv[2:]))
    elif len(sys.argv) == 2:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as name:
            main(Path(name))
