"""A new order by the steps of CONTRIBUTING.md: one file and one registry entry."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
STEPS = ("src/beforehand/protocols/orders/NAME.py", "src/beforehand/protocols/registry.py")

# Messages of one origin in their order, and nothing between origins.
ORDER = '''
from beforehand.protocols.contract.base import Message, MessageStatus, NodeId
from beforehand.protocols.contract.tables import Table
from beforehand.protocols.orders.order import LONG_AGO, Order


class Fifo(Order):
    """Delivers the messages of one origin in the order in which it broadcast them."""

    tables = (Table("delivered", NodeId, int),)

    def __init__(self, node):
        super().__init__(node)
        self._delivered = {}
        self._held = {}

    def on_broadcasts(self, now_us, broadcasts, out):
        self._chosen_us(broadcasts)
        first = self._delivered.get(self.node, 0) + 1
        made = [
            Message((self.node, seq), (), payload)
            for seq, (payload, _) in enumerate(broadcasts, first)
        ]
        messages = self._proven(made)
        self._last_seq = messages[-1].seq
        for message in messages:
            self._deliver(message, out)
        return messages

    def on_receive(self, now_us, messages, out):
        for message in messages:
            if self.has_delivered(message.id) or message.id in self._held:
                self.counters.duplicate += 1
                continue
            self._held[message.id] = (message, now_us)
            while held := self._held.pop(self._next(message.id[0]), None):
                self._deliver(held[0], out)

    def on_evict(self, now_us, ids, out):
        for id in ids:
            if self._held.pop(id, None):
                self.counters.dropped += 1
                out.losses.append(("drop", id))

    def on_timer(self, now_us, out):
        """Do nothing: this order sets no timer."""

    def has_delivered(self, message):
        return self._delivered.get(message[0], 0) >= message[1]

    def entry_of(self, origin):
        return self._delivered.get(origin, LONG_AGO)

    def restore(self, rows):
        self._delivered = dict(rows.get("delivered", {}))
        self._last_seq = self._delivered.get(self.node, 0)

    def explain(self, message):
        if message in self._held:
            return MessageStatus("waiting", (self._next(message[0]),), self._held[message][1])
        return MessageStatus("delivered" if self.has_delivered(message) else "unknown")

    def pending(self):
        return tuple(self._held)

    def gauges(self, now_us):
        return {"delivered": len(self._delivered), "pending": len(self._held)}

    def _next(self, origin):
        return origin, self._delivered.get(origin, 0) + 1

    def _deliver(self, message, out):
        self._delivered[message.id[0]] = message.id[1]
        out.deliveries.append(message)
        self.counters.delivered += 1
        if self.durable:
            out.saves.append(("delivered", *message.id))
'''
IMPORT = "from beforehand.protocols.orders.order import"
ENTRY = """    "fifo": Protocol(
        *("messages of one origin in order", "a test", "contacts"),
        written="probable",
        make=Fifo,
    ),
"""
REGISTERED = "PROTOCOLS: dict[str, Protocol] = {\n"


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The package as it is, and what the steps add to it: a file, an import and an entry."""
    source = tmp_path_factory.mktemp("package") / "src"
    # Bytecode and machine code go along: each process would compile the package otherwise.
    shutil.copytree(REPO / "src", source, ignore=shutil.ignore_patterns("*.egg-info"))
    protocols = source / "beforehand" / "protocols"
    (protocols / "orders" / "fifo.py").write_text(ORDER)
    registry = protocols / "registry.py"
    text = registry.read_text()
    assert text.count(IMPORT) == text.count(REGISTERED) == 1
    text = text.replace(IMPORT, f"from beforehand.protocols.orders.fifo import Fifo\n{IMPORT}")
    registry.write_text(text.replace(REGISTERED, REGISTERED + ENTRY))
    return source


@pytest.fixture(scope="module")
def beforehand(package):
    """The command with the new order in it."""

    def call(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "beforehand.cli", *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": str(package)},
            capture_output=True,
            text=True,
            timeout=300,
        )

    return call


def test_steps_of_contributing_are_the_ones_that_are_followed_here():
    told = (REPO / "CONTRIBUTING.md").read_text()
    assert all(f"`{step}`" in told for step in STEPS)
    assert "tests/protocols/test_new_order.py" in told


def test_new_order_is_simulated_and_its_log_is_judged_by_its_promise(beforehand, tmp_path):
    log = tmp_path / "fifo.parquet"
    run = ("simulate", "--example", "--protocol", "fifo", "--period", "40m", "--events", log)
    done = beforehand(*run, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["protocol"] == "fifo"
    assert told["deliveries"] > 0
    assert told["violations"]["late"] > 0
    assert told["violations"]["twice"] == told["violations"]["unknown"] == 0

    judged = beforehand("verify", log, "--json")
    assert judged.returncode == 0, judged.stderr
    (found,) = json.loads(judged.stdout)["runs"]
    assert (found["verdict"], found["promise"]) == ("valid", "probable")
    assert beforehand("verify", log, "--promise", "causal").returncode == 1


def test_new_order_is_fuzzed_like_the_others(beforehand):
    done = beforehand("fuzz", "--protocol", "fifo", "--seeds", "60", "--workers", "1", "--json")
    assert done.returncode == 0, done.stderr + done.stdout
    told = json.loads(done.stdout)
    assert told["failures"] == []
    assert told["protocols"] == ["fifo"]


def test_fuzzer_finds_a_new_order_that_forgets_what_it_delivered(beforehand, package):
    path = package / "beforehand" / "protocols" / "orders" / "fifo.py"
    guard = "if self.has_delivered(message.id) or message.id in self._held:"
    assert ORDER.count(guard) == 1
    next_one = "self._held.pop(self._next(message.id[0]), None)"
    broken = ORDER.replace(guard, "if message.id in self._held:")
    path.write_text(broken.replace(next_one, "self._held.pop(message.id, None)"))
    try:
        done = beforehand("fuzz", "--protocol", "fifo", "--seeds", "60", "--workers", "1")
    finally:
        path.write_text(ORDER)
    assert done.returncode == 1, done.stderr + done.stdout


def test_scenario_may_name_the_new_order_and_a_misspelt_one_is_refused(beforehand, tmp_path):
    scenario = tmp_path / "orders.toml"
    for name, code in (("fifo", 0), ("fifoo", 2)):
        scenario.write_text(
            f'[scenario]\ntitle = "Orders"\n[mobility]\nkind = "crowd"\n'
            f'[[protocols]]\nname = "{name}"\n'
        )
        done = beforehand("run", scenario, "--dry-run", "--out", tmp_path / "out")
        assert ("no such choice" in done.stderr) == (code == 2), done.stderr
    assert "`fifo`" in done.stderr
