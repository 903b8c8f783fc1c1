"""Receptions name their sender, and links are a dataset: enough to draw how a message spread."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq

from beforehand.events import BROADCAST, KINDS, RECEIVE
from beforehand.mobility.generators import crowd
from beforehand.mobility.trace import make_trace
from beforehand.sim.cells.spec import CellsSpec
from beforehand.sim.cells.world import run as run_cells
from beforehand.sim.contacts.links import LinkModel
from beforehand.sim.contacts.run import Spec, run_one
from beforehand.sim.log import event_table, links_table, packet_senders, write_events
from beforehand.sim.overlay.twin import run_compiled
from beforehand.sim.overlay.world import OverlaySpec, run


def receptions(columns, senders):
    """(time, node, message, sender) of every reception."""
    rows = columns["kind"] == RECEIVE
    assert len(senders) == rows.sum() > 0
    parts = [columns[name][rows].tolist() for name in ("t_us", "node", "origin", "seq")]
    return list(zip(*parts, senders.tolist(), strict=True))


def test_every_sender_was_in_contact_and_had_the_message_before():
    trace = crowd.generate(5, nodes_mean=60, hours=0.2)
    spec = Spec("causal", 3, links=LinkModel(latency_us=2_000))
    result = run_one(trace, spec)
    met = {}
    for a, b, up_us, down_us in trace.contacts.tolist():
        met.setdefault((a, b), []).append((up_us, down_us))
    is_broadcast = result.columns["kind"] == BROADCAST
    parts = [result.columns[name][is_broadcast].tolist() for name in ("origin", "seq", "t_us")]
    held = {(origin, (origin, seq)): t_us for origin, seq, t_us in zip(*parts, strict=True)}
    for t_us, node, origin, seq, sender in receptions(result.columns, result.senders):
        sent_us = t_us - 2_000
        pair = (min(node, sender), max(node, sender))
        assert any(up_us <= sent_us and t_us < down_us for up_us, down_us in met[pair])
        assert held[sender, (origin, seq)] <= sent_us
        held.setdefault((node, (origin, seq)), t_us)


def test_the_sender_of_a_packet_is_the_node_that_sent_it():
    spec = OverlaySpec(8, "aggregated")
    for result in (run(spec, 4), run_compiled(spec, 4)):
        found = receptions(result.events, packet_senders(result.events))
        packets = result.packets
        sent = {
            (int(packets["source"][row]), int(packets["target"][row]))
            for row in range(len(packets["source"]))
        }
        assert all((sender, node) in sent for _, node, _, _, sender in found)
        assert any(sender != origin for _, _, origin, _, sender in found)
        rows = result.events["value"][result.events["kind"] == RECEIVE]
        assert [row[4] for row in found] == packets["source"][rows].tolist()
        assert [row[1] for row in found] == packets["target"][rows].tolist()


def test_a_host_receives_from_its_station_and_a_station_from_any_host():
    spec = CellsSpec(stations=4, hosts=8)
    result = run_cells(spec, 2)
    found = receptions(result.events, result.senders)
    assert all(0 <= sender < spec.nodes != node for _, node, _, _, sender in found)
    assert all(sender != node for _, node, _, _, sender in found)
    hosts = [sender for _, node, _, _, sender in found if node >= spec.stations]
    assert hosts
    assert max(hosts) < spec.stations


def test_only_receptions_have_a_sender_in_the_file(tmp_path):
    trace = make_trace(("a", "b", "c"), np.array([(0, 1, 0, 10**8), (1, 2, 10**8, 3 * 10**8)]))
    result = run_one(trace, Spec("causal", 1))
    path = tmp_path / "events.parquet"
    write_events(event_table("r", result.columns, senders=result.senders), path)
    rows = pq.read_table(path, columns=["kind", "sender"]).to_pylist()
    assert [row["sender"] for row in rows if row["kind"] == "receive"] == result.senders.tolist()
    assert {row["sender"] for row in rows if row["kind"] != "receive"} == {None}
    assert {row["kind"] for row in rows} <= set(KINDS)
    unknown = event_table("r", result.columns)
    assert unknown["sender"].null_count == len(unknown)


def test_links_go_down_before_others_come_up():
    contacts = np.array([(0, 1, 5, 9), (0, 2, 9, 12), (1, 2, 5, 9)])
    assert [tuple(row.values()) for row in links_table(contacts).to_pylist()] == [
        (5, 0, 1, True),
        (5, 1, 2, True),
        (9, 0, 1, False),
        (9, 1, 2, False),
        (9, 0, 2, True),
        (12, 0, 2, False),
    ]
    assert links_table(np.empty((0, 4), np.int64)).num_rows == 0
