"""Groups in processes of their own: a small installation, and processes that are killed."""

from __future__ import annotations

import random
import textwrap
import time

import pytest

from beforehand.runtime.crypto.keys import new_group
from tests.conftest import REPO
from tests.runtime.fixtures.namespaces import Segments, why_not
from tests.runtime.fixtures.processes import Process, fresh_environment
from tests.waiting import SECONDS_MAX

FIVE_LINES = """
import asyncio, sys
import beforehand

async def main(name, *peers):
    async with beforehand.Group("harbour", name=name, store=f"{name}.db", key="harbour.key",
                                lifetime="20m", listen="127.0.0.1:0", peers=peers,
                                discover=False) as group:
        print("at", group.addresses[0])
        await group.broadcast(b"fog at pier 4")
        async for message in group:
            print(message.origin, "says", message.payload.decode())

asyncio.run(main(*sys.argv[1:]))
"""

MEMBER = """
import asyncio, sys
from pathlib import Path
import beforehand
from beforehand.runtime.transport.limits import Limits

async def main(name, other, life, inbox):
    port = {"ann": PORTS[0], "bob": PORTS[1]}
    async with beforehand.Group(
            "harbour", name=name, store=f"{name}.db", key="harbour.key", lifetime="20m",
            listen=f"127.0.0.1:{port[name]}", peers=[f"127.0.0.1:{port[other]}"], discover=False,
            durable="os", inbox=inbox == "inbox",
            limits=Limits(backoff_max_seconds=0.3)) as group:
        print("up")
        await asyncio.gather(speak(group, life), read(group))

async def speak(group, life):
    with open(f"{group.name}.said", "a") as said:
        for index in range(100_000):
            text = f"{group.name}-{life}-{index}"
            await group.broadcast(text.encode())
            print(text, file=said, flush=True)
            await asyncio.sleep(0.002)
            if Path("end").exists():
                await group.broadcast(f"{group.name}-end".encode())
                return

async def read(group):
    with open(f"{group.name}.read", "a") as seen:
        async for message in group:
            print(message.payload.decode(), file=seen, flush=True)
            message.ack()

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture
def harbour(tmp_path):
    new_group("harbour").write(tmp_path / "harbour.key")
    return tmp_path


def five_lines_of_the_readme():
    block = (REPO / "README.md").read_text().split("```python\n")[1].split("```")[0]
    assert block.startswith("async with beforehand.Group(")
    body = textwrap.indent(block, "    ")
    return f"import asyncio, beforehand\nasync def main():\n{body}\nasyncio.run(main())\n"


@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_the_five_lines_as_they_stand_work_in_two_terminals_of_a_machine_without_a_network(harbour):
    python = fresh_environment(harbour)
    for name in ("ann", "bob"):
        text = five_lines_of_the_readme()
        (harbour / f"{name}.py").write_text(text.replace("ann", name))
    with Segments() as machines:
        machines.add("desk")
        options = {"folder": harbour, "python": python, "before": machines.command("desk")}
        with Process("ann.py", **options) as ann, Process("bob.py", **options) as bob:
            assert ann.wait_for("bob") == "bob b'fog at pier 4'\n"
            assert bob.wait_for("ann") == "ann b'fog at pier 4'\n"


def test_the_five_lines_work_in_two_processes_of_a_fresh_virtual_environment(harbour):
    python = fresh_environment(harbour)
    script = harbour / "five.py"
    script.write_text(FIVE_LINES)
    with Process(script, "ann", folder=harbour, python=python) as ann:
        address = ann.wait_for("at ").split()[1]
        with Process(script, "bob", address, folder=harbour, python=python) as bob:
            assert bob.wait_for("says") == "ann says fog at pier 4\n"
            assert ann.wait_for("says") == "bob says fog at pier 4\n"
    for other in ("numpy", "pyspark"):
        with Process("-c", f"import {other}", folder=harbour, python=python) as process:
            assert process.process.wait(SECONDS_MAX) == 1
    command = "import sys; from beforehand.cli import main; sys.argv[0] = 'beforehand'; main()"
    for name in ("group", "chat", "node", "station", "host"):
        with Process("-c", command, name, "--help", folder=harbour, python=python) as process:
            assert process.process.wait(SECONDS_MAX) == 0, process.text()


def lines(path):
    """Return the complete lines: the end of the process may have cut off the last one."""
    text = path.read_text() if path.exists() else ""
    return text.split("\n")[:-1]


def wait_for_lines(path, count=0, last=""):
    end = time.monotonic() + SECONDS_MAX
    while len(found := lines(path)) < count or (last and last not in found):
        assert time.monotonic() < end, f"only {len(found)} lines in {path.name}"
        time.sleep(0.02)


@pytest.mark.parametrize("mode", ["at most once", "inbox"])
def test_processes_that_are_killed_while_messages_flow(harbour, mode, free_ports):
    draw = random.Random(mode)
    script = harbour / "member.py"
    script.write_text(MEMBER.replace("PORTS", repr(free_ports)))

    def start(name, life):
        other = "bob" if name == "ann" else "ann"
        process = Process(script, name, other, life, mode, folder=harbour)
        process.wait_for("up")
        return process

    processes = {name: start(name, 0) for name in ("ann", "bob")}
    for life in range(1, 4):
        name = "bob" if life % 2 else "ann"
        read = harbour / f"{name}.read"
        wait_for_lines(read, len(lines(read)) + draw.randrange(5, 60))
        processes[name].kill()
        processes[name].__exit__()
        processes[name] = start(name, life)
    (harbour / "end").touch()
    for name, other in (("ann", "bob"), ("bob", "ann")):
        wait_for_lines(harbour / f"{name}.read", last=f"{other}-end")
        judge(lines(harbour / f"{other}.said"), lines(harbour / f"{name}.read"), mode)
    for process in processes.values():
        process.stop()
        process.__exit__()


def judge(said, read, mode):
    first = list(dict.fromkeys(read))
    if mode == "inbox":
        assert not set(said) - set(read), "missed"
    else:
        assert first == read, "twice"
        assert len(set(said) - set(read)) < len(said) // 2
    order = [(int(life), int(index)) for _, life, index in (t.split("-") for t in first[:-1])]
    assert order == sorted(order), "out of order"
