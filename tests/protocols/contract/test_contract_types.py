"""The contract is a type: mypy accepts every core, and rejects everything else."""

import sys
from pathlib import Path

import pytest
from mypy import api

import beforehand

REPO = Path(__file__).parents[3]

REAL = """\
import random
from typing import Any

from beforehand.check.families.observer import Process
from beforehand.protocols.orders.barrier import Barrier
from beforehand.protocols.contract.base import Core, Linked, Broadcaster
from beforehand.protocols.contract.driver import Driver, Port, BroadcasterDriver
from beforehand.protocols.epidemic.epidemic import Epidemic
from beforehand.protocols.epidemic.frames import Frame
from beforehand.protocols.mobile.ck.frames import Frame as CkFrame
from beforehand.protocols.mobile.ck.host import CkHost
from beforehand.protocols.mobile.ck.station import CkStation
from beforehand.protocols.mobile.was.frames import Frame as MobileFrame
from beforehand.protocols.mobile.was.host import Host
from beforehand.protocols.mobile.was.station import Station
from beforehand.protocols.mobile.tcp_flooding.flooding import TcpHost, TcpStation
from beforehand.protocols.mobile.tcp_flooding.frames import Frame as TcpFrame
from beforehand.protocols.observer.observer import Observer, Stamped
from beforehand.protocols.vcube.frames import VCubeFrame
from beforehand.protocols.observer.timestamp import Guarantees
from beforehand.protocols.orders.unordered import Unordered
from beforehand.protocols.vcube.node import VCube
from beforehand.protocols.orders.vector import Vector

epidemics: list[Broadcaster[Frame]] = [
    Epidemic(0, order, random.Random(0)) for order in (Barrier(0), Vector(0), Unordered(0))
]
cube: Broadcaster[VCubeFrame] = VCube(0, 4, keep_us=1, durable=True)
process: Broadcaster[Stamped] = Process(0, Guarantees(1, 1, 1))
observer: Core[Stamped] = Observer(0, Guarantees(1, 1, 1))
linked: Linked[VCubeFrame] = cube
host: Broadcaster[MobileFrame] = Host(0)
station: Core[MobileFrame] = Station(0, ())
ck_host: Broadcaster[CkFrame] = CkHost(0)
ck_station: Core[CkFrame] = CkStation(0, ())
tcp_host: Broadcaster[TcpFrame] = TcpHost(0)
tcp_station: Core[TcpFrame] = TcpStation(0, ())


def drive(port: Port[Any]) -> None:
    BroadcasterDriver(lambda: VCube(0, 4), port)
    BroadcasterDriver(lambda: Epidemic(0, Barrier(0), random.Random(0)), port)
    Driver(lambda: Observer(0, Guarantees(1, 1, 1)), port)
"""

CORE = """\
from beforehand.protocols.contract.base import (
    Core, Counters, MessageStatus, MessageId, NodeId, Broadcaster, Timer,
)
from beforehand.protocols.contract.needs import Needs
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.contract.tables import Rows, Table


class Mine:
    node: NodeId = "a"
    counters = Counters()
    needs = Needs({})
    tables: tuple[Table, ...] = ()

    def on_message(self, now_us: int, source: NodeId, frame: str, out: Outbox[str]) -> None: ...

    def on_timer(self, now_us: int, timer: Timer, out: Outbox[str]) -> None: ...

    def on_link(self, now_us: int, peer: NodeId, up: bool, out: Outbox[str]) -> None: ...

    def on_broadcast(
        self, now_us: int, payload: bytes, out: Outbox[str], lifetime_us: int | None = None
    ) -> MessageId:
        return ("a", 1)

    def restore(self, now_us: int, rows: Rows, out: Outbox[str]) -> None: ...

    def explain(self, message: MessageId) -> MessageStatus:
        return MessageStatus("unknown")

    def gauges(self, now_us: int) -> dict[str, int]:
        return {}


speaker: Broadcaster[str] = Mine()
"""
TIMER = "def on_timer(self, now_us: int, timer: Timer,"

WRONG = {
    "without_timers": (
        f"    {TIMER} out: Outbox[str]) -> None: ...\n",
        "",
        ['"Mine" is missing following "Broadcaster" protocol member:', "on_timer"],
    ),
    "broadcast_without_an_id": (
        ') -> MessageId:\n        return ("a", 1)',
        ") -> None: ...",
        ["def on_broadcast", "-> None"],
    ),
    "timer_by_name": (
        TIMER,
        "def on_timer(self, now_us: int, timer: str,",
        ["def on_timer", "timer: str"],
    ),
    "without_needs": (
        "    needs = Needs({})\n",
        "",
        ['"Mine" is missing following "Broadcaster" protocol member:', "needs"],
    ),
    "without_restore": (
        "    def restore(self, now_us: int, rows: Rows, out: Outbox[str]) -> None: ...\n",
        "",
        ['"Mine" is missing following "Broadcaster" protocol member:', "restore"],
    ),
    "other_frames": (
        "speaker: Broadcaster[str]",
        "speaker: Broadcaster[bytes]",
        ["in assignment", "Outbox[str]"],
    ),
    "counts_that_are_no_ints": (
        "-> dict[str, int]:\n        return {}",
        "-> dict[str, str]:\n        return {}",
        ["def gauges", "-> dict[str, str]"],
    ),
    "times_that_are_floats": (
        "self, now_us: int, peer: NodeId, up: bool",
        "self, now_us: str, peer: NodeId, up: bool",
        ["def on_link", "now_us: str"],
    ),
    "nobody_to_broadcast_through": (
        "speaker: Broadcaster[str] = Mine()",
        "from beforehand.protocols.observer.observer import Observer, Stamped\n"
        "from beforehand.protocols.observer.timestamp import Guarantees\n\n"
        "speaker: Broadcaster[Stamped] = Observer(0, Guarantees(1, 1, 1))",
        ['"Observer" is missing following "Broadcaster" protocol members:', "on_broadcast"],
    ),
}


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """Return the output of mypy for each snippet, from one run: it takes seconds."""
    folder = tmp_path_factory.mktemp("snippets")
    sources = {"real": REAL, "mine": CORE}
    for name, (before, after, _) in WRONG.items():
        assert CORE.count(before) == 1, f"the text to change must stand exactly once: {before}"
        sources[name] = CORE.replace(before, after)
    for name, source in sources.items():
        (folder / f"snippet_{name}.py").write_text(source)
    with pytest.MonkeyPatch.context() as patch:  # the package that is tested, wherever it is
        patch.setenv("MYPYPATH", str(Path(beforehand.__file__).parents[1]))
        out, err, _ = api.run(
            [
                *("--config-file", str(REPO / "pyproject.toml")),
                *("--cache-dir", str(REPO / ".mypy_cache")),
                *("--python-executable", sys.executable),
                *("--no-error-summary", "--hide-error-context", "--no-pretty"),
                *(str(path) for path in sorted(folder.iterdir())),
            ]
        )
    assert not err
    return {
        name: [line for line in out.splitlines() if f"snippet_{name}.py:" in line]
        for name in sources
    }


@pytest.mark.parametrize("name", ["real", "mine"])
def test_every_core_is_taken_for_what_it_is(said, name):
    assert said[name] == []


@pytest.mark.parametrize("name", WRONG)
def test_a_core_that_breaks_the_contract_is_refused(said, name):
    told = "\n".join(said[name])
    for part in WRONG[name][2]:
        assert part in told


@pytest.mark.parametrize("name", WRONG)
def test_it_is_refused_for_one_reason(said, name):
    assert sum(": error:" in line for line in said[name]) == 1
