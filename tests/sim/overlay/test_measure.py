"""The measures of a run equal those of a count one event at a time."""

import dataclasses
from collections import Counter, defaultdict

import msgspec
import numpy as np
import pytest

from beforehand.events import BROADCAST, DELIVER, RECEIVE
from beforehand.sim.overlay.measure import (
    OverlayCase,
    Times,
    count_violations,
    measure_overlay,
    most_buffered,
    run_case,
)
from beforehand.sim.overlay.twin import run_compiled
from beforehand.sim.overlay.world import OverlaySpec

BOTH = (("aggregated", 50), ("plain", 50))


def case(nodes, seed, runs=BOTH):
    spec = OverlaySpec(nodes)
    return OverlayCase(nodes, seed, runs, spec.starts, spec.propagation)


def measure_case(case):
    return [msgspec.to_builtins(measure) for measure, _ in run_case(case)]


def bars(row, name):
    return {bar["value"]: bar["count"] for bar in row["histograms"] if bar["histogram"] == name}


def walk(result):
    """The slow and obvious way: latencies, and the most that each node held back at once."""
    events = result.events
    columns = (events[name].tolist() for name in ("t_us", "node", "kind", "origin"))
    start, received, most = {}, {}, Counter()
    reception, delivery, held = [], [], defaultdict(set)
    rows = list(zip(*columns, strict=True))
    for row, (t_us, node, kind, origin) in enumerate(rows):
        if kind == BROADCAST:
            start[origin] = t_us
        elif node != origin and kind == RECEIVE:
            received[node, origin] = t_us
            held[node].add(origin)
            reception.append(t_us - start[origin])
        elif node != origin and kind == DELIVER:
            held[node].discard(origin)
            delivery.append((t_us - start[origin], t_us - received[node, origin]))
        # A message delivered at the instant of its arrival was never held back.
        if row + 1 == len(rows) or rows[row + 1][0] > t_us:
            most[node] = max(most[node], len(held[node]))
    return reception, delivery, most


@pytest.mark.parametrize("system", ["aggregated", "plain", "single"])
def test_latencies_and_buffers_are_those_of_the_events(system):
    spec = OverlaySpec(32, system)
    (row,) = measure_case(case(32, 5, ((system, 50),)))
    reception, delivery, most = walk(run_compiled(spec, 5))
    assert row["reception_us_avg"] == pytest.approx(np.mean(reception))
    assert row["reception_us_max"] == max(reception)
    assert row["delivery_us_avg"] == pytest.approx(np.mean([late for late, _ in delivery]))
    assert row["held_us_avg"] == pytest.approx(np.mean([wait for _, wait in delivery]))
    assert row["delayed"] == sum(wait > 0 for _, wait in delivery)
    assert bars(row, "buffered") == Counter(most[node] for node in range(32))
    assert row["violations"] == row["missing"] == 0


def test_messages_released_by_an_arrival_do_not_count_as_held_back():
    # The first message waits from 10 to 20, the second from 20 to 30; the third never waits.
    receive_us, deliver_us = np.array([[10, 20, 25]]), np.array([[20, 30, 25]])
    times = Times(np.zeros(3, np.int64), receive_us, deliver_us, np.ones((1, 3), bool))
    assert most_buffered(times).tolist() == [1]
    overlapping = times._replace(deliver_us=np.array([[21, 30, 25]]))
    assert most_buffered(overlapping).tolist() == [2]


def test_packets_are_counted_by_their_contents():
    aggregated, plain = measure_case(case(64, 2))
    assert plain["packets"] == 64 * 63
    assert bars(plain, "per_packet") == {1: 64 * 63}
    per_packet = bars(aggregated, "per_packet")
    assert sum(n * count for n, count in per_packet.items()) == 64 * 63
    assert sum(per_packet.values()) == aggregated["packets"] < plain["packets"]
    assert sum(count for n, count in per_packet.items() if n > 1) == aggregated["packed"]
    assert (
        sum(size * count for size, count in bars(aggregated, "size").items())
        == (aggregated["bytes"])
    )
    assert max(bars(aggregated, "most_packed")) == max(per_packet)
    for name in ("causes", "buffered", "most_packed"):
        assert sum(bars(aggregated, name).values()) == 64


def test_pairs_of_messages_in_one_packet_are_the_same_in_both_systems():
    aggregated, plain = measure_case(case(64, 2))
    in_twos = 2 * bars(aggregated, "per_packet")[2]
    assert aggregated["pairs"] == plain["pairs"] == in_twos
    # They wait at a node before their child, so they come later and are held for less.
    assert aggregated["pair_reception_us_avg"] > plain["pair_reception_us_avg"]
    (alone,) = measure_case(case(64, 2, (("plain", 50),)))
    assert alone["pairs"] == 0
    assert alone["pair_reception_us_avg"] is None


def test_a_delivery_before_its_cause_is_a_violation_and_a_lost_one_is_missing():
    spec = OverlaySpec(16, "plain")
    result = run_compiled(spec, 3)
    events = result.events
    rows = np.flatnonzero((events["kind"] == DELIVER) & (events["node"] == 4))
    swapped = {name: column.copy() for name, column in events.items()}
    swapped["origin"][rows] = swapped["origin"][rows[::-1]]
    assert count_violations(events) == 0
    assert count_violations(swapped) > 0
    kept = np.delete(np.arange(len(events["kind"])), rows[-1])
    lost = {name: column[kept] for name, column in events.items()}
    nothing = np.zeros((16, 16), bool)
    found = measure_overlay(spec, 3, dataclasses.replace(result, events=lost), nothing)
    assert (found.missing, found.violations) == (1, 0)
