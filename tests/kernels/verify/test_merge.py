"""One order from many logs: it agrees with causality, as good as any other that does."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beforehand.kernels.verify.causality import find_violations
from beforehand.kernels.verify.index import index_log
from beforehand.kernels.verify.merge import merge_by_causality

NODES = 5


def random_run(rng: random.Random, size: int) -> list[tuple[int, bool, int]]:
    """(node, is a broadcast, message): deliveries of whatever was broadcast, so that many are late
    and many come twice."""
    rows: list[tuple[int, bool, int]] = []
    messages = 0
    for _ in range(size):
        if messages == 0 or rng.random() < 0.3:
            rows.append((rng.randrange(NODES), True, messages))
            messages += 1
        else:
            rows.append((rng.randrange(NODES), False, rng.randrange(messages)))
    return rows


def by_node(rows):
    return sorted(rows, key=lambda row: row[0])  # stable: each node keeps its own order


def merged(rows):
    """In the order of the kernel, and how many rows fit into none."""
    node, is_broadcast, message = (np.array(column) for column in zip(*rows, strict=True))
    _, node = np.unique(node, return_inverse=True)
    history = index_log(node, is_broadcast, message * 0, message)
    order, forced = merge_by_causality(history.node, history.message, history.broadcast_rows)
    assert sorted(order.tolist()) == list(range(len(rows)))
    return [rows[at] for at in order], [rows[at] for at in forced]


def violations(rows):
    node, is_broadcast, message = (np.array(column) for column in zip(*rows, strict=True))
    found = find_violations(index_log(node, is_broadcast, message * 0, message))
    kinds = zip(found.row.tolist(), found.kind.tolist(), strict=True)
    return Counter((*rows[row], kind) for row, kind in kinds)


@pytest.mark.parametrize("seed", range(150))
def test_the_same_deliveries_are_late_or_come_twice_as_in_the_order_that_was(seed):
    rows = random_run(random.Random(seed), 60)
    order, forced = merged(by_node(rows))
    assert not forced
    assert violations(order) == violations(rows)


def test_there_are_violations_to_be_found():
    found = [violations(random_run(random.Random(seed), 60)) for seed in range(20)]
    kinds = Counter(kind for counts in found for *_, kind in counts)
    assert kinds[0] > 20
    assert kinds[1] > 20


@given(st.integers(0, 10**9), st.integers(1, 200))
@settings(max_examples=100, deadline=None)
def test_nodes_keep_their_order_and_broadcasts_come_first(seed, size):
    rows = random_run(random.Random(seed), size)
    order, _ = merged(by_node(rows))
    for node in range(NODES):
        assert [r for r in order if r[0] == node] == [r for r in rows if r[0] == node]
    sent = set()
    for _, is_broadcast, message in order:
        assert is_broadcast or message in sent
        sent |= {message}


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_every_row_of_any_logs_is_in_the_order_once(data):
    """Also where they are impossible: rings of any shape, and deliveries from nowhere."""
    messages = data.draw(st.integers(1, 6))
    sent = [(data.draw(st.integers(0, NODES - 1)), True, m) for m in range(messages)]
    row = st.tuples(st.integers(0, NODES - 1), st.just(False), st.integers(0, messages + 1))
    rows = data.draw(st.permutations([*sent, *data.draw(st.lists(row, max_size=20))]))
    order, forced = merged(by_node(rows))
    for node in range(NODES):
        assert [r for r in order if r[0] == node] == [r for r in rows if r[0] == node]
    at = {message: place for place, (_, says, message) in enumerate(order) if says}
    early = [r for place, r in enumerate(order) if not r[1] and at.get(r[2], -1) > place]
    assert Counter(early) == Counter(forced)


def test_only_one_node_of_a_waiting_cycle_is_blamed():
    ring = [(1, False, 7), (1, True, 8), (2, False, 8), (2, True, 7)]
    victims = [(0, False, 7), (0, False, 8), (3, False, 8), (3, True, 9), (4, False, 9)]
    _, forced = merged(by_node([*victims, *ring]))
    assert len(forced) == 1
    assert forced[0] in ring


def test_a_node_that_delivers_its_own_message_before_its_broadcast_waits_for_itself_only():
    order, forced = merged([(0, False, 1), (0, True, 1), (1, False, 1)])
    assert forced == [(0, False, 1)]
    assert order[-1] == (1, False, 1)


def test_an_empty_log_has_an_empty_order():
    none = np.zeros(0, np.int32)
    order, forced = merge_by_causality(none, none, none.astype(np.int64))
    assert len(order) == len(forced) == 0
