"""Nodes with bounded caches are offered what their peers hold."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from msgspec.structs import replace as replace_struct

from beforehand.check.families import FAMILIES
from beforehand.check.families.contacts import ContactsFamily, Setup
from beforehand.check.fuzz.fuzz import play
from beforehand.check.net.case import Case
from beforehand.check.net.net import make_net
from beforehand.check.rules.bounded import never_offered
from beforehand.protocols.contract.base import Message
from beforehand.protocols.epidemic.epidemic import Epidemic
from beforehand.protocols.epidemic.options import Options

M, N = (0, 1), (0, 2)
LACKS = ["node 1 lacks [(0, 1)], which its peer 0 holds"]


def at_rest(held, *, delivered=None, dropped=(), cut_off=(), inbox=False, contacts=((0, 1),)):
    """A net in which each node holds every broadcast message."""
    drivers = [
        SimpleNamespace(core=SimpleNamespace(holds=lambda _, ids=ids: frozenset(ids)), cut_off=[])
        for ids in held
    ]
    drivers[1].cut_off = [Message(id, (), b"") for id in cut_off]
    return SimpleNamespace(
        drivers=drivers,
        contacts=set(contacts),
        dropped=set(dropped),
        oracle=SimpleNamespace(delivered={0: [], 1: [], 2: [], **(delivered or {})}),
        case=SimpleNamespace(inbox=inbox, nodes=len(held)),
        family=SimpleNamespace(hostile=lambda _: ()),
        local_us=lambda _: 0,
    )


@pytest.mark.parametrize(
    ("net", "lacking"),
    [
        (at_rest([{M}, {M}]), []),
        (at_rest([{M, N}, {M}]), ["node 1 lacks [(0, 2)], which its peer 0 holds"]),
        (at_rest([{M}, {M, N}]), ["node 0 lacks [(0, 2)], which its peer 1 holds"]),
        (at_rest([{M}, {}], delivered={1: [M]}), []),
        (at_rest([{M}, {}], cut_off=[M]), []),
        (at_rest([{M}, {}], cut_off=[M], inbox=True), LACKS),
        (at_rest([{M}, {}], dropped=[(1, 0, M)]), []),
        (at_rest([{M}, {}], dropped=[(0, 1, M)]), LACKS),
        (at_rest([{M}, {}], dropped=[(1, 2, M)]), LACKS),
        (at_rest([{M}, {M}, {}]), []),
        (at_rest([{(0, 9)}, {}]), []),
    ],
    ids=[
        *("held", "not held", "not held by the other", "delivered", "cut off by a crash"),
        *("cut off, with an inbox", "dropped", "dropped by the peer", "dropped for another peer"),
        *("not in contact", "expired"),
    ],
)
def test_a_node_lacks_what_a_peer_holds_unless_it_had_it_during_the_contact(net, lacking):
    assert list(never_offered(net, {M, N})) == lacking


class Full(ContactsFamily):
    """Every cache is bounded."""

    def draw(self, rng):
        case = super().draw(rng)
        options = replace_struct(case.options.options, capacity=8, announce_us=0)
        return replace(case, options=replace(case.options, options=options))


class Sparing(Epidemic):
    """Announces three ids at a time, and forgets the rest."""

    def _make_sender(self):
        sender = super()._make_sender()
        announce = sender.announce

        def announce_three(now_us, peer, link, ids, out):
            announce(now_us, peer, link, frozenset(sorted(ids)[:3]), out)

        sender.announce = announce_three
        return sender


class Stubborn(Epidemic):
    """Never requests an evicted message again, whichever peer offers it."""

    def on_link(self, now_us, peer, up, out):
        evicted = dict(self._evicted.ids)
        super().on_link(now_us, peer, up, out)
        self._evicted.ids.update(evicted)


@pytest.mark.parametrize("broken", [Sparing, Stubborn])
def test_the_swarm_finds_full_caches_that_withhold_or_refuse_messages(broken, monkeypatch):
    monkeypatch.setattr("beforehand.check.families.contacts.Epidemic", broken)
    problems = (play(seed, Full("causal"))[0].problem for seed in range(1_500))
    assert any(problem and "lacks" in problem for problem in problems)


def test_a_dropped_message_is_excused_until_the_next_link_up():
    case = Case(3, (0, 0, 0), Setup(Options(capacity=3)), flaps=1)
    net = make_net(FAMILIES["causal"], case)
    for pair in ((0, 1), (0, 2)):
        net.do(("up", *pair))
    net.lost(0, [("drop", M)])
    net.lost(1, [("expire", N)])
    assert net.dropped == {(0, 1, M), (0, 2, M)}
    for move in (("down", 0, 1), ("notify", 1, 0), ("up", 0, 1)):
        assert net.do(move)
    assert net.dropped == {(0, 2, M)}


def test_byte_bounded_nets_are_judged_by_the_offered_messages():
    for bound in ({"capacity": 3}, {"capacity_bytes": 3_500}):
        net = make_net(FAMILIES["causal"], Case(2, (1, 0), Setup(Options(**bound))))
        net.do(("broadcast", 0))
        assert list(net.family.problems(net)) == []
        net.contacts.add((0, 1))  # without a notification to either node
        assert list(net.family.problems(net)) == LACKS
