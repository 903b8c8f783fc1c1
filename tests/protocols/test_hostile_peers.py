"""A core accepts every frame of a hostile peer or raises RemoteError, and continues.

Every family of the registry gets frames of other runs, whole and damaged. Of the families that
sockets carry, one core each gets long conversations with peers that draw frames to hurt it.
"""

from __future__ import annotations

import random
from contextlib import suppress
from operator import le

import msgspec
import pytest
from tests.protocols.conformance.stage import copied, give, is_idle, played, watched
from tests.protocols.conformance.subjects import subjects

from beforehand.check.fuzz import draw_frames
from beforehand.check.fuzz.codec import damage_value
from beforehand.check.fuzz.draw_frames import draw_frame
from beforehand.errors import LocalError, RemoteError
from beforehand.protocols.codecs import CODECS, MOBILE, OBSERVER, OPPORTUNISTIC, VCUBE
from beforehand.protocols.contract.base import EVERYBODY, Message
from beforehand.protocols.contract.driver import BroadcasterDriver, Driver
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.contract.proof import Proofs
from beforehand.protocols.contract.tables import Store
from beforehand.protocols.epidemic.epidemic import Epidemic
from beforehand.protocols.epidemic.frames import (
    Announce,
    Data,
    Digest,
    Push,
    Request,
    SyncHello,
    Want,
)
from beforehand.protocols.epidemic.options import Options
from beforehand.protocols.mobile.pace import Pace
from beforehand.protocols.mobile.was.frames import Downlink, Join, Place, Request1, Request2, Uplink
from beforehand.protocols.mobile.was.host import Host
from beforehand.protocols.mobile.was.station import Station
from beforehand.protocols.observer.observer import PERFECT, Observer, Stamped, cbd, dapw
from beforehand.protocols.observer.timestamp import Guarantees, Stamp
from beforehand.protocols.orders.barrier import Barrier
from beforehand.protocols.orders.order import Lifetimes
from beforehand.protocols.orders.unordered import Unordered
from beforehand.protocols.orders.vector import Vector
from beforehand.protocols.vcube.frames import Answer, Ask, Known, Packet, VCubeMessage
from beforehand.protocols.vcube.node import VCube

SEEDS = 400
STEPS = 60
KEEP_US = 100
LARGE = (1 << 62) - 1


WITHOUT_CODEC = ("ck", "tcp_flooding")
"""Baselines of simulations: no socket carries their frames, so no stranger can send them one."""
RUNS = 12


@subjects(only=lambda subject: subject.family.name not in WITHOUT_CODEC)
def test_frames_of_another_run_do_not_break_a_core(subject):
    for seed in range(RUNS):
        rng = random.Random(seed)
        strange = frames_of(subject, seed + RUNS)
        for stage in played(subject, seed):
            node, core = rng.choice(watched(stage))
            source = rng.choice((*range(stage.case.nodes), 99, "a"))
            say(rng, core, stage.local_us(node), source, rng.choice(strange))


def frames_of(subject, seed):
    """Return the frames that the nodes of a run sent."""
    found = {}
    for stage in played(subject, seed):
        found |= {flight: frame for flight, (frame, _) in stage.flights.items()}
    return [*found.values()] or frames_of(subject, seed + 1)


def say(rng, core, now_us, source, frame):
    """Give a copy of the core a frame, perhaps damaged; the run itself continues unchanged."""
    codec = next(codec for codec in CODECS if type(frame) in codec.kinds)
    if rng.random() < 0.7:
        data = codec.encode(frame)  # a byte for the family, then MessagePack
        damaged = damage_value(rng, msgspec.msgpack.decode(data[1:]))
        with suppress(RemoteError):
            frame = codec.decode(data[:1] + msgspec.msgpack.encode(damaged))
    other, out = copied(core), Outbox()
    try:
        other.on_message(now_us, source, frame, out)
    except RemoteError:
        assert is_idle(out)
    for _, answer in out.sends:
        codec.encode(answer)
    for timer, _ in out.timers:
        give(other, "on_timer", now_us, timer)
    other.gauges(now_us)


class Port:
    """Checks that every frame of a core can be encoded, whatever its peers send."""

    def __init__(self, codec):
        self.codec, self.alarms = codec, []

    def send(self, node, sends):
        for _, frame in sends:
            self.codec.encode(frame)

    def wake(self, node, timer, due_us, ticket):
        self.alarms.append((timer, ticket))

    def _ignore(self, *_): ...

    deliver = broadcasted = received = lost = _ignore


class Contacts:
    codec, peers = OPPORTUNISTIC, (1, 2, "a")

    def __init__(self, rng):
        lifetimes = rng.choice((None, Lifetimes(100, 200, 50)))
        make = rng.choice(
            (lambda: Barrier(0, lifetimes), lambda: Unordered(0, lifetimes), lambda: Vector(0))
        )
        retry_us = rng.choice((None, 20))
        options = Options(
            announce_us=rng.choice((0, 30)),
            retry_us=retry_us,
            push=retry_us is None and rng.random() < 0.5,
            digest_after=rng.choice((None, 0, 2)) if retry_us is None else None,
            capacity=rng.choice((None, 2, 5)),
            capacity_bytes=rng.choice((None, 3)),
            eviction=rng.choice(("oldest", "random")),
            frame_bytes_max=rng.choice((1, 100, 16_384)),
        )
        self.make = lambda: Epidemic(0, make(), random.Random(1), options, durable=True)
        self.links = set()

    def ids(self, rng, most):
        numbers = (1, 2, 3, 900, 1_100, 1_150, 1_200, -1, LARGE)
        drawn = range(rng.randrange(most))
        return {(rng.choice((0, 1, 2, "a")), rng.choice(numbers)): None for _ in drawn}

    def draw(self, rng):
        ids = frozenset(self.ids(rng, 5))
        said = tuple(Message(id, (*self.ids(rng, 3),), bytes(id[1] % 3)) for id in self.ids(rng, 4))
        number = rng.randrange(4)
        told = Announce(number, ids), Digest(ids), Want(ids), SyncHello(ids)
        return rng.choice((*told, Request(number, ids), Data(said, ids), Push(said)))

    def trouble(self, rng, driver, now_us):
        peer = rng.choice(self.peers)
        driver.on_link(now_us, peer, peer not in self.links)
        self.links ^= {peer}

    def restarted(self):
        self.links.clear()

    def look_at(self, core):
        asked = {(id, peer) for peer, link in core._links.items() for id in link.requested}
        assert asked == set(core._requested_from.items())
        assert set(core.order.pending()) <= core._cache.entries.keys()


class Cube:
    codec, peers = VCUBE, (1, 2, 3, 0, 9, "a")

    def __init__(self, rng):
        options = {"root": rng.choice((None, None, 0, 1)), "aggregates": rng.random() < 0.7}
        if rng.random() < 0.5:  # with proofs, a node believes other things
            options["proofs"] = Proofs("ring", lambda _: b"signed", lambda *_: True)
        self.make = lambda: VCube(0, 4, keep_us=KEEP_US, durable=True, mtu_bytes=40, **options)

    def draw(self, rng):
        clock = tuple(rng.choice((0, 0, 1, 2, 3)) for _ in range(4))
        kind = rng.randrange(8)
        if kind < 5:
            messages = tuple(self.message(rng) for _ in range(rng.randrange(4)))
            return Packet(rng.randrange(4), messages)
        return (Ask(clock), Answer(clock), Known(rng.choice((1, 2, LARGE))))[kind - 5]

    def message(self, rng):
        origin = rng.randrange(4)
        causes = sorted(rng.sample(range(4), rng.randrange(4)))
        past = tuple((cause, rng.choice((1, 2))) for cause in causes if cause != origin)
        id = origin, rng.choice((1, 1, 2, 3))
        return VCubeMessage(id, past, bytes(rng.randrange(2)), b"signed")

    def trouble(self, rng, driver, now_us):
        driver.on_link(now_us, rng.choice((1, 2, 3)), rng.random() < 0.5)

    def restarted(self): ...

    def look_at(self, core):
        dated = [id for _, id in core._state.ages]
        assert len(dated) == len(set(dated))
        assert core._kept.keys() == {*dated, *core._pending}
        if core._proofs is not None:  # of all that is gone, there is proof
            shown = [core._latest_of(origin) for origin in range(4)]
            seqs = [0 if message is None else message.seq for message in shown]
            assert seqs == core._state.proven
            assert all(map(le, core._state.gone, seqs))


class Eye:
    codec, peers = OBSERVER, (1, "a")

    def __init__(self, rng):
        guarantees = Guarantees(3, rng.choice((0, 1, 5)), rng.choice((1, 5)))
        dial = rng.choice((PERFECT, cbd(50), dapw(30)))
        self.make = lambda: Observer("eye", guarantees, dial, tick_us=3, durable=True)

    def draw(self, rng):
        message = Message((rng.choice((1, 2, "a")), rng.randrange(9)), (), b"")
        r = rng.choice((LARGE, -LARGE, *range(330, 400)))
        kn = tuple(rng.choice((0, 1, 3, -1, LARGE)) for _ in range(rng.randrange(8)))
        stamp = Stamp(r, rng.choice((0, 0, 1, 5, -1, LARGE)), kn)
        return Stamped(message, rng.choice((0, 2, LARGE)), stamp)

    def trouble(self, rng, driver, now_us): ...

    def restarted(self): ...

    def look_at(self, core):
        assert {entry.message.id for entry in core._queue} == core._pending.keys()


class Mast:
    """A station of WAS, in the middle of three."""

    codec, peers = MOBILE, (0, 2, 7, 8)

    def __init__(self, rng):
        pace = Pace(silence_us=rng.choice((None, 50)), repeats_max=rng.choice((None, 0.5)))
        floods = rng.random() < 0.5
        self.make = lambda: Station(1, ((0, 1), (1, 2)), pace, floods=floods)

    def draw(self, rng):
        frame = draw_frame(rng, rng.choice(MOBILE.kinds))
        if isinstance(frame, Uplink):
            return msgspec.structs.replace(frame, cell=1, host=rng.choice((7, 8)))
        return frame

    def trouble(self, rng, driver, now_us): ...

    def restarted(self): ...

    def look_at(self, core): ...


class Walker(Mast):
    """A host of WAS."""

    peers = (0, 1)

    def __init__(self, rng):
        names_stations = rng.random() < 0.5
        self.make = lambda: Host(7, durable=True, names_stations=names_stations)
        self.cell = None

    def draw(self, rng):
        frame = draw_frame(rng, rng.choice(MOBILE.kinds))
        if isinstance(frame, Downlink) and self.cell is not None:
            frame = msgspec.structs.replace(frame, cell=self.cell)
            return msgspec.structs.replace(frame, host=7) if hasattr(frame, "host") else frame
        return frame

    def trouble(self, rng, driver, now_us):
        if self.cell is not None:
            driver.on_link(now_us, self.cell, False)
        self.cell = rng.choice(self.peers)
        driver.on_link(now_us, self.cell, True)

    def restarted(self):
        self.cell = None


@pytest.fixture(autouse=True)
def small_numbers(monkeypatch):
    """Draw small numbers, so that later draws refer to earlier ones."""
    monkeypatch.setattr(draw_frames, "NUMBERS", (0, 1, 2, 3, 7, 8))


def test_a_join_with_a_connection_before_the_first_stopped_a_station():
    for floods in (False, True):
        core, out = Station(1, ((0, 1), (1, 2)), floods=floods), Outbox()
        core.on_message(0, 7, Join(1, 7, 0, None), out)
        for _, frame in out.sends:
            MOBILE.encode(frame)


def test_a_frame_for_a_station_that_is_in_no_tree_stopped_a_station():
    core = Station(1, ((0, 1), (1, 2)))
    with pytest.raises(RemoteError, match="no such station: 9"):
        core.on_message(0, 0, Request2(0, 9, 7, 1, ()), Outbox())


def test_a_request_of_an_unknown_station_was_flooded_before_it_was_refused():
    core, out = Station(1, ((0, 1), (1, 2)), floods=True), Outbox()
    with pytest.raises(RemoteError, match="no such station: 9"):
        core.on_message(0, 0, Request1(9, EVERYBODY, 7, 1, Place(1, False, 1)), out)
    assert is_idle(out)


@pytest.mark.parametrize("kind", [Contacts, Cube, Eye, Mast, Walker])
def test_no_frame_of_a_peer_breaks_a_core(kind):
    for seed in range(SEEDS):
        play(kind, random.Random(seed))


def play(kind, rng):
    group = kind(rng)
    port, now_us = Port(group.codec), 1_000
    drive = Driver if kind in (Eye, Mast) else BroadcasterDriver
    driver = drive(group.make, port, store=Store(), inbox=rng.random() < 0.3)
    for _ in range(rng.randrange(STEPS)):
        now_us += rng.choice((0, 1, 10, 100, -30))
        step = rng.random()
        if step < 0.12:
            group.trouble(rng, driver, now_us)
        elif step < 0.22 and drive is BroadcasterDriver:
            with suppress(LocalError):  # a peer reported that it lost its state
                driver.on_broadcast(now_us, b"x")
        elif step < 0.32 and port.alarms:
            driver.on_timer(now_us, *port.alarms.pop(rng.randrange(len(port.alarms))))
        elif step < 0.37 and kind is not Mast:
            driver.crash()
            driver.restart(now_us)
            group.restarted()
        else:
            frame = group.codec.decode(group.codec.encode(group.draw(rng)))
            with suppress(RemoteError):
                driver.on_message(now_us, rng.choice(group.peers), frame)
        group.look_at(driver.core)
