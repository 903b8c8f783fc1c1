"""An overlay of four processes, one of which is killed and restarted while the others broadcast.

Each process is one member: it broadcasts the lines of its standard input and prints the messages of
the others. The killed member keeps its store: it continues where it stopped, and gets the messages
it missed.

The event logs need pyarrow: `pip install beforehand[runtime,sim]`.
"""

import asyncio
import os
import socket
import sys
import tempfile
from pathlib import Path

from beforehand import Overlay, new_group

NAMES = ("ann", "bob", "cid", "dee")


def prepare(folder: Path) -> None:
    """Write the key, and the file with the members of the overlay and their addresses."""
    new_group("ring").write(folder / "ring.key")
    lines = ['group = "ring"']
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in NAMES]
    for name, one in zip(NAMES, sockets, strict=True):
        address = f"127.0.0.1:{one.getsockname()[1]}"
        lines += ["[[member]]", f'name = "{name}"', f'address = "{address}"']
        one.close()
    (folder / "ring.toml").write_text("\n".join(lines))


async def be_member(folder: Path, name: str) -> None:
    """Run one member."""
    store, key = folder / f"{name}.db", folder / "ring.key"
    async with Overlay(
        folder / "ring.toml", name=name, store=store, key=key, log=folder / "logs"
    ) as overlay:

        async def listen() -> None:
            async for message in overlay:
                print(f"{message.origin}: {message.payload.decode()}", flush=True)

        listening = asyncio.create_task(listen())
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            await overlay.broadcast(line.strip().encode())
            print(f"said {line.strip()}", flush=True)
        listening.cancel()


async def start(folder: Path, name: str) -> asyncio.subprocess.Process:
    command = (sys.executable, os.path.abspath(__file__), str(folder), name)
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)


async def say(member: asyncio.subprocess.Process, text: str) -> None:
    member.stdin.write(f"{text}\n".encode())
    await expect(member, f"said {text}")


async def expect(member: asyncio.subprocess.Process, *lines: str) -> None:
    """Check that these are the next lines that the member prints."""
    async with asyncio.timeout(120):
        for line in lines:
            heard = (await member.stdout.readline()).decode().strip()
            assert heard == line, f"{heard!r}, not {line!r}"


async def main(folder: Path) -> None:
    prepare(folder)
    ann, bob, cid, dee = [await start(folder, name) for name in NAMES]
    await say(ann, "the ferry is late")
    for member in (bob, cid, dee):
        await expect(member, "ann: the ferry is late")
    print("all have heard of the ferry")

    cid.kill()
    await cid.wait()
    await say(bob, "until when?")
    await expect(ann, "bob: until when?")
    await expect(dee, "bob: until when?")
    await say(dee, "until noon")
    print("cid was killed, and the others talk")

    cid = await start(folder, "cid")
    await expect(cid, "bob: until when?", "dee: until noon")
    await say(cid, "so we walk")
    for member in (ann, bob):
        await expect(member, "dee: until noon", "cid: so we walk")
    await expect(dee, "cid: so we walk")
    print("cid is back, has the question before its answer, and is heard")

    for member in (ann, bob, cid, dee):
        member.stdin.close()
    for member in (ann, bob, cid, dee):
        await member.stdout.read()
        assert await member.wait() == 0


if __name__ == "__main__":
    if len(sys.argv) == 3:
        asyncio.run(be_member(Path(sys.argv[1]), sys.argv[2]))
    elif len(sys.argv) == 2:
        asyncio.run(main(Path(sys.argv[1])))
    else:
        with tempfile.TemporaryDirectory() as name:
            asyncio.run(main(Path(name)))
