"""The compiled overlay world against the one that drives the cores: the same run, row by row."""

import heapq
import io
import math
import random

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from beforehand import events
from beforehand.errors import InputError
from beforehand.kernels.overlay import send
from beforehand.kernels.overlay.state import NONE, heights_of
from beforehand.kernels.queue import heap
from beforehand.kernels.random.laws import travel_us
from beforehand.protocols.vcube.topology import dimension, first_live, live_heights
from beforehand.sim import log
from beforehand.sim.log import packet_senders
from beforehand.sim.overlay.twin import run_compiled
from beforehand.sim.overlay.world import SYSTEMS, Law, OverlaySpec, run
from beforehand.sim.streams import mix, stream_key, unit

FIRST_FAILURE = (Phase.explicit, Phase.generate)
"""A failing seed is enough to repeat a failure; a smaller world would be another world."""


def assert_same(spec, seed, past=None):
    driven, compiled = run(spec, seed, past), run_compiled(spec, seed, past)
    for part in ("events", "packets"):
        ours, theirs = getattr(driven, part), getattr(compiled, part)
        assert list(ours) == list(theirs)
        for name in ours:
            assert np.array_equal(ours[name], theirs[name]), f"{part}.{name} differs"
    for name in ("start", "origin", "seq"):
        assert np.array_equal(getattr(driven.past, name), getattr(compiled.past, name)), name
    return compiled


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize(("nodes", "messages"), [(8, 5), (16, 3), (32, 3), (64, 2), (256, 2)])
def test_the_twin_gives_the_same_packets_and_events(nodes, messages, system):
    result = assert_same(OverlaySpec(nodes, system, messages), seed=nodes)
    assert (result.packets["messages"].max() > 1) == (system != "plain")


@settings(max_examples=20, phases=FIRST_FAILURE)
@given(
    seed=st.integers(0, 2**60),
    nodes=st.integers(2, 20),
    system=st.sampled_from(SYSTEMS),
    messages=st.integers(1, 3),
    mtu_bytes=st.sampled_from((60, 200, 1500)),
    spread=st.sampled_from((0, 50_000, 500_000)),
)
def test_in_any_world(seed, nodes, system, messages, mtu_bytes, spread):
    """Nodes that are no power of two; many at the same instant; packets that are soon full."""
    spec = OverlaySpec(
        nodes,
        system,
        messages,
        starts=Law("uniform", 0, spread),
        propagation=Law("uniform", 0, 300_000),
        mtu_bytes=mtu_bytes,
    )
    assert_same(spec, seed)


def test_with_given_causes():
    spec = OverlaySpec(32, "plain", 2)
    past = run(spec, 7).past
    assert len(past.origin) > 100
    assert_same(OverlaySpec(32, "plain", 2), 7, past)


def bytes_each(columns):
    return sum(values.strides[0] for values in columns.values())


LARGE = 65_536
"""Bytes. A packet with such a payload has a size that narrow rows cannot hold."""
LATE = Law("uniform", 1.0e9, 1.1e9)
"""18 minutes for a hop. The third packet on a path arrives after the time that narrow rows hold."""


def test_an_event_takes_13_bytes_and_a_packet_12():
    result = run_compiled(OverlaySpec(8), 1)
    assert (bytes_each(result.events), bytes_each(result.packets)) == (13, 12)


@pytest.mark.parametrize("changes", [{"payload_bytes": LARGE}, {"propagation": LATE}])
def test_rows_are_wide_where_a_size_or_a_time_needs_it(changes):
    spec = OverlaySpec(8, **changes)
    result = assert_same(spec, 1)
    assert bytes_each(result.events) == 25
    assert max(result.packets["bytes"].max(), result.events["t_us"].max() >> 16) >= 2**15


def test_a_packet_that_arrives_after_all_that_the_calendar_holds_is_refused():
    with pytest.raises(InputError, match=r"a packet arrives after 4\.8 hours"):
        run_compiled(OverlaySpec(8, propagation=Law("uniform", 9.0e9, 9.1e9)), 1)


@pytest.mark.parametrize("messages", [1, 2])
def test_a_log_in_a_file_has_the_same_bytes_whatever_the_rows_take_in_memory(messages):
    spec = OverlaySpec(8, messages=messages)
    files = []
    for result in (run(spec, 1), run_compiled(spec, 1)):
        table = log.event_table("x", result.events, senders=packet_senders(result.events))
        files.append(io.BytesIO())
        pq.write_table(table, files[-1], **log.parquet_options(table))
    assert files[0].getvalue() == files[1].getvalue()
    assert run(spec, 1).events["t_us"].itemsize > run_compiled(spec, 1).events["t_us"].itemsize


def test_kinds_of_events_have_the_codes_of_the_event_log():
    ours = (send.BROADCAST, send.RECEIVE, send.DELIVER, send.SEND)
    assert ours == (events.BROADCAST, events.RECEIVE, events.DELIVER, events.SEND)


@given(
    seed=st.integers(0, 2**60),
    origin=st.integers(0, 2**20),
    seq=st.integers(1, 2**20),
    link=st.integers(0, 2**40),
)
def test_compiled_draws_are_those_of_the_named_streams(seed, origin, seq, link):
    key = stream_key(seed, "propagation")
    drawn = mix(mix(mix(key, origin), seq), link)
    first, second = unit(drawn, 0), unit(drawn, 1)
    normal = math.sqrt(-2 * math.log(1 - first)) * math.cos(2 * math.pi * second)
    expected = [
        int(1000 * unit(drawn)),
        int(1000 * (first + second) / 2),
        max(0, round(100_000 + 36_000 * normal)),
        int(-500 * math.log(1 - unit(drawn))),
    ]
    laws = [(0.0, 1000.0), (0.0, 1000.0), (100_000.0, 36_000.0), (500.0, 0.0)]
    found = [
        travel_us(np.uint64(key), origin, seq, link, law, a, b) for law, (a, b) in enumerate(laws)
    ]
    assert found == expected


@given(st.integers(1, 20), st.sampled_from((0, NONE)))
def test_heights_are_those_of_the_cores(nodes, root):
    live = [1 if i < nodes else 0 for i in range(1 << dimension(nodes))]
    levels = range(1, dimension(nodes) + 1)
    child = [[NONE] + [first_live(i, level, live) for level in levels] for i in range(nodes)]
    heights = heights_of(np.array(child, np.int32), root)
    for node in range(nodes):
        by_root = live_heights(node, live)
        expected = [by_root[origin if root == NONE else root] for origin in range(nodes)]
        assert heights[node].tolist() == expected


@given(st.lists(st.tuples(st.integers(0, heap.DUE_US_MAX - 1), st.booleans()), max_size=60))
def test_the_heap_is_a_heap(steps):
    """Random pushes and pops beside Python's own."""
    ours, size, theirs = np.empty(len(steps), np.int64), 0, []
    for ticket, (due_us, is_pop) in enumerate(steps):
        if is_pop and theirs:
            expected = heapq.heappop(theirs)
            assert (heap.due_us(ours[0]), heap.ticket(ours[0])) == expected
            size = heap.pop(ours, size)
        else:
            heapq.heappush(theirs, (due_us, ticket))
            size = heap.push(ours, size, heap.event(due_us, ticket))
        assert size == len(theirs)


def test_the_heap_sorts_many_with_ties():
    rng = random.Random(1)
    events = [heap.event(rng.randrange(50), ticket) for ticket in range(3000)]
    ours, size = np.empty(len(events), np.int64), 0
    for event in events:
        size = heap.push(ours, size, event)
    found = []
    while size:
        found.append(int(ours[0]))
        size = heap.pop(ours, size)
    assert found == sorted(events)
    assert heap.event(heap.DUE_US_MAX - 1, heap.TICKETS_MAX - 1) == 2**63 - 1
