"""VCube with proofs against one member that lies: none of its frames silences another member."""

from __future__ import annotations

import hashlib
import random
from contextlib import suppress

import msgspec
import pytest
from tests.protocols.vcube.vcube_bench import KEEP_US, Bench, message

from beforehand.errors import LocalError, RemoteError
from beforehand.protocols.contract.base import MessageStatus
from beforehand.protocols.contract.driver import BroadcasterDriver
from beforehand.protocols.contract.proof import Proofs, signed_bytes
from beforehand.protocols.contract.tables import Store
from beforehand.protocols.vcube.frames import Answer, Ask, Known, Packet
from beforehand.protocols.vcube.node import VCube

HUGE = 1 << 60


def signature(node, data):
    return hashlib.sha256(b"%d" % node + data).digest()


def is_signature(origin, data, proof):
    return signature(origin, data) == proof


def proofs_of(node):
    return Proofs("ring", lambda data: signature(node, data), is_signature)


def proven(origin, seq, *past, payload=b""):
    plain = message(origin, seq, *past, payload=payload)
    proof = signature(origin, signed_bytes("ring", plain))
    return msgspec.structs.replace(plain, proof=proof)


def bench_of(node, nodes=4, **options):
    return Bench(node, nodes, proofs=proofs_of(node), **options)


def test_a_false_claim_about_own_messages_silenced_a_node_for_ever():
    bench = bench_of(0)
    with pytest.raises(RemoteError, match="no proof of message"):
        bench.hear(Known(HUGE), source=3)
    assert bench.broadcast().id == (0, 1)
    assert bench.core.counters.refused == 1


def test_a_request_with_a_false_claim_about_own_messages_silenced_a_node_for_ever():
    bench = bench_of(0)
    bench.hear(Ask((HUGE, 0, 0, 0)), source=3)
    assert bench.broadcast().id == (0, 1)


def test_an_unrequested_answer_is_ignored():
    for bench in (Bench(0, 4), bench_of(0)):
        bench.receive(*(proven(1, seq) for seq in (2, 3)))
        assert bench.hear(Answer((0, 1, 0, 0)), source=3) == []
        assert bench.lost() == []
        bench.receive(proven(1, 1))
        assert bench.delivered() == [(1, 1), (1, 2), (1, 3)]


@pytest.mark.parametrize("gone", [(0, HUGE, 0, 0), (HUGE, 0, 0, 0), (0, 2, 0, 1), (1, 0, 0, 0)])
def test_an_answer_with_an_unsigned_claim_silenced_an_origin_for_ever(gone):
    bench = bench_of(0)
    bench.receive(proven(1, 2))
    bench.answer(gone, source=3)
    assert bench.lost() == []
    assert bench.broadcast().id == (0, 1)
    bench.receive(proven(1, 1))
    assert bench.delivered() == [(1, 1), (1, 2)]


def test_gone_messages_are_skipped_if_their_origin_signed_the_claim():
    """The peer that has forgotten the messages sends the last one before its answer."""
    keeper, asker = bench_of(1), bench_of(0)
    keeper.receive(proven(2, 1), proven(2, 2), source=2)
    keeper.link(0, up=False, now_us=2 * KEEP_US)
    assert keeper.core.gauges(0)["kept"] == 0
    for attempt in range(2):
        keeper.hear(Ask((0, 0, 0, 0)), source=0, now_us=3 * KEEP_US)
        assert [frame for _, frame in keeper.out.sends] == [
            Packet(0, (proven(2, 2),)),
            Answer((0, 0, 2, 0)),
        ], f"attempt {attempt}"
        keeper.restart(now_us=3 * KEEP_US)
    frames = [frame for _, frame in keeper.hear(Ask((0, 0, 0, 0)), 0) or keeper.out.sends]
    asker.core._state.awaited.add(1)
    for frame in [Packet(0, (proven(2, 2),)), *frames]:
        asker.hear(frame, source=1)
    assert asker.lost() == [(2, 1), (2, 2)]
    assert asker.core.explain((2, 1)) == MessageStatus("missed")
    asker.receive(proven(2, 3))
    assert asker.delivered() == [(2, 3)]
    assert asker.core.gauges(0)["pending"] == 0


def test_a_node_without_its_state_is_shown_its_own_signature_and_mute():
    """Even when no member keeps its messages any more."""
    peer, returned = bench_of(1), bench_of(0)
    peer.receive(proven(0, 1), proven(0, 2), source=0)
    peer.link(3, up=False, now_us=2 * KEEP_US)
    peer.hear(Ask((0, 0, 0, 0)), source=0, now_us=2 * KEEP_US)
    assert peer.sent() == {0: [(0, (0, 2))]}
    packet = peer.out.sends[0][1]
    returned.hear(packet, source=1)
    with pytest.raises(LocalError, match="does not remember"):
        returned.broadcast()


@pytest.mark.parametrize("is_proven", [False, True])
def test_a_node_that_regained_its_own_messages_does_not_broadcast_while_they_wait(is_proven):
    """It was restored from older state: (0, 2) waits for (0, 1), and (0, 1) for (2, 1)."""
    bench = bench_of(0) if is_proven else Bench(0, 4)
    own = [proven(0, 1, (2, 1)), proven(0, 2)]
    for step in range(4):
        if step < 2:
            bench.receive(own[1 - step])
        elif step == 2:
            bench.restart()
        else:
            bench.receive(proven(2, 1))
            assert bench.delivered() == [(2, 1), (0, 1), (0, 2)]
        with pytest.raises(LocalError, match="does not remember"):
            bench.broadcast()


def test_a_node_that_used_a_number_twice_is_shown_its_earlier_message():
    bench = bench_of(1)
    bench.receive(proven(0, 1, payload=b"before"), proven(0, 2), source=0)
    bench.receive(proven(0, 1, payload=b"after"), source=0)
    assert bench.delivered() == []
    assert bench.sent() == {0: [(0, (0, 2)), (0, (0, 1))]}
    other = bench_of(0)
    other.broadcast(payload=b"after")
    other.hear(bench.out.sends[0][1], source=1)
    with pytest.raises(LocalError, match="does not remember"):
        other.broadcast()


def test_a_premature_reference_to_an_own_message_waits_for_it():
    """The early reference silenced this node for ever. The message of the peer now waits, at every
    node, until the own message is broadcast."""
    bench = bench_of(0)
    bench.receive(proven(3, 1, (0, 2)), height=1)
    assert bench.core.explain((3, 1)).missing == ((0, 2),)
    assert bench.broadcast().id == (0, 1)
    assert bench.delivered() == [(0, 1)]
    bench.broadcast()
    assert bench.delivered() == [(0, 2), (3, 1)]
    assert bench.core.gauges(0)["pending"] == bench.core.gauges(0)["awaiting"] == 0
    bench.restart()
    assert bench.broadcast().past == ((3, 1),)


# ---- after a liar has spoken --------------------------------------------------------------------


class Ring:
    """Four members on reliable links. The last one is hostile: it sends whatever it can sign."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.now_us = 1_000
        self.frames, self.alarms, self.got = [], {}, {node: [] for node in range(3)}
        self.drivers = [
            BroadcasterDriver(self._maker(node), self, store=Store()) for node in range(3)
        ]

    def _lie(self, seq):
        """A message of its own: perhaps another one than it sent under this number before."""
        origins = [origin for origin in range(3) if self.rng.random() < 0.3]
        past = [(origin, self.rng.choice((1, 2, HUGE))) for origin in origins]
        return proven(3, seq, *past, payload=b"lie")

    def _maker(self, node):
        options = {"keep_us": KEEP_US, "durable": True, "proofs": proofs_of(node)}
        return lambda: VCube(node, 4, **options)

    def send(self, node, sends):
        self.frames += [(node, to, frame) for to, frame in sends]

    def wake(self, node, timer, due_us, ticket):
        self.alarms[node, timer] = (due_us, ticket)

    def deliver(self, node, messages):
        self.got[node] += [message.payload for message in messages]

    def _ignore(self, *_): ...

    broadcasted = received = lost = _ignore

    def lie(self):
        rng = self.rng
        numbers = [rng.choice((0, 0, 1, 2, 3, HUGE)) for _ in range(4)]
        own = self._lie(rng.choice((1, 2, 3)))
        frames = Ask(tuple(numbers)), Answer(tuple(numbers)), Known(HUGE), Packet(1, (own,))
        with suppress(RemoteError):
            self.drivers[rng.randrange(3)].on_message(self.now_us, 3, rng.choice(frames))

    def arrive(self):
        while self.frames:
            source, to, frame = self.frames.pop(0)
            if to < 3:
                self.drivers[to].on_message(self.now_us, source, frame)

    def tell(self, up):
        for driver in self.drivers:
            driver.on_link(self.now_us, 3, up)

    def pass_time(self, us):
        self.now_us += us
        for (node, timer), (due_us, ticket) in list(self.alarms.items()):
            if due_us <= self.now_us:
                del self.alarms[node, timer]
                self.drivers[node].on_timer(self.now_us, timer, ticket)


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_after_a_member_has_lied_the_others_deliver_each_others_messages(first):
    for seed in range(first, first + 50):
        ring = Ring(seed)
        for step in range(30):
            ring.lie()
            if step % 10 == 3:
                ring.tell(up=False)
                ring.tell(up=True)  # so that the liar is asked
            if step % 7 == 0:
                ring.drivers[step % 3].on_broadcast(ring.now_us, b"during %d" % step)
            ring.arrive()
            ring.pass_time(ring.rng.choice((0, 10, KEEP_US)))
        # The liar forwarded nothing. Once it is reported down, what it lost is asked for or missed.
        ring.tell(up=False)
        for words in (b"settle", b"after"):
            for node, driver in enumerate(ring.drivers):
                driver.on_broadcast(ring.now_us, b"%s %d" % (words, node))
            ring.arrive()
            after = [[p for p in got if p.startswith(b"after")] for got in ring.got.values()]
            for _ in range(8):
                ring.pass_time(KEEP_US)
                ring.arrive()
        assert [sorted(got) for got in after] == [[b"after 0", b"after 1", b"after 2"]] * 3, seed
