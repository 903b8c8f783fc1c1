"""The hops of a message follow from the senders of its receptions."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from beforehand.events import RECEIVE
from beforehand.kernels.hops import UNKNOWN, count_hops
from beforehand.mobility.trace import make_trace
from beforehand.sim.contacts.run import Spec, run_one
from beforehand.sim.contacts.summary import measure_delays, tally_hops
from beforehand.sim.contacts.traffic import Traffic

SECOND = 1_000_000
ROWS = st.lists(st.tuples(*[st.integers(0, 4)] * 3), max_size=60)  # node, message, sender


def slowly(rows, origins):
    held, hops = {}, []
    for node, message, sender in rows:
        before = 0 if sender == origins[message] else held.get((sender, message), UNKNOWN)
        hops.append(before + 1 if before != UNKNOWN else UNKNOWN)
        held[node, message] = hops[-1]
    return hops


@given(rows=ROWS, origins=st.lists(st.integers(0, 4), min_size=5, max_size=5))
def test_hops_are_one_more_than_those_of_the_sender(rows, origins):
    node, message, sender = np.array(rows, np.int64).reshape(-1, 3).T
    hops = count_hops(node, message, sender, np.array(origins)[message])
    assert hops.tolist() == slowly(rows, origins)


def line_of(nodes):
    """Return a trace in which each node meets the next once, one meeting after the other."""
    met = [(i, i + 1, (10 + 10 * i) * SECOND, (15 + 10 * i) * SECOND) for i in range(nodes - 1)]
    whole = [(i, 0, 10 * (nodes + 1) * SECOND) for i in range(nodes)]
    return make_trace([str(i) for i in range(nodes)], np.array(met), np.array(whole))


def test_along_a_line_a_message_makes_as_many_hops_as_there_are_nodes_in_between():
    spec = Spec("causal", traffic=Traffic(period_us=3600 * SECOND, first_us=SECOND))
    result = run_one(line_of(4), spec)
    # Node 0's message comes to 1, 2 and 3, that of 1 to 0, 2 and 3, that of 2 to 1 and 3, ...
    found = measure_delays(result.columns)
    assert tally_hops(result.columns, result.senders, found) == {1: 6, 2: 2, 3: 1}


def test_there_is_a_sender_for_each_reception_and_it_is_never_the_receiver():
    result = run_one(line_of(6), Spec("none"))
    received = result.columns["kind"] == RECEIVE
    assert len(result.senders) == received.sum() > 0
    assert (result.senders != result.columns["node"][received]).all()


def test_nothing_received_is_no_hop():
    result = run_one(line_of(1), Spec("causal"))
    found = measure_delays(result.columns)
    assert tally_hops(result.columns, result.senders, found) == {}
