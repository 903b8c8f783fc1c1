"""Judging a run while it goes on finds what judging the whole log finds."""

import random

import numpy as np
import pytest

from beforehand.kernels.verify.causality import KINDS, find_violations
from beforehand.kernels.verify.index import index_log
from beforehand.kernels.verify.running import BROADCAST, DELIVER, RunningVerdict

NODES = 5


def draw_log(seed, rows):
    """Return node, kind and message of random rows: most deliveries are new, in no causal order."""
    rng, made, log = random.Random(seed), 0, []
    for _ in range(rows):
        node = rng.randrange(NODES)
        if made == 0 or rng.random() < 0.3:
            log.append((node, BROADCAST, made))
            made += 1
            if rng.random() < 0.9:  # else the node delivers its own message later, or never
                log.append((node, DELIVER, made - 1))
        else:
            low = rng.choice([0, max(0, made - 6)])
            message = rng.randrange(low, made)
            log.append((node, DELIVER, -1 if rng.random() < 0.03 else message))
    return np.array(log, np.int64), made


def whole(log, made):
    """Return the violations as `causality` finds them in the whole log."""
    origin = np.full(made + 1, 99)  # the last one is of messages that no node broadcasts
    is_broadcast = log[:, 1] == BROADCAST
    origin[log[is_broadcast, 2]] = log[is_broadcast, 0]
    history = index_log(log[:, 0], is_broadcast, origin[log[:, 2]], log[:, 2])
    counts = np.bincount(find_violations(history).kind, minlength=len(KINDS))
    return dict(zip(KINDS, counts.tolist(), strict=True))


def judge(log, made, live, parts):
    verdict = RunningVerdict(NODES, made, live)
    for part in np.array_split(log, parts):
        node, kind, message = part.T
        verdict.add(
            {
                "node": node.astype(np.int32),
                "kind": kind.astype(np.int8),
                "message": message.astype(np.int32),
            }
        )
    return verdict.counts()


def test_random_logs_have_the_violations_that_the_whole_log_has():
    total = dict.fromkeys(KINDS, 0)
    for seed in range(60):
        log, made = draw_log(seed, 20 + 5 * seed)
        found = judge(log, made, made, 1 + seed % 4)
        assert found == whole(log, made), seed
        total = {kind: total[kind] + found[kind] for kind in KINDS}
    assert min(total.values()) > 50


def test_more_causes_than_there_was_room_for_are_judged():
    """One node delivers 6,000 messages of others between two broadcasts: the arrays grow twice."""
    first = [(i % 4, BROADCAST, i) for i in range(6000)]
    log = [*first, *((4, DELIVER, i) for i in range(6000)), (4, BROADCAST, 6000)]
    log = np.array([*log, (3, DELIVER, 6000), (3, DELIVER, 17)], np.int64)
    assert judge(log, 6001, 6001, 3) == {"late": 1, "twice": 0, "unknown": 0}


def test_a_message_older_than_the_window_is_refused_and_not_counted_wrongly():
    log = np.array([(0, BROADCAST, m) for m in range(300)] + [(1, DELIVER, 2)], np.int64)
    with pytest.raises(ValueError, match="delivered after more others"):
        judge(log, 300, 10, 1)
    assert judge(log, 300, 300, 1) == dict.fromkeys(KINDS, 0)


def test_the_window_turns_and_forgets_nothing_that_is_still_in_it():
    """Each message is delivered by the other node 50 broadcasts later, some of them too late."""
    rows = []
    for m in range(1000):
        rows += [(0, BROADCAST, m), (0, DELIVER, m)]
        if m >= 50:
            first = m - 50 + {0: 1, 1: -1}.get(m % 7, 0)
            rows.append((1, DELIVER, first))
    log = np.array(rows, np.int64)
    found = judge(log, 1000, 60, 5)
    assert found == whole(log, 1000)
    assert found["late"] > 100


def test_messages_in_another_order_than_their_broadcasts_are_refused():
    log = np.array([(0, BROADCAST, 1), (0, BROADCAST, 0)], np.int64)
    with pytest.raises(ValueError, match="numbered"):
        judge(log, 2, 2, 1)
