"""An input that raises LocalError or RemoteError leaves a core as it was, in every family.

A seed of the fuzzer brings the cores of a net into some state. A copy of each core is then given an
input that fails: a broadcast whose signer raises, or a frame that the core refuses.
"""

from __future__ import annotations

import pickle
import random
from typing import Any

import pytest

from beforehand.check.families import FAMILIES
from beforehand.check.fuzz import draw_frames
from beforehand.check.fuzz.draw_frames import draw_frame
from beforehand.check.fuzz.fuzz import play
from beforehand.check.net.case import honest
from beforehand.errors import LocalError, RemoteError
from beforehand.protocols.codecs import MOBILE, OBSERVER, VCUBE
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.contract.proof import Proofs
from beforehand.protocols.contract.tables import Store
from beforehand.protocols.mobile.was.frames import Join, Place, Request1
from beforehand.protocols.mobile.was.station import Station
from beforehand.protocols.vcube.frames import Packet, VCubeMessage
from beforehand.protocols.vcube.node import VCube

SEEDS = 40
FRAMES = 12
CODECS = {"detector": VCUBE, "feed": OBSERVER, "cell": MOBILE}
SIGNING = [name for name in FAMILIES if name not in ("observer", "ck", "tcp_flooding")]
FRAMED = ("vcube", "observer", "was", "was_flood")
"""Epidemic forwarding refuses frames of other codecs only. CK and TCP flooding are baselines of
simulations: their frames never come from a socket."""


class Signer:
    """Signs with a constant; raises the given number of times."""

    def __init__(self, failures: int) -> None:
        self.failures = failures

    def __call__(self, data: bytes) -> bytes:
        if self.failures:
            self.failures -= 1
            raise LocalError("the key cannot be read")
        return b"signature"


def accept(*_: Any) -> bool:
    return True


def copied(core: Any, failures: int = 0) -> Any:
    """Return a copy of the core with a signer that fails so many times."""
    other = pickle.loads(pickle.dumps(core))
    proofs = Proofs("group", Signer(failures), accept)
    if hasattr(other, "order"):
        other.order.proofs = proofs
    else:
        other._proofs = proofs
    return other


def states(name: str) -> Any:
    """The cores of many nets with the time on their clocks, and the seed."""
    for seed in range(SEEDS):
        net, _ = play(seed, FAMILIES[name])
        for node, driver in enumerate(net.drivers):
            if driver.is_up and node in honest(net):
                yield driver.core, net.local_us(node), seed


def broadcast(core: Any, now_us: int, failures: int = 0) -> tuple[bytes, dict[str, dict[Any, Any]]]:
    """Return the core after a broadcast whose first attempts fail, and its saved rows."""
    out: Outbox[Any] = Outbox()
    for _ in range(failures):
        with pytest.raises(LocalError, match="cannot be read"):
            core.on_broadcast(now_us, b"x", out)
    core.on_broadcast(now_us, b"x", out)
    store = Store()
    store.save(out.saves)
    return pickle.dumps(core), store.load(core.tables)


def may_broadcast(core: Any) -> bool:
    return hasattr(core, "on_broadcast") and getattr(core, "state", "") not in ("leaving", "gone")


@pytest.mark.parametrize("name", SIGNING)
def test_a_broadcast_after_a_signer_failed_is_the_one_that_would_have_been(name):
    count = 0
    for core, now_us, seed in states(name):
        if may_broadcast(core):
            twin, failing = copied(core), copied(core, failures=1)
            assert broadcast(failing, now_us, failures=1) == broadcast(twin, now_us), f"seed {seed}"
            count += 1
    assert count > SEEDS


@pytest.mark.parametrize("name", [name for name in SIGNING if "delta" not in name])
def test_a_signer_that_fails_changes_nothing(name):
    """With lifetimes, time alone makes messages expire: the test above covers these orders."""
    for core, now_us, seed in states(name):
        if may_broadcast(core) and not getattr(getattr(core, "order", None), "expires", False):
            failing, out = copied(core, failures=1), Outbox()
            with pytest.raises(LocalError, match="cannot be read"):
                failing.on_broadcast(now_us + 5, b"x", out)
            assert pickle.dumps(failing) == pickle.dumps(copied(core)), f"seed {seed}"
            assert out == Outbox()


@pytest.mark.parametrize("name", FRAMED)
def test_a_frame_that_is_refused_changes_nothing_but_the_count(name, monkeypatch):
    monkeypatch.setattr(draw_frames, "NUMBERS", (0, 1, 2, 3, 4, 7))
    kinds = CODECS[FAMILIES[name].kind].kinds
    refused = 0
    for core, now_us, seed in states(name):
        rng = random.Random(seed)
        for _ in range(FRAMES):
            before = without_refusals(core)
            other, out = pickle.loads(before), Outbox()
            try:
                frame = draw_frame(rng, rng.choice(kinds))
            except ValueError:  # causes out of order: no codec lets that pass
                continue
            try:
                other.on_message(now_us + 5, rng.choice((0, 1, 2, 9, "a")), frame, out)
            except RemoteError:
                refused += 1
                assert without_refusals(other) == before, f"seed {seed}: {frame}"
                assert out == Outbox()
    assert refused


def without_refusals(core: Any) -> bytes:
    other = pickle.loads(pickle.dumps(core))
    if isinstance(other, VCube):
        other.refused = 0
    elif hasattr(other, "counters"):
        other.counters.refused = 0
    return pickle.dumps(other)


# ---- what was found -----------------------------------------------------------------------------


def test_a_message_after_a_signer_failed_named_no_causes_and_overtook_them():
    """Node 3 delivers (0, 1), fails to sign once, then broadcasts. Node 1 gets the broadcast before
    its cause."""
    core, out = VCube(3, 4, proofs=Proofs("group", Signer(1), accept)), Outbox()
    cause = VCubeMessage((0, 1), (), b"cause", b"signature")
    core.on_message(0, 0, Packet(0, (cause,)), out)
    with pytest.raises(LocalError, match="cannot be read"):
        core.on_broadcast(1, b"effect", out)
    out.clear()
    core.on_broadcast(2, b"effect", out)
    effect = out.deliveries[0]
    assert effect.past == ((0, 1),)
    peer, heard = VCube(1, 4), Outbox()
    peer.on_message(3, 3, Packet(0, (effect,)), heard)
    assert heard.deliveries == []
    peer.on_message(4, 0, Packet(0, (cause,)), heard)
    assert heard.deliveries == [cause, effect]


def test_a_request_of_a_station_outside_of_the_tree_is_refused_before_it_ends_a_registration():
    """The answer could not be routed; but the host's registration was gone by then."""
    core, out = Station(1, ((0, 1), (1, 2))), Outbox()
    core.on_message(0, 7, Join(1, 7, 1, ()), out)
    before = without_refusals(core)
    with pytest.raises(RemoteError, match="no such station: 9"):
        core.on_message(1, 0, Request1(9, 1, 7, 5, Place(3)), out)
    assert without_refusals(core) == before
