"""The world of contacts gives the guarantees of a network, and no others."""

import os
import subprocess
import sys
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beforehand.errors import InputError
from beforehand.events import KINDS, RECEIVE
from beforehand.mobility.generators import crowd
from beforehand.mobility.trace import make_trace
from beforehand.protocols.epidemic.epidemic import Epidemic
from beforehand.protocols.epidemic.options import Options
from beforehand.protocols.orders.barrier import Barrier
from beforehand.protocols.orders.order import Lifetimes
from beforehand.protocols.orders.unordered import Unordered
from beforehand.sim.clock import Clock
from beforehand.sim.contacts.links import LinkModel
from beforehand.sim.contacts.run import Spec, run_one
from beforehand.sim.contacts.workload import Broadcast, scattered
from beforehand.sim.contacts.world import ContactWorld
from beforehand.sim.streams import generator
from tests.sim.flood import ideal_flood

SECOND = 1_000_000


def make_world(trace, workload, *, order=Unordered, options=None, lifetimes=None, **extra):
    durable = bool(extra.get("crashes"))

    def make_core(node):
        made = order(node) if lifetimes is None else order(node, lifetimes)
        return Epidemic(node, made, generator(1, "transfer", node), options, durable=durable)

    world = ContactWorld(trace, make_core, workload, seed=1, **extra)
    world.run(events_max=1_000_000)
    return world


def trace_of(contacts, presence=None):
    names = [str(node) for node in range(1 + max(max(a, b) for a, b, _, _ in contacts))]
    rows = np.array([(a, b, up * SECOND, down * SECOND) for a, b, up, down in contacts])
    if presence is not None:
        presence = np.array([(n, up * SECOND, down * SECOND) for n, up, down in presence])
    return make_trace(names, rows, presence)


def speak(t_s, node, size=0, lifetime_us=None):
    return Broadcast(int(t_s * SECOND), node, size, lifetime_us)


def events(world, *kinds):
    columns = world.log.columns()
    rows = zip(
        *(columns[name].tolist() for name in ("t_us", "node", "kind", "origin", "seq")), strict=True
    )
    return [
        (t_us, node, KINDS[kind], (origin, seq))
        for t_us, node, kind, origin, seq in rows
        if KINDS[kind] in kinds
    ]


def receptions(world):
    """As `ideal_flood` gives them: messages numbered per origin."""
    numbers, counts = {}, defaultdict(int)
    found = {}
    for t_us, node, kind, id in events(world, "broadcast", "receive"):
        if kind == "broadcast":
            counts[node] += 1
            numbers[id] = (node, counts[node])
        else:
            found[node, numbers[id]] = t_us
    return found


@st.composite
def small_traces(draw):
    nodes = draw(st.integers(2, 6))
    contacts = []
    for _ in range(draw(st.integers(1, 15))):
        a, b = draw(st.lists(st.integers(0, nodes - 1), min_size=2, max_size=2, unique=True))
        up = draw(st.integers(0, 30))
        contacts.append((a, b, up, up + draw(st.integers(1, 10))))
    return trace_of([*contacts, (0, nodes - 1, 50, 51)])


@given(
    small_traces(),
    st.integers(0, 1000),
    st.sampled_from([Unordered, Barrier]),
    st.sampled_from([None, 3, 12]),
)
def test_without_latency_and_bandwidth_limit_dissemination_equals_an_ideal_flood(
    trace, seed, order, lifetime_s
):
    workload = scattered(trace, seed, messages=12, payload_bytes=10, lifetimes_us=())
    workload = sorted({(b.node, b.t_us): b for b in workload}.values())
    lifetimes, lifetime_us = None, None
    if lifetime_s is not None:
        lifetime_us = lifetime_s * SECOND
        lifetimes = Lifetimes(lifetime_us, lifetime_us, skew_us=0)
    world = make_world(trace, workload, order=order, lifetimes=lifetimes)
    if order is Barrier and lifetimes:  # deadlines that grow along causality may be later by a bit
        return assert_close(receptions(world), ideal_flood(trace, workload, lifetime_us))
    assert receptions(world) == ideal_flood(trace, workload, lifetime_us)
    return None


def assert_close(found, ideal):
    assert ideal.items() <= found.items()


def test_a_crowd_of_hundreds_equals_the_ideal_flood():
    trace = crowd.generate(3, nodes_mean=200, hours=1)
    workload = scattered(trace, 3, messages=300, payload_bytes=10, lifetimes_us=())
    world = make_world(trace, workload)
    ideal = ideal_flood(trace, workload)
    assert len(ideal) > 5000
    assert receptions(world) == ideal


def test_the_end_of_a_contact_cuts_off_frames_in_transit():
    trace = trace_of([(0, 1, 0, 10), (0, 1, 20, 30)])
    slow = LinkModel(latency_us=SECOND)
    world = make_world(trace, [speak(7.5, 0)], links=slow)  # announce, request, data: 3 s
    assert receptions(world) == {(1, (0, 1)): 23 * SECOND}
    assert world.frames_lost == 1


def test_one_frame_at_a_time_in_each_direction():
    trace = trace_of([(0, 1, 0, 100)])
    links = LinkModel(bytes_per_s=100)
    options = Options(frame_bytes_max=1, transfer="oldest")
    workload = [speak(0, 0, 84), speak(0, 0, 84)]  # 100 bytes of message, 8 of frame
    found = receptions(make_world(trace, workload, links=links, options=options))
    first, second = found[1, (0, 1)], found[1, (0, 2)]
    assert second - first == 1_080_000


def test_a_node_that_returns_keeps_its_registries():
    trace = trace_of([(0, 1, 0, 5), (0, 1, 20, 30)], [(0, 0, 30), (1, 0, 10), (1, 20, 30)])
    world = make_world(trace, [speak(1, 0), speak(12, 0)], order=Barrier)
    delivered = [row[3] for row in events(world, "deliver") if row[1] == 1]
    assert delivered == [(0, 1), (0, 2)]
    assert [row[1:3] for row in events(world, "join", "leave")][:4] == [
        (0, "join"),
        (1, "join"),
        (1, "leave"),
        (1, "join"),
    ]


def test_a_node_that_is_off_broadcasts_nothing_and_fires_no_timer():
    trace = trace_of([(0, 1, 20, 30)], [(0, 0, 30), (1, 0, 10), (1, 20, 30)])
    world = make_world(trace, [speak(9, 1), speak(15, 1)], options=Options(announce_us=8 * SECOND))
    assert [row[:2] for row in events(world, "broadcast")] == [(9 * SECOND, 1)]
    assert all(t_us >= 20 * SECOND for t_us in receptions(world).values())


def test_a_timer_that_came_due_while_a_node_was_off_fires_when_it_returns():
    lifetimes = Lifetimes(8 * SECOND, 8 * SECOND, skew_us=0)
    contacts = [(0, 1, 0, 2), (1, 2, 4, 5)]
    trace = trace_of(contacts, [(0, 0, 40), (1, 0, 40), (2, 0, 6), (2, 20, 40)])
    # The second message pushes the first out of node 1: node 2 gets it alone, and is off when
    # both expire.
    workload = [speak(0.5, 0), speak(3.5, 1)]
    options = Options(capacity=1)
    world = make_world(trace, workload, order=Barrier, lifetimes=lifetimes, options=options)
    assert [row[1:] for row in events(world, "expire")] == [(2, "expire", (1, 11_500_000))]
    assert [row[0] for row in events(world, "expire")] == [20 * SECOND]


def test_a_crash_loses_unsaved_state_and_a_recovery_restores_saved_state():
    trace = trace_of(
        [(0, 1, 0, 9), (0, 2, 20, 30)], [(0, 0, 10), (0, 15, 40), (1, 0, 40), (2, 0, 40)]
    )
    crashes = frozenset({(0, 10 * SECOND)})
    workload = [speak(1, 1), speak(2, 0), speak(16, 0)]
    world = make_world(trace, workload, order=Barrier, crashes=crashes)
    assert [row[1:3] for row in events(world, "crash", "recover")] == [(0, "crash"), (0, "recover")]
    assert [row[3] for row in events(world, "deliver") if row[1] == 2] == [(1, 1), (0, 1), (0, 2)]
    assert [row[3] for row in events(world, "deliver") if row[1] == 0] == [(1, 1), (0, 1), (0, 2)]


def test_clock_offsets_shift_deadlines():
    trace = trace_of([(0, 1, 0, 100)], [(0, 0, 100), (1, 0, 100)])
    lifetimes = Lifetimes(10 * SECOND, 10 * SECOND, skew_us=5 * SECOND)
    clocks = {0: Clock(offset_us=3 * SECOND)}
    world = make_world(trace, [speak(1, 0)], order=Barrier, lifetimes=lifetimes, clocks=clocks)
    assert [row[3] for row in events(world, "broadcast")] == [(0, 14 * SECOND)]


def test_loss_is_refused_without_retransmission():
    trace = trace_of([(0, 1, 0, 100)])
    with pytest.raises(InputError, match="reliable links"):
        make_world(trace, [speak(1, 0)], links=LinkModel(loss=0.1))
    world = make_world(
        trace, [speak(1, 0)], links=LinkModel(loss=0.6), options=Options(retry_us=SECOND)
    )
    assert (1, (0, 1)) in receptions(world)
    assert world.frames_lost > 0


def test_frames_duplicated_in_transit_are_received_once():
    trace = trace_of([(0, 1, 0, 100)])
    links = LinkModel(duplication=0.9, jitter_us=SECOND)
    workload = [speak(t, 0) for t in range(20)]
    world = make_world(trace, workload, links=links, options=Options(retry_us=SECOND))
    assert len(events(world, "receive")) == 20
    assert world.counters().duplicate > 0


def test_two_protocols_on_one_seed_see_the_same_traffic_and_noise():
    trace = crowd.generate(5, nodes_mean=60, hours=0.5)
    runs = [
        run_one(trace, Spec(p, seed=5, links=LinkModel(loss=0.2), layer=Options(retry_us=SECOND)))
        for p in ("none", "none", "causal")
    ]
    spoken = [r.columns["t_us"][r.columns["kind"] == 0].tolist() for r in runs]
    assert spoken[0] == spoken[1] == spoken[2]
    assert np.array_equal(runs[0].columns["seq"], runs[1].columns["seq"])


def test_gauges_are_sampled_only_when_asked_for():
    trace = crowd.generate(5, nodes_mean=60, hours=0.5)
    assert run_one(trace, Spec("causal")).gauges == []
    gauges = run_one(trace, Spec("causal", gauge_us=10 * SECOND)).gauges
    assert {gauge for _, _, gauge, _ in gauges} == {"cache", "barrier", "delivered", "pending"}
    times = defaultdict(list)
    for t_us, node, gauge, _ in gauges:
        if gauge == "cache":
            times[node].append(t_us)
    assert all(np.diff(t).min(initial=10 * SECOND) >= 10 * SECOND for t in times.values())


def test_a_world_that_does_not_settle_is_an_error():
    trace = trace_of([(0, 1, 0, 10)])
    world = ContactWorld(
        trace,
        lambda node: Epidemic(node, Unordered(node), generator(1, "t", node)),
        [speak(1, 0)],
        seed=1,
    )
    with pytest.raises(RuntimeError, match="not quiet"):
        world.run(events_max=3)


@settings(max_examples=30)
@given(st.integers(0, 10_000))
def test_same_seed_gives_the_same_log(seed):
    trace = crowd.generate(seed, nodes_mean=20, hours=0.3)
    links, layer = LinkModel(loss=0.1), Options(retry_us=SECOND)
    spec = Spec("delta", seed=seed, lifetime_us=300 * SECOND, links=links, layer=layer)
    first, second = run_one(trace, spec), run_one(trace, spec)
    assert all(np.array_equal(first.columns[c], second.columns[c]) for c in first.columns)


def test_the_event_log_is_the_same_byte_for_byte_whatever_the_hash_seed(tmp_path):
    running, paths = [], []
    for hash_seed in ("1", "2"):
        path = tmp_path / f"{hash_seed}.parquet"
        command = [sys.executable, "-m", "beforehand.cli", "simulate", "--example"]
        command += ["--protocol", "delta", "--lifetime", "5m", "--seed", "7", "--json"]
        command += ["--loss", "0.05", "--retry", "3s", "--period", "10m", "--events", str(path)]
        env = os.environ | {"PYTHONHASHSEED": hash_seed}
        running.append(subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL))
        paths.append(path)
    assert [process.wait() for process in running] == [0, 0]
    written = [path.read_bytes() for path in paths]
    assert len(written[0]) > 100_000
    assert written[0] == written[1]


def test_receive_means_the_network_and_comes_before_deliver():
    trace = crowd.generate(5, nodes_mean=60, hours=0.5)
    columns = run_one(trace, Spec("causal")).columns
    came = set()
    for kind, node, origin, seq in zip(
        *(columns[name].tolist() for name in ("kind", "node", "origin", "seq")), strict=True
    ):
        if kind == RECEIVE:
            came.add((node, origin, seq))
        elif KINDS[kind] == "deliver":
            assert node == origin or (node, origin, seq) in came
