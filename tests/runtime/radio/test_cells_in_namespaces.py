"""Three stations and four hosts as processes, each in a network namespace of its own, on segments
that this test makes; on loopback, where that is not permitted, `test_cells.py` shows the same but
for the cable."""

from __future__ import annotations

import time
from contextlib import ExitStack

import pytest
from tests.runtime.fixtures.namespaces import Segments, why_not
from tests.runtime.fixtures.processes import Process
from tests.waiting import SECONDS_MAX

from beforehand.runtime.crypto.keys import new_group
from beforehand.verify.verdict import verify_events

STATIONS = ("north", "mid", "south")
HOSTS = {"ann": "north", "bob": "mid", "cid": "south", "dee": "north"}
CELL = "239.77.0.1:7700"
"""The same everywhere: a cell is where a cable leads."""

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "permitted")


def write_config(folder):
    new_group("port").write(folder / "port.key")
    lines = ['group = "port"']
    for at, name in enumerate(STATIONS, 1):
        lines += [
            "[[station]]",
            f'name = "{name}"',
            f'address = "10.78.0.{at}:7001"',
            f'cell = "{CELL}"',
            f'interface = "10.77.0.{at}"',
            f"wires = {['mid'] if name != 'mid' else []}",
        ]
    (folder / "port.toml").write_text("\n".join(lines))


class Town:
    """The segments and their nodes."""

    def __init__(self, folder, stack: ExitStack) -> None:
        self.folder, self.stack = folder, stack
        self.segments = stack.enter_context(Segments("back", *STATIONS))
        self.hosts: dict[str, Process] = {}
        self.outputs: dict[str, list] = {name: [] for name in HOSTS}
        self.spoken = 0
        write_config(folder)
        for at, name in enumerate(STATIONS, 1):
            self.segments.add(name)
            self.segments.plug(name, "back", "back", f"10.78.0.{at}/24")
            self.segments.plug(name, "cell", name, f"10.77.0.{at}/16")
            self._start("station", name, "--every", "1h")
        for at, (name, cell) in enumerate(HOSTS.items(), 1):
            self.segments.add(name)
            self.segments.plug(name, "cell", cell, f"10.77.1.{at}/16")
            self.start_host(name)

    def start_host(self, name: str) -> None:
        at = [*HOSTS].index(name) + 1
        options = ("--at", HOSTS[name], "--interface", f"10.77.1.{at}", "--log", "logs")
        process = self._start("host", name, *options, "--durable", "os")
        self.hosts[name] = process
        self.outputs[name].append(process)

    def say(self, name: str) -> None:
        self.spoken += 1
        self.hosts[name].type(f"number {self.spoken}")

    def heard(self, name: str) -> int:
        texts = [process.text() for process in self.outputs[name]]
        return sum(": number " in line for text in texts for line in text.splitlines())

    def wait_for_all(self, own: dict[str, int]) -> None:
        """Wait until every host has printed all messages of the others."""
        end = time.monotonic() + SECONDS_MAX
        while any(self.heard(name) < self.spoken - own[name] for name in HOSTS):
            shown = {name: (self.heard(name), self.spoken - own[name]) for name in HOSTS}
            assert time.monotonic() < end, f"{shown}\n{self.hosts['dee'].text()[-2000:]}"
            time.sleep(0.05)

    def _start(self, command: str, name: str, *options: object) -> Process:
        words = ("-m", "beforehand.cli", command, "port.toml", "--name", name, "--key", "port.key")
        before = self.segments.command(name)
        process = Process(*words, *options, folder=self.folder, before=before)
        return self.stack.enter_context(process)


def test_deliveries_are_causal_and_unique_while_one_host_moves_and_one_is_killed(tmp_path):
    with ExitStack() as stack:
        town = Town(tmp_path, stack)
        own = dict.fromkeys(HOSTS, 0)

        def say(name: str) -> None:
            own[name] += 1
            town.say(name)

        for name, process in town.hosts.items():
            process.wait_for(f"* in the cell of {HOSTS[name]}", SECONDS_MAX)
        for name in HOSTS:
            say(name)
        town.wait_for_all(own)
        town.segments.move("dee", "cell", "south")
        for turn in range(30):
            say([*HOSTS][turn % 4])
            time.sleep(0.05)
        town.hosts["dee"].wait_for("* in the cell of south", SECONDS_MAX)
        town.wait_for_all(own)
        town.hosts["bob"].kill()
        for name in ("ann", "cid", "dee"):
            say(name)
        town.start_host("bob")
        town.hosts["bob"].wait_for("* in the cell of mid", SECONDS_MAX)
        say("bob")
        town.wait_for_all(own)
        for process in town.hosts.values():
            assert process.stop() == 0, process.text()
    (run,) = verify_events(tmp_path / "logs").runs
    assert (run.state, run.reason) == ("valid", "")
    assert run.broadcasts == town.spoken == 38
    assert run.deliveries == 4 * 38
