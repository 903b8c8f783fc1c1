"""The compiled twin writes the event log of the cores, or refuses by name.

Uncompiled (NUMBA_DISABLE_JIT=1), the same tests check every index: mutants run that way.
"""

import os
import subprocess
import sys

import msgspec
import numpy as np
import pytest

from beforehand import events
from beforehand.errors import InputError
from beforehand.kernels.epidemic import barrier, cache, channel, state
from beforehand.kernels.epidemic.sets import ring
from beforehand.mobility.trace import make_trace
from beforehand.protocols.contract.base import Message
from beforehand.protocols.epidemic import frames, sizes
from beforehand.protocols.epidemic.cache import EVICTED_MAX
from beforehand.protocols.epidemic.options import Options
from beforehand.protocols.epidemic.peer import KNOWN_TO_PEER_MIN
from beforehand.protocols.orders.order import PURGE_AT_MIN
from beforehand.sim.contacts.engines import play_run
from beforehand.sim.contacts.fixed import make_fixed
from beforehand.sim.contacts.links import LinkModel
from beforehand.sim.contacts.plan import live_at_once
from beforehand.sim.contacts.run import Spec, run_one
from beforehand.sim.contacts.traffic import Event, Traffic, plan_traffic
from beforehand.sim.contacts.twin import MESSAGES_MAX, Twin, Uncovered, refusal
from tests.sim.contacts.engine_worlds import (
    compare,
    compare_engines,
    draw_world,
    expiring_world,
)

SECOND = 1_000_000
PAIR = make_trace(["a", "b"], np.array([(0, 1, 0, 100 * SECOND)]))


def test_a_run_without_broadcasts_is_played():
    spec = Spec("causal", traffic=Traffic(first_us=101 * SECOND))
    found = compare_engines(PAIR, spec)
    assert found.difference == found.refused == ""
    assert found.rows == 4


def same(first, count, size=0.1):
    rows = 0
    for seed in range(first, first + count):
        found = compare(seed, size=size)
        assert not found.difference, f"seed {seed}: {found.difference}"
        assert not found.refused, f"seed {seed}: {found.refused}"
        rows += found.rows
    return rows


def test_the_twin_writes_the_log_of_the_cores_in_200_random_worlds():
    assert same(1, 200) > 50_000


def kinds(trace, spec):
    fixed = make_fixed(trace, spec, plan_traffic(trace, spec.traffic, spec.seed))
    return [
        (name, type(value), getattr(value, "dtype", None))
        for name, value in fixed._asdict().items()
    ]


def test_the_constants_of_all_runs_have_the_types_that_are_compiled_beforehand():
    """Numba compiles the world, for a minute, for each other type: `loss = 0` is an integer."""
    compiled = kinds(PAIR, Spec("causal"))
    for seed in range(40):
        assert kinds(*draw_world(seed, size=0.1)) == compiled, f"seed {seed}"


def test_without_room_to_spare_no_index_is_out_of_bounds():
    code = "from tests.sim.contacts.test_twin import same; print(same(1000, 8))"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 500


def test_in_a_few_random_worlds_nothing_differs():
    assert same(2000, 12) > 500


def test_the_twin_requests_no_expired_message_from_another_peer():
    """In this world a request would go to another peer too late."""
    assert same(23, 1) > 200


def test_messages_that_expired_while_a_node_was_away_expire_when_it_returns():
    trace, spec = expiring_world()
    found = compare_engines(trace, spec)
    assert found.difference == found.refused == ""
    log = run_one(trace, spec).columns
    late = (log["kind"] == events.EXPIRE) & (log["node"] == 2) & (log["t_us"] >= 78 * SECOND)
    assert late.sum() > 10
    assert (log["kind"] == events.BROADCAST).sum() > 4096 + 1000


def test_a_run_whose_deadlines_do_not_grow_with_the_broadcasts_is_played():
    trace = make_trace(
        ["a", "b", "c"],
        np.array([(0, 1, 0, 10 * SECOND)]),
        np.array([(n, 0, 10 * SECOND) for n in range(3)]),
    )
    told = [(SECOND, "a"), (SECOND, "a"), (SECOND + 1, "b"), (SECOND + 1, "c")]
    traffic = Traffic(law="file", events=tuple(Event(t_us, name, 0) for t_us, name in told))
    spec = Spec(
        "delta",
        lifetime_us=SECOND,
        traffic=traffic,
        links=LinkModel(latency_us=0, bytes_per_s=None),
        layer=Options(announce_us=0),
    )
    found = compare_engines(trace, spec)
    assert found.difference == found.refused == ""
    log = run_one(trace, spec).columns
    seqs = log["seq"][log["kind"] == events.BROADCAST]
    assert (np.diff(seqs) < 0).any()


def test_frames_have_their_ids_in_the_order_of_deadlines_and_not_of_broadcasts():
    """Three broadcasts at one time have deadlines a microsecond apart; that of b lies between."""
    trace = make_trace(
        ["a", "b", "c"],
        np.array([(0, 1, 2 * SECOND, 3 * SECOND), (1, 2, 4 * SECOND, 9 * SECOND)]),
        np.array([(n, 0, 10 * SECOND) for n in range(3)]),
    )
    told = [(SECOND, "a"), (SECOND, "a"), (SECOND, "a"), (SECOND + 1, "b")]
    spec = Spec(
        "delta",
        lifetime_us=20 * SECOND,
        traffic=Traffic(law="file", events=tuple(Event(t_us, name, 0) for t_us, name in told)),
        links=LinkModel(latency_us=1_000, bytes_per_s=10_000),
        layer=Options(announce_us=0, frame_bytes_max=frames.FRAME_BYTES + 3 * frames.ID_BYTES),
    )
    found = compare_engines(trace, spec)
    assert found.difference == found.refused == ""
    log = run_one(trace, spec).columns
    seqs = log["seq"][(log["kind"] == events.RECEIVE) & (log["node"] == 2)]
    assert len(seqs) == 4


def test_every_word_has_the_place_of_its_remainder_in_the_ring():
    place = getattr(ring, "py_func", ring)  # an inlined part cannot be called from Python
    for words in (64, 128, 192, 704, 64 * 16_384):
        fixed = make_fixed(PAIR, Spec("causal"), plan_traffic(PAIR, Traffic(), 0))
        fixed = fixed._replace(words=words, inverse=-(-(1 << 40) // words))
        last = MESSAGES_MAX >> 6
        for w in {*range(200), *range(words - 2, words + 2), *range(last - 200, last)}:
            assert place(fixed, w) == w % words


def bounded_world(capacity, *, nodes=3, broadcasts):
    """Return a line of nodes in contact all the time, of which the first one broadcasts."""
    trace = make_trace(
        [str(node) for node in range(nodes)],
        np.array([(n, n + 1, 0, 100 * SECOND) for n in range(nodes - 1)]),
    )
    period_us = 90 * SECOND // broadcasts
    traffic = Traffic(first_us=SECOND, period_us=period_us, sources=("0",))
    links = LinkModel(latency_us=0, bytes_per_s=None)
    layer = Options(announce_us=SECOND, capacity=capacity)
    return trace, Spec("causal", traffic=traffic, links=links, layer=layer)


def test_messages_are_dropped_and_received_again_like_those_of_the_cores():
    """Node 2 meets the others in turn, and its cache is too small for what it waits for."""
    again = dropped = 0
    for seed in range(4):
        contacts = [(0, 1, t, t + 3) for t in range(0, 90, 5)]
        contacts += [(1, 2, t, t + 2) for t in range(3, 90, 9)]
        contacts += [(0, 2, t, t + 2) for t in range(6, 90, 7)]
        seconds = np.array([(a, b, up * SECOND, down * SECOND) for a, b, up, down in contacts])
        spec = Spec(
            ("causal", "delta")[seed % 2],
            seed=seed,
            lifetime_us=(None, 30 * SECOND)[seed % 2],
            traffic=Traffic(first_us=0, period_us=700_000, payload_bytes=0, law="poisson"),
            layer=Options(announce_us=500_000, frame_messages_max=2, capacity=8),
        )
        trace = make_trace(["a", "b", "c"], seconds)
        found = compare_engines(trace, spec)
        assert found.difference == found.refused == ""
        counters = run_one(trace, spec).counters
        again += counters.received - counters.delivered
        dropped += counters.dropped
    assert min(again, dropped) > 10


def test_more_evictions_than_a_node_notes_are_refused_and_not_approximated():
    trace, spec = bounded_world(1, broadcasts=3000)
    with pytest.raises(Uncovered, match="evicts more than"):
        Twin(trace, spec, note=lambda _: None).run()
    assert play_run(trace, spec, "auto").engine == "cores"


def test_more_known_messages_than_a_node_notes_are_refused_and_not_approximated():
    trace, spec = bounded_world(100, nodes=2, broadcasts=3000)
    spec = msgspec.structs.replace(spec, protocol="delta", lifetime_us=SECOND)
    with pytest.raises(Uncovered, match="is known to have more"):
        Twin(trace, spec, note=lambda _: None).run()


def star(leaves):
    """Return a world in which one node is in contact with all others at once."""
    trace = make_trace(
        [str(node) for node in range(leaves + 1)],
        np.array([(0, n, 0, 100 * SECOND) for n in range(1, leaves + 1)]),
    )
    traffic = Traffic(first_us=SECOND, period_us=SECOND, payload_bytes=0, sources=("0", "1"))
    links = LinkModel(latency_us=1000, bytes_per_s=None)
    return trace, Spec("causal", traffic=traffic, links=links, layer=Options(announce_us=0))


def test_a_node_with_many_peers_has_the_memory_for_all_frames_of_a_step():
    trace, spec = star(30)
    found = compare_engines(trace, spec)
    assert found.difference == found.refused == ""
    lossy = msgspec.structs.replace(
        spec,
        links=LinkModel(latency_us=1000, loss=0.2, duplication=0.5),
        layer=Options(announce_us=0, retry_us=SECOND),
    )
    found = compare_engines(trace, lossy)
    assert found.difference == found.refused == ""


@pytest.mark.parametrize("seed", [404, 413, 415])
def test_a_peer_that_has_nothing_is_not_asked_again_too_early(seed):
    """An answer without messages shows that a peer is there, as data does: in these worlds a
    request would be repeated before its time."""
    found = compare(seed, size=0.5)
    assert not found.difference


def test_a_message_that_a_full_cache_drops_at_once_still_sets_the_timer_of_the_order():
    """Of 420 small worlds this is the one in which that shows."""
    assert same(328, 1) > 200


def test_evictions_from_caches_bounded_in_bytes_alone_are_recorded():
    spec = Spec(
        "causal",
        traffic=Traffic(first_us=0, period_us=SECOND),
        layer=Options(capacity_bytes=5000),
    )
    done = run_one(PAIR, spec)
    assert done.evictions is not None
    assert len(done.evictions) == done.counters.evicted > 10


REFUSED = {
    "eviction `shares`": Spec("causal", layer=Options(capacity=3, eviction="shares")),
    "push": Spec("causal", layer=Options(push=True)),
    "version vectors": Spec("causal", layer=Options(digest_after=3)),
    "literal deadlines": Spec("delta", lifetime_us=SECOND, literal_deadlines=True),
    "the protocol `plausible-4`": Spec("plausible-4"),
}


@pytest.mark.parametrize("named", REFUSED)
def test_an_option_that_the_twin_lacks_is_refused_by_name(named):
    spec = REFUSED[named]
    assert named.strip() in str(refusal(PAIR, spec))
    with pytest.raises(InputError, match="twin cannot play"):
        play_run(PAIR, spec, "twin")
    played = play_run(PAIR, spec, "auto")
    assert played.engine == "cores"
    assert named.strip() in played.why


def test_an_unknown_engine_is_refused():
    with pytest.raises(InputError, match="unknown engine"):
        play_run(PAIR, Spec("causal"), "fast")


def test_the_result_names_the_engine_of_the_run():
    played = [play_run(PAIR, Spec("causal"), engine) for engine in ("cores", "twin")]
    assert [one.engine for one in played] == ["cores", "twin"]
    assert [one.why for one in played] == ["", ""]


def test_a_log_made_of_small_pages_is_the_whole_log():
    spec = Spec("causal", seed=3, traffic=Traffic(first_us=0, period_us=SECOND))
    small = Twin(PAIR, spec, rows_per_page=16, note=lambda _: None).run()
    whole = Twin(PAIR, spec, note=lambda _: None).run()
    assert len(whole.columns["kind"]) > 3 * 16
    for name, column in whole.columns.items():
        assert np.array_equal(small.columns[name], column)
        assert small.columns[name].dtype == column.dtype == np.dtype(events.COLUMNS[name])
    assert np.array_equal(small.senders, whole.senders)


def test_compiled_code_and_the_rest_of_the_package_agree_on_constants():
    for name in ("BROADCAST", "RECEIVE", "DELIVER", "EXPIRE", "DROP", "JOIN", "LEAVE"):
        assert getattr(state, name) == getattr(events, name)
    for name in ("FRAME_BYTES", "ID_BYTES", "MESSAGE_BYTES"):
        assert getattr(channel, name) == getattr(frames, name)
    assert cache.PURGE_MIN == barrier.BARRIER_MIN == PURGE_AT_MIN
    assert cache.EVICTED_MAX == EVICTED_MAX
    assert cache.KNOWN_MIN == KNOWN_TO_PEER_MIN


def test_compiled_code_and_the_cores_agree_on_the_size_of_a_held_message():
    count = 40
    told = tuple(Event(size * SECOND, "a", 100 * size) for size in range(count))
    traffic = plan_traffic(PAIR, Traffic(law="file", events=told), 0)
    spec = Spec("causal")
    fixed = make_fixed(PAIR, spec, traffic)
    made = state.make_state(fixed, nodes=2, messages=count, rows=1, slots=1, links=2, room=2)
    size_of = getattr(cache.held_bytes, "py_func", cache.held_bytes)
    for m in range(count):
        made.past_size[m] = m
        past = tuple((origin, 1) for origin in range(m))
        message = Message((0, m), past, bytes(100 * m))
        assert size_of(fixed, made, m) == sizes.held_bytes(message)


@pytest.mark.parametrize(("lifetime_us", "live"), [(None, 4), (1, 1), (10, 2), (11, 3), (99, 4)])
def test_how_many_messages_are_alive_at_once(lifetime_us, live):
    assert live_at_once(np.array([0, 10, 11, 20]), lifetime_us) == live
