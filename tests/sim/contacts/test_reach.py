"""Reach: receptions out of those that were possible, and a dash where there were none."""

from __future__ import annotations

import random

import numpy as np
import pytest

from beforehand.events import BROADCAST, CRASH, JOIN, LEAVE, RECEIVE, RECOVER
from beforehand.mobility.generators.crowd import generate
from beforehand.protocols.contract.base import Message
from beforehand.report.notation import show_difference, show_time
from beforehand.sim.contacts.run import Spec, run_one
from beforehand.sim.contacts.summary import count_reachable, describe, summarise
from beforehand.sim.log import NO_MESSAGE, Log
from beforehand.units import show_duration, show_share


def count_slowly(trace, columns, life_us):
    """Every message against every node."""
    end_us = trace.end_us + 1
    spans = {}
    for node, up_us, down_us in trace.presence.tolist():
        spans.setdefault(node, []).append((up_us, down_us))
    spoken = [
        (t, n)
        for t, n, k in zip(*(columns[c].tolist() for c in ("t_us", "node", "kind")), strict=True)
        if k == BROADCAST
    ]
    return sum(
        any(t < down and up < min(end_us, t + (life_us or end_us)) for up, down in there)
        for t, sender in spoken
        for node, there in spans.items()
        if node != sender
    )


@pytest.mark.parametrize("lifetime_us", [None, 60_000_000, 600_000_000])
def test_reachable_receivers_equal_the_count_by_hand(lifetime_us):
    trace = generate(5, nodes_mean=25, hours=0.3)
    spec = Spec("none", seed=1, lifetime_us=lifetime_us)
    columns = run_one(trace, spec).columns
    reachable = count_reachable(columns, spec.life_us)
    assert reachable == count_slowly(trace, columns, lifetime_us)
    found = summarise(columns, life_us=spec.life_us)
    assert 0 < found["receptions"] <= reachable == found["reachable"]
    assert found["reach"] == found["receptions"] / reachable


def test_a_node_that_leaves_and_returns_counts_once_for_a_message():
    rng = random.Random(4)
    for _ in range(60):
        log, stays, spoken = Log(), {}, []
        events = []
        for node in range(5):
            times = sorted(rng.sample(range(100), 2 * rng.randint(1, 4)))
            stays[node] = list(zip(times[::2], times[1::2], strict=True))
            for at, (up, down) in enumerate(stays[node]):
                events += [(up, 1, node, RECOVER if at else JOIN)]
                events += [(down, 0, node, CRASH if rng.random() < 0.5 else LEAVE)]
                spoken += [(t, node) for t in range(up, down) if rng.random() < 0.1]
        events += [(t, 2, node, BROADCAST) for t, node in spoken]
        for seq, (t, _, node, kind) in enumerate(sorted(events)):
            message = Message((node, seq), (), b"")
            log.add(t, node, kind, (message,) if kind == BROADCAST else NO_MESSAGE)
        life = rng.choice([None, 5, 30])
        expected = sum(
            any(t < down and up < t + (life or 1000) for up, down in there)
            for t, sender in spoken
            for node, there in stays.items()
            if node != sender
        )
        assert count_reachable(log.columns(), life) == expected


def test_a_message_received_again_counts_once_as_reached():
    log, message = Log(), Message((0, 7), (), b"")
    log.add(0, 0, JOIN, NO_MESSAGE)
    log.add(0, 1, JOIN, NO_MESSAGE)
    log.add(1, 0, BROADCAST, (message,))
    log.add(2, 1, RECEIVE, (message, message))
    found = summarise(log.columns())
    assert (found["receptions"], found["again"], found["reachable"]) == (1, 1, 1)
    assert found["reach"] == 1


def test_without_broadcasts_the_delivery_ratio_is_unknown_not_1():
    summary = summarise(Log().columns())
    assert summary["delivery_ratio"] is None
    assert summary["reach"] is None
    assert show_share(None) == "–"
    assert show_share(0.5) == "50.00 %"


def test_an_isolated_node_has_no_reachable_receivers():
    log = Log()
    log.add(0, 0, JOIN, NO_MESSAGE)
    log.add(1, 0, BROADCAST, (Message((0, 1), (), b""),))
    assert summarise(log.columns())["reach"] is None


def test_the_average_delay_without_deliveries_was_zero():
    assert set(describe(np.array([], np.int64)).values()) == {None}
    assert describe(np.array([3, 5]))["avg"] == 4
    assert show_duration(None) == show_time(float("nan")) == "–"
    assert show_difference(float("nan"), 3.0) == "–"
