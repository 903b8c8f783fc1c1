"""Overlays on loopback for tests."""

from __future__ import annotations

import socket
from contextlib import AsyncExitStack, asynccontextmanager

from beforehand.runtime.crypto.keys import new_group
from beforehand.runtime.overlay import Overlay
from beforehand.runtime.transport.limits import Limits

QUICK = Limits(
    backoff_min_seconds=0.02,
    backoff_max_seconds=0.2,
    heartbeat_seconds=1.0,
    silence_seconds=5.0,
    queue_bytes_max=4 << 20,
)


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def write_members(folder, names, group="ring"):
    """The file of members, and the key."""
    lines = [f'group = "{group}"']
    for name, port in zip(names, free_ports(len(names)), strict=True):
        lines.append(f'[[member]]\nname = "{name}"\naddress = "127.0.0.1:{port}"')
    (folder / "ring.toml").write_text("\n".join(lines))
    if not (folder / "ring.key").exists():
        new_group(group).write(folder / "ring.key")
    return folder / "ring.toml"


def overlay(folder, name, **options):
    options = {"limits": QUICK, "durable": "os", "log": folder / "logs", **options}
    store, key = folder / f"{name}.db", folder / "ring.key"
    return Overlay(folder / "ring.toml", name=name, store=store, key=key, **options)


@asynccontextmanager
async def opened(folder, names, **options):
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(overlay(folder, n, **options)) for n in names]
