"""Each statement of VCU about its protocol, and a literal run of its Algorithm 2."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beforehand.check.families.vcube import Setup, VCubeFamily
from beforehand.check.net.case import Case
from beforehand.check.net.moves import all_moves
from beforehand.check.net.net import make_net
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.vcube.frames import Packet, VCubeMessage
from beforehand.protocols.vcube.node import VCube
from beforehand.protocols.vcube.topology import children, cluster


class Literal:
    """Algorithm 2 line by line: whole vector clocks, and `pending` searched from end to end."""

    def __init__(self, i, d):
        self.i, self.d = i, d
        self.vector_clock, self.vector_max = [0] * 2**d, [0] * 2**d
        self.pending = []  # in the order of arrival

    def broadcast(self):
        self.vector_clock[self.i] += 1
        self.vector_max[self.i] = self.vector_clock[self.i]
        m = (self.i, tuple(self.vector_clock))
        return m, [(k, [m]) for k in self.children(self.i)]

    def receive(self, m_set, j):
        sends = []
        for m in m_set:
            self.pending.append(m)
            while any(vc[s] == self.vector_max[s] + 1 for s, vc in self.pending):
                s = next(s for s, vc in self.pending if vc[s] == self.vector_max[s] + 1)
                self.vector_max[s] += 1
            # Children(i, Cluster(i, j) - 1): those of a root of that height.
            for k in children(self.i, self.i, cluster(self.i, j) - 1):
                agg = self.check_agg(k, m)
                if agg:
                    sends.append((k, agg))
        return sends, self.check_delivery()

    def check_agg(self, k, m):
        return [
            (s, vc)
            for s, vc in self.pending
            if k in self.children(s)
            and vc[m[0]] >= m[1][m[0]]
            and not any(
                vc[origin] > self.vector_max[origin] and k in self.children(origin)
                for origin in range(2**self.d)
            )
        ]

    def check_delivery(self):
        delivered, is_moving = [], True
        while is_moving:
            is_moving = False
            for s, vc in self.pending:
                rest = (vc[k] <= self.vector_clock[k] for k in range(2**self.d) if k != s)
                if vc[s] == self.vector_clock[s] + 1 and all(rest):
                    self.vector_clock[s] += 1
                    self.pending.remove((s, vc))
                    delivered.append((s, vc))
                    is_moving = True
                    break
        return delivered

    def children(self, root):
        return children(self.i, root, self.d)


def ids(messages):
    """(origin, seq) of messages with whole clocks."""
    return [(s, vc[s]) for s, vc in messages]


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), d=st.integers(1, 4), most=st.integers(1, 3))
def test_the_core_sends_and_delivers_what_algorithm_2_does(seed, d, most):
    rng = random.Random(seed)
    cores = [VCube(i, 2**d, mtu_bytes=10**9) for i in range(2**d)]
    literals = [Literal(i, d) for i in range(2**d)]
    broadcasts = [i for i in range(2**d) for _ in range(rng.randint(0, most))]
    flights = []
    while broadcasts or flights:
        out = Outbox()
        if broadcasts and (not flights or rng.random() < 0.15):
            i = broadcasts.pop(rng.randrange(len(broadcasts)))
            cores[i].on_broadcast(0, b"", out)
            m, sends = literals[i].broadcast()
            delivered = [m]
        else:
            j, i, packet, m_set = flights.pop(rng.randrange(len(flights)))
            cores[i].on_message(0, j, packet, out)
            sends, delivered = literals[i].receive(m_set, j)
        sent = [(k, [m.id for m in packet.messages]) for k, packet in out.sends]
        assert sent == [(k, ids(agg)) for k, agg in sends]
        assert sorted(m.id for m in out.deliveries) == sorted(ids(delivered))
        flights += [
            (i, k, packet, agg) for (k, packet), (_, agg) in zip(out.sends, sends, strict=True)
        ]
    assert all(not literal.pending for literal in literals)


def deliver_to_4(*arrivals):
    """Return what node 4 of 8 sends for each arrival: by child, the ids of the packet."""
    core, found = VCube(4, 8), []
    for id, past, height in arrivals:
        out = Outbox()
        core.on_message(0, 0, Packet(height, (VCubeMessage(id, past, b""),)), out)
        found.append({k: [m.id for m in packet.messages] for k, packet in out.sends})
    return found


def test_figure_5_node_4_does_not_wait_for_messages_that_5_gets_elsewhere():
    """m2 -> m1 -> m0: 5 is a child of 4 in the trees of 0 and 2, and its parent in that of 1."""
    m0 = ((0, 1), ((1, 1), (2, 1)), 2)
    m2 = ((2, 1), (), 1)
    assert deliver_to_4(m0, m2) == [{6: [(0, 1)]}, {5: [(0, 1), (2, 1)]}]
    assert deliver_to_4(m2, m0) == [{5: [(2, 1)]}, {5: [(0, 1)], 6: [(0, 1)]}]


def test_section_4_4_first_example_a_gap_in_the_messages_of_one_node():
    """Node 2 broadcasts three messages, then node 0 one; 4 gets the second one last."""
    arrivals = [((2, 1), (), 1), ((2, 3), (), 1), ((0, 1), ((2, 3),), 2), ((2, 2), (), 1)]
    assert deliver_to_4(*arrivals) == [
        {5: [(2, 1)]},
        {},
        {6: [(0, 1)]},
        {5: [(2, 3), (0, 1), (2, 2)]},
    ]


def test_section_4_4_second_example_nothing_is_sent_twice():
    arrivals = [((0, 1), ((2, 1),), 2), ((0, 2), (), 2), ((2, 1), (), 1)]
    assert deliver_to_4(*arrivals) == [
        {6: [(0, 1)]},
        {6: [(0, 2)]},
        {5: [(0, 1), (0, 2), (2, 1)]},
    ]


@given(
    seed=st.integers(0, 2**32),
    nodes=st.integers(2, 17),
    most=st.integers(1, 3),
    aggregates=st.booleans(),
    root=st.sampled_from((None, 0)),
)
def test_each_message_goes_to_each_node_once_and_causes_come_first(
    seed, nodes, most, aggregates, root
):
    """No message twice to the same child, none forgotten; causal order at every node."""
    rng = random.Random(seed)
    broadcasts = tuple(rng.randint(0, most) for _ in range(nodes))
    setup = Setup(aggregates, root, mtu_bytes=rng.choice((30, 10**9)))
    net = make_net(VCubeFamily(), Case(nodes, broadcasts, setup))
    while moves := list(all_moves(net)):
        net.do(rng.choice(moves))
    assert net.problem is None
    assert list(net.family.problems(net)) == []
    assert all(len(net.oracle.delivered[node]) == sum(broadcasts) for node in range(nodes))


@pytest.mark.parametrize("nodes", [2, 8, 13, 32])
def test_without_aggregation_there_are_n_times_n_minus_1_packets(nodes):
    """Section 5.1; with one message each, every packet carries one."""
    net = make_net(VCubeFamily(), Case(nodes, (1,) * nodes, Setup(aggregates=False)))
    packets = 0
    while moves := list(all_moves(net)):
        packets += moves[-1][0] == "arrive"
        net.do(moves[-1])
    assert packets == nodes * (nodes - 1)
