"""The small parts of the simulator: clocks, streams, links, log, workload, summary."""

import random

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beforehand import events
from beforehand.errors import InputError
from beforehand.mobility.trace import make_trace
from beforehand.protocols.contract.base import Message
from beforehand.protocols.contract.needs import Link, Needs, refuse_unmet
from beforehand.sim import log
from beforehand.sim.clock import Clock
from beforehand.sim.contacts.links import Channel, LinkModel
from beforehand.sim.contacts.summary import summarise
from beforehand.sim.contacts.traffic import Traffic, plan_traffic
from beforehand.sim.contacts.workload import Broadcast, scattered
from beforehand.sim.log import Log, event_table, write_events
from beforehand.sim.streams import generator, mix, stream_key, unit

TRACE = make_trace(["a", "b"], np.array([(0, 1, 5, 60)]), np.array([(0, 0, 100), (1, 50, 90)]))


@given(st.integers(-(10**9), 10**9), st.integers(-1000, 1000), st.integers(0, 10**12))
def test_a_timer_fires_at_the_first_instant_at_which_the_clock_shows_it(offset, drift, due_us):
    clock = Clock(offset, drift)
    t_us = clock.when(due_us)
    assert clock.read(t_us) >= due_us
    assert clock.read(t_us - 1) < due_us


def test_a_clock_with_positive_drift_runs_ahead():
    assert Clock(drift_ppm=100).read(10_000_000) == 10_001_000


def test_draws_by_key_do_not_depend_on_earlier_draws():
    key = stream_key(1, "loss")
    first = unit(key, 3, 4)
    unit(key, 9)
    assert unit(key, 3, 4) == first
    assert unit(stream_key(2, "loss"), 3, 4) != first
    assert unit(stream_key(1, "delay"), 3, 4) != first


def test_draws_are_uniform_and_those_of_splitmix64():
    key = stream_key(0, "test")
    draws = [unit(key, index) for index in range(20_000)]
    assert abs(np.mean(draws) - 0.5) < 0.01
    assert abs(np.mean(np.array(draws) < 0.1) - 0.1) < 0.01
    assert mix(0, 0) == 0xE220A8397B1DCDAF  # the first output of splitmix64 with seed 0


def test_generators_differ_by_stream_and_id():
    first = [generator(1, "transfer", node).random() for node in range(3)]
    assert len(set(first)) == 3
    assert generator(1, "transfer", 0).random() == first[0]


def test_loss_and_duplication_come_at_their_rates():
    model = LinkModel(loss=0.3, duplication=0.2)
    channel = Channel(key=7, down_us=1 << 60)
    copies = [len(channel.arrivals(model, 0, 10)) for _ in range(20_000)]
    assert abs(np.mean(copies) - 0.9) < 0.02
    assert set(copies) == {0, 1, 2}


def test_jitter_reorders_frames_and_ends_with_the_noise():
    model = LinkModel(jitter_us=1000, noise_until_us=50)
    channel = Channel(key=7, down_us=1 << 60)
    noisy = [channel.arrivals(model, 0, 10)[0] for _ in range(100)]
    assert noisy != sorted(noisy)
    assert channel.arrivals(model, 50, 10) == (50,)


@pytest.mark.parametrize(
    ("model", "needs", "skew_us"),
    [
        (LinkModel(loss=0.1), Needs({"contact": Link(reliable=True)}), 0),
        (LinkModel(duplication=0.1), Needs({"contact": Link(reliable=True)}), 0),
        (LinkModel(jitter_us=1), Needs({"contact": Link(fifo=True)}), 0),
        (LinkModel(), Needs({}, clocks_within_us=5), 6),
    ],
)
def test_a_network_that_does_not_meet_the_needs_of_a_core_is_refused(model, needs, skew_us):
    given = Needs({"contact": model.given}, skew_us)
    with pytest.raises(InputError, match="needs"):
        refuse_unmet(needs, given)
    refuse_unmet(Needs({"contact": Link()}), given)
    with pytest.raises(InputError, match="there are none"):
        refuse_unmet(Needs({"detector": Link()}), given)


def test_the_log_keeps_rows_in_order_across_pages(monkeypatch):
    monkeypatch.setattr(log, "PAGE_BYTES", 7 * log.ROW_BYTES)
    recorded = Log()
    rng, expected = random.Random(1), []
    for t_us in range(50):
        ids = [(rng.randrange(9), rng.randrange(10**15)) for _ in range(rng.randrange(4))]
        messages = [Message(id, (), b"") for id in ids]
        recorded.add(t_us, t_us % 5, events.RECEIVE, messages, value=t_us)
        expected += [(t_us, t_us % 5, events.RECEIVE, *id, t_us) for id in ids]
    columns = recorded.columns()
    names = ("t_us", "node", "kind", "origin", "seq", "value")
    assert list(zip(*(columns[name].tolist() for name in names), strict=True)) == expected


def test_an_empty_log_has_all_its_columns():
    assert set(Log().columns()) == set(events.COLUMNS)


def test_events_are_written_atomically_with_names_of_kinds(tmp_path):
    recorded = Log()
    recorded.add(5, 1, events.BROADCAST, [Message((1, 9), (), b"")], value=3)
    recorded.add(6, 2, events.JOIN, log.NO_MESSAGE)
    path = tmp_path / "events.parquet"
    write_events(event_table("r1", recorded.columns()), path)
    assert list(tmp_path.iterdir()) == [path]
    assert [tuple(row.values()) for row in pq.read_table(path).to_pylist()] == [
        ("r1", 0, 5, 1, "broadcast", 1, 9, 3, None),
        ("r1", 1, 6, 2, "join", -1, -1, 0, None),
    ]


def test_periodic_traffic_follows_presence():
    traffic = Traffic(first_us=20, period_us=30, payload_bytes=7)
    found = plan_traffic(TRACE, traffic, 1).broadcasts()
    assert [(b.t_us, b.node) for b in found] == [(20, 0), (50, 0), (70, 1), (80, 0)]


def test_scattered_traffic_is_within_presence_and_the_same_for_all_protocols():
    found = scattered(TRACE, 3, messages=50, payload_bytes=1, lifetimes_us=(5, 9))
    assert found == scattered(TRACE, 3, messages=50, payload_bytes=1, lifetimes_us=(5, 9))
    assert len(found) == 50
    assert all(b.t_us < (100 if b.node == 0 else 90) for b in found)
    assert all(b.t_us >= 50 for b in found if b.node == 1)
    assert {b.lifetime_us for b in found} == {5, 9}
    assert found == sorted(found, key=lambda b: (b.t_us, b.node))
    assert isinstance(found[0], Broadcast)


def test_the_summary_of_a_small_run_equals_the_count_by_hand():
    recorded = Log()
    first, second = Message((0, 1), (), b""), Message((0, 2), (), b"")
    recorded.add(100, 0, events.BROADCAST, [first], value=0)
    recorded.add(100, 0, events.DELIVER, [first])
    recorded.add(150, 0, events.BROADCAST, [second], value=1)
    recorded.add(150, 0, events.DELIVER, [second])
    recorded.add(300, 1, events.RECEIVE, [second])
    recorded.add(500, 1, events.RECEIVE, [first])
    recorded.add(500, 1, events.DELIVER, [first, second])
    recorded.add(700, 2, events.RECEIVE, [second])
    recorded.add(900, 2, events.EXPIRE, [second])
    summary = summarise(recorded.columns())
    assert (summary["broadcasts"], summary["receptions"], summary["deliveries"]) == (2, 3, 4)
    assert summary["expired"] == 1
    assert summary["delivery_ratio"] == 4 / 5
    assert summary["delay_us"] == pytest.approx(
        {"min": 150, "max": 550, "avg": 1100 / 3, "stdev": np.std([150, 400, 550])}
    )
    assert summary["latency_us"]["max"] == 200
    assert summary["latency_us"]["avg"] == 100
    assert summary["age_us"]["max"] == 400
    assert summary["past_entries"]["avg"] == 0.5


def test_the_summary_of_an_empty_log_has_no_delays():
    assert summarise(Log().columns())["delay_us"]["max"] is None
