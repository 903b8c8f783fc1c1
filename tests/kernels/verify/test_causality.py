"""The verifier's kernel against the slow oracle, and against violations that we planted."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from beforehand.check.rules.oracle import judge
from beforehand.events import BROADCAST, DELIVER
from beforehand.kernels.verify import causality
from beforehand.kernels.verify.causality import (
    KINDS,
    LATE,
    TWICE,
    UNKNOWN,
    causal_chain,
    find_violations,
    first_follower,
    spread_of,
)
from beforehand.kernels.verify.index import RepeatedBroadcast, index_log
from beforehand.mobility.generators.crowd import generate
from beforehand.sim.contacts.run import Spec, run_one

SEEDS = range(400)


def draw_log(seed, *, disorder=0.2, rows=60):
    """Rows of (node, event, message): mostly first deliveries in order of the broadcasts, but some
    out of order, twice, or of nothing. Names of nodes and messages are large and in no order."""
    rng = np.random.default_rng(seed)
    nodes = rng.choice(10**6, int(rng.integers(2, 7)), replace=False).tolist()
    waiting = {node: [] for node in nodes}
    sent, log = [], []
    for _ in range(rows):
        node = nodes[rng.integers(len(nodes))]
        if rng.random() < 0.3:
            origin = node if rng.random() < 0.9 else nodes[rng.integers(len(nodes))]
            message = (origin, int(rng.integers(2**40)))
            sent.append(message)
            log.append((node, "broadcast", message))
            for other in nodes:
                waiting[other].append(message)
        elif rng.random() < disorder / 10:
            log.append((node, "deliver", (node, -int(rng.integers(1, 5)))))
        elif sent and rng.random() < disorder:
            log.append((node, "deliver", sent[rng.integers(len(sent))]))
        elif waiting[node]:
            at = 0 if rng.random() > disorder else int(rng.integers(len(waiting[node])))
            log.append((node, "deliver", waiting[node].pop(at)))
    return log


def history_of(log):
    return index_log(
        np.array([node for node, _, _ in log]),
        np.array([event == "broadcast" for _, event, _ in log], bool),
        np.array([origin for _, _, (origin, _) in log]),
        np.array([seq for _, _, (_, seq) in log]),
    )


def found_in(log, threads=1):
    violations = find_violations(history_of(log), threads=threads)
    return [(int(row), KINDS[kind]) for row, kind in zip(*violations, strict=True)]


@pytest.fixture(params=["dense", "sparse"])
def way(request, monkeypatch):
    """Both walks, whatever the size of the log."""
    monkeypatch.setattr(causality, "LOOK_STEPS", 1e-9)
    size_min = 0 if request.param == "sparse" else 1 << 60
    monkeypatch.setattr(causality, "DENSE_STEPS_MIN", size_min)
    return request.param


def test_it_agrees_with_the_oracle_on_every_delivery(way):
    kinds = {"late": 0, "twice": 0, "unknown": 0}
    clean = 0
    for seed in SEEDS:
        log = draw_log(seed, disorder=0.3 * (seed % 3) / 2)
        expected = [(v.row, v.kind) for v in judge(log)]
        assert found_in(log) == expected, f"seed {seed}"
        clean += not expected
        for _, kind in expected:
            kinds[kind] += 1
    assert clean > 50
    assert min(kinds.values()) > 50, kinds


def test_it_names_the_message_that_came_first_as_the_oracle_does():
    explained = 0
    for seed in SEEDS:
        log = draw_log(seed)
        history = history_of(log)
        for violation in judge(log):
            if violation.kind == "late":
                spread = spread_of(history, history.message[violation.row])
                node = int(np.searchsorted(history.nodes, violation.node))
                row = first_follower(history, spread, node, violation.row)
                assert log[row] == (violation.node, "deliver", violation.after), f"seed {seed}"
                explained += 1
    assert explained > 100


def test_a_chain_is_a_proof():
    lengths = []
    for seed in SEEDS:
        log = draw_log(seed)
        history = history_of(log)
        for cause in range(0, len(history.broadcast_rows), 5):
            spread = spread_of(history, cause)
            for effect in np.flatnonzero(spread.follows):
                chain = causal_chain(history, spread, effect)
                assert_proves(
                    log, chain, history.broadcast_rows[cause], history.broadcast_rows[effect]
                )
                lengths.append(len(chain))
    assert max(lengths) > 6


def assert_proves(log, chain, cause_row, effect_row):
    assert (chain[0], chain[-1]) == (cause_row, effect_row)
    for earlier, later in itertools.pairwise(chain):
        assert earlier < later
        same_node = log[earlier][0] == log[later][0]
        carried = log[earlier][1:] == ("broadcast", log[later][2]) and log[later][1] == "deliver"
        assert carried or (same_node and log[later][1] == "broadcast")


def test_the_messages_after_a_message_are_those_of_the_oracle():
    from beforehand.check.rules.oracle import Oracle

    for seed in SEEDS[:100]:
        log = draw_log(seed)
        oracle = Oracle()
        for row in log:
            oracle.see(*row)
        history = history_of(log)
        names = [log[row][2] for row in history.broadcast_rows]
        for number, name in enumerate(names):
            follows = {names[i] for i in np.flatnonzero(spread_of(history, number).follows)}
            assert follows == {m for m, past in oracle.pasts.items() if name in past}


def test_threads_and_wide_ranks_do_not_matter(way, monkeypatch):
    monkeypatch.setattr(causality, "BLOCK_BYTES_MAX", 4)
    for seed in SEEDS[:40]:
        log = draw_log(seed)
        alone = found_in(log)
        assert found_in(log, threads=3) == alone
        monkeypatch.setattr(causality, "SMALL_RANK_MAX", 1)
        assert found_in(log) == alone
        monkeypatch.undo()


def test_the_sparse_walk_is_left_where_messages_have_many_predecessors(monkeypatch):
    """20 nodes broadcast, then all deliver all and broadcast: 20 predecessors for each message."""
    everyone = range(20)
    first = [(node, "broadcast", (node, 0)) for node in everyone]
    heard = [(node, "deliver", (other, 0)) for node in everyone for other in everyone]
    second = [(node, "broadcast", (node, 1)) for node in everyone]
    again = [(node, "deliver", (other, 1)) for node in everyone for other in everyone]
    history = history_of([*first, *heard, *second, *again])
    column = history.sender
    monkeypatch.setattr(causality, "DENSE_STEPS_MIN", 1)
    monkeypatch.setattr(causality, "LOOK_STEPS", 1)
    plan = causality.sparse_plan(history, column)
    assert np.diff(plan.start).tolist() == [0] * 20 + [20] * 20
    assert plan.looks == 20 * 20 * 20
    monkeypatch.setattr(causality, "LOOK_STEPS", 3)
    assert causality.sparse_plan(history, column) is None


def test_a_predecessor_of_a_predecessor_is_no_direct_one(monkeypatch):
    log = [(1, "broadcast", (1, 1)), (1, "broadcast", (1, 2)), (2, "deliver", (1, 1))]
    log += [(2, "broadcast", (2, 1)), (3, "deliver", (1, 1)), (3, "deliver", (1, 2))]
    log += [(3, "deliver", (2, 1)), (3, "broadcast", (3, 1))]
    history = history_of(log)
    monkeypatch.setattr(causality, "DENSE_STEPS_MIN", 1)
    monkeypatch.setattr(causality, "LOOK_STEPS", 1)
    plan = causality.sparse_plan(history, history.sender)
    assert plan.messages.tolist() == [0, 1, 2]  # of (2, 1) one; of (3, 1) not (1, 1)


@pytest.mark.parametrize("width", [1, 2, 3])
def test_the_blocks_do_not_matter(monkeypatch, width):
    for seed in SEEDS[:60]:
        history = history_of(draw_log(seed))
        whole = find_violations(history)
        cuts = sorted({0, len(history.nodes) // 3, len(history.nodes) // 2, len(history.nodes)})
        monkeypatch.setattr(causality, "BLOCK_BYTES_MAX", 2 * width)
        parts = [find_violations(history, *ends) for ends in itertools.pairwise(cuts)]
        monkeypatch.undo()
        rows = np.concatenate([part.row for part in parts])
        kinds = np.concatenate([part.kind for part in parts])
        order = np.argsort(rows)
        assert rows[order].tolist() == whole.row.tolist()
        assert kinds[order].tolist() == whole.kind.tolist()


def test_a_message_before_its_broadcast_is_unknown_and_adds_no_causes(way):
    log = [
        (1, "deliver", (2, 1)),
        (2, "broadcast", (2, 1)),
        (2, "broadcast", (2, 2)),
        (1, "broadcast", (1, 1)),
        (3, "deliver", (1, 1)),
        (3, "deliver", (2, 1)),
        (1, "deliver", (2, 1)),
    ]
    assert found_in(log) == [(0, "unknown"), (6, "twice")]


def test_own_messages_are_known_before_they_are_delivered(way):
    log = [
        (1, "broadcast", (1, 1)),
        (1, "broadcast", (1, 2)),
        (1, "deliver", (1, 2)),
        (1, "deliver", (1, 1)),
    ]
    assert found_in(log) == [(3, "late")]


@pytest.mark.parametrize("log", [[], [(1, "deliver", (1, 1))], [(1, "broadcast", (1, 1))]])
def test_small_logs(log):
    assert found_in(log) == [(0, "unknown")][: sum(event == "deliver" for _, event, _ in log)]


def test_a_message_that_is_broadcast_twice_is_refused_with_both_rows():
    log = [(1, "broadcast", (1, 1)), (2, "broadcast", (2, 1)), (2, "broadcast", (1, 1))]
    with pytest.raises(RepeatedBroadcast) as caught:
        history_of([*log, log[1]])
    assert (caught.value.first, caught.value.second) == (0, 2)


@pytest.fixture(scope="module")
def simulated():
    """The broadcasts and deliveries of a real run: node, is_broadcast, origin, seq."""
    trace = generate(5, nodes_mean=50, hours=0.3)
    columns = run_one(trace, Spec("delta", lifetime_us=600_000_000)).columns
    chosen = np.isin(columns["kind"], (BROADCAST, DELIVER))
    names = ("node", "kind", "origin", "seq")
    node, kind, origin, seq = (columns[name][chosen] for name in names)
    log = [node.astype(np.int64), kind == BROADCAST, origin.astype(np.int64), seq]
    assert not len(find_violations(index_log(*log)).row)
    return log


def pairs_in_order(log, rng, count):
    """(row, later row) of two deliveries at one node, the first a cause of the second.

    Both were broadcast before the first delivery, so that this is not what relates them.
    """
    history = index_log(*log)
    is_delivery = np.ones(len(history.node), bool)
    is_delivery[history.broadcast_rows] = False
    pairs = []
    while len(pairs) < count:
        row = int(rng.choice(np.flatnonzero(is_delivery)))
        fits = spread_of(history, history.message[row]).follows & (history.broadcast_rows < row)
        at_node = is_delivery & (history.node == history.node[row])
        later = np.flatnonzero(at_node & fits[history.message])
        if len(later):
            pairs.append((row, int(rng.choice(later))))
    return pairs


def order_with(size, row, new_place):
    """Row numbers with `row` moved behind `new_place`."""
    rows = [i for i in range(size) if i != row]
    return [*rows[:new_place], row, *rows[new_place:]]


@pytest.mark.parametrize(("how", "kind"), [("late", LATE), ("swapped", LATE), ("twice", TWICE)])
def test_it_finds_every_planted_violation(simulated, how, kind):
    rng = np.random.default_rng(11)
    size = len(simulated[0])
    for row, later in pairs_in_order(simulated, rng, 340):
        order = list(range(size))
        if how == "swapped":
            order[row], order[later] = later, row
        elif how == "late":
            order = order_with(size, row, later)
        else:
            order.insert(later + 1, row)
        violations = find_violations(index_log(*(column[order] for column in simulated)))
        planted = later + 1 if how == "twice" else later
        at = np.searchsorted(violations.row, planted)
        assert at < len(violations.row), (row, later)
        assert violations.row[at] == planted
        assert violations.kind[at] == kind


def test_it_finds_every_delivery_of_nothing(simulated):
    rows = np.flatnonzero(~simulated[1])[::7]
    seq = simulated[3].copy()
    seq[rows] += 1
    node, is_broadcast, origin, _ = simulated
    violations = find_violations(index_log(node, is_broadcast, origin, seq))
    assert violations.row[violations.kind == UNKNOWN].tolist() == rows.tolist()
