"""The tables of nodes, messages and contacts equal those of a second, slow count."""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean

import numpy as np
import pytest

from beforehand.events import BROADCAST, DELIVER, RECEIVE
from beforehand.mobility.generators.crowd import generate
from beforehand.mobility.trace import make_trace
from beforehand.pipeline.contacts.metrics import (
    PERMILLE,
    find_meetings,
    summarise_messages,
    summarise_nodes,
)
from beforehand.pipeline.contacts.plan import Run
from beforehand.pipeline.contacts.positions import write_trace
from beforehand.pipeline.contacts.simulate import simulate
from beforehand.pipeline.datasets import plan_dataset
from beforehand.pipeline.stages import Job, Task
from beforehand.sim.contacts.run import Spec, run_one
from beforehand.sim.contacts.summary import measure_delays
from beforehand.sim.contacts.traffic import Event, Traffic


@pytest.fixture(scope="module")
def columns():
    trace = generate(4, nodes_mean=20, hours=0.2)
    return run_one(trace, Spec("delta", seed=3, lifetime_us=120_000_000)).columns


def rows_of(columns):
    names = ("kind", "t_us", "node", "origin", "seq", "value")
    return list(zip(*(columns[name].tolist() for name in names), strict=True))


def test_every_node_and_every_message_has_a_row_of_its_own(columns):
    rows = rows_of(columns)
    sent = {(o, q): (t, value) for kind, t, _, o, q, value in rows if kind == BROADCAST}
    at_node, of_message = defaultdict(list), defaultdict(list)
    for kind, t, node, o, q, _ in rows:
        if kind in (BROADCAST, RECEIVE, DELIVER):
            at_node[node].append((kind, t - sent[o, q][0], node == o))
            of_message[o, q].append((kind, t - sent[o, q][0]))
    made = summarise_nodes("one", columns, measure_delays(columns))
    nodes = {row["node"]: row for row in made.to_pylist()}
    assert nodes.keys() == at_node.keys()
    for node, found in at_node.items():
        delays = [since for kind, since, _ in found if kind == RECEIVE]
        ages = [since for kind, since, is_own in found if kind == DELIVER and not is_own]
        spoken = sum(kind == BROADCAST for kind, *_ in found)
        assert nodes[node]["broadcasts"] == spoken
        assert nodes[node]["receptions"] == len(delays)
        assert nodes[node]["deliveries"] == sum(kind == DELIVER for kind, *_ in found)
        wanted = [fmean(values) if values else None for values in (delays, ages)]
        assert [nodes[node]["delay_us_avg"], nodes[node]["age_us_avg"]] == pytest.approx(wanted)
    spoken = summarise_messages("one", columns, measure_delays(columns)).to_pylist()
    messages = {(row["origin"], row["seq"]): row for row in spoken}
    assert messages.keys() == sent.keys()
    for key, found in of_message.items():
        delays = [since for kind, since in found if kind == RECEIVE]
        ages = [since for kind, since in found if kind == DELIVER]
        row = messages[key]
        assert (row["sent_us"], row["past_entries"]) == sent[key]
        assert (row["receptions"], row["deliveries"]) == (len(delays), len(ages))
        assert row["delay_us_max"] == max(delays, default=None)
        assert row["age_us_max"] == max(ages, default=None)


def test_the_time_between_contacts_is_that_of_one_pair():
    contacts = np.array([(0, 1, 50, 60), (0, 2, 5, 7), (0, 1, 0, 10), (0, 1, 65, 66)])
    table = find_meetings(contacts).to_pandas()
    spans = {
        metric: rows.set_index("share")["value_us"] for metric, rows in table.groupby("metric")
    }
    assert [spans["duration"][share] for share in (0.0, 0.5, 0.75, 1.0)] == [1, 2, 10, 10]
    assert [spans["between"][share] for share in (0.0, 0.5, 1.0)] == [5, 5, 40]
    assert len(table) == 2 * len(PERMILLE)


@pytest.mark.parametrize("contacts", [[], [(0, 1, 0, 10)]])
def test_a_pair_that_never_meets_again_has_no_intercontact_time(contacts):
    table = find_meetings(np.array(contacts, np.int64).reshape(-1, 4)).to_pandas()
    assert set(table["metric"]) == ({"duration"} if contacts else set())


def test_broadcasts_whose_source_is_absent_are_counted_as_left_out(tmp_path):
    """b is there from 100 s on: of its two broadcasts in the file one is left out."""
    second_us = 1_000_000
    stays = np.array([(0, 0, 300 * second_us), (1, 100 * second_us, 300 * second_us)])
    met = np.array([(0, 1, 150 * second_us, 250 * second_us)])
    source = plan_dataset(tmp_path, "contacts", "x", inputs=(), parameters={}, sources=())
    source.commit(*write_trace(source, make_trace(["a", "b"], met, stays)))
    events = tuple(
        Event(at_s * second_us, name, 10) for at_s, name in ((10, "a"), (20, "b"), (120, "b"))
    )
    spec = Spec("causal", traffic=Traffic(law="file", events=events))
    folder = plan_dataset(tmp_path, "events", "x", inputs=(), parameters={}, sources=())
    facts = simulate(Job(Task("x", {}, Run(spec, None), (source,)), folder)).facts
    assert (facts.broadcasts, facts.deliveries, facts.left_out) == (2, 4, 1)
