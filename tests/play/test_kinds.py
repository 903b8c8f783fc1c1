"""The pages of all kinds of runs agree with their logs, in Node."""

from __future__ import annotations

import json
from collections import defaultdict

import numpy as np
import pyarrow.parquet as pq
import pytest

from beforehand.play.encode import Clock
from beforehand.play.foreign import foreign_run
from beforehand.play.gather import gather_run
from beforehand.play.layout import STEP_US, places_of
from beforehand.sim.drift import Drift, simulate
from beforehand.verify.node_logs import read_merges
from beforehand.verify.verdict import verify_events
from tests.play.kinds import (
    CELLS,
    make_cells,
    make_clocks,
    make_nodes,
    make_observed,
    make_vcube,
)
from tests.play.made_up import simulate_buses
from tests.play.node import ask_model, needs_node

NEVER = 0x7FFFFFFF
ROWS = """(() => { const out = [];
  for (let i = 0; i < model.receptions; i++) { const m = model.recMessage[i];
    out.push([model.recNode[i], model.origin[m], model.seqText(m), model.recT[i], model.recEnd[i],
      model.recSender[i], model.recFlight ? model.recFlight[i] : 0]); }
  return out; })()"""
pytestmark = needs_node


def log_of(path, run):
    """Return per (node, origin, seq) the first reception and the first delivery, in ms."""
    table = pq.read_table(path).to_pydict()
    start = Clock(run).start_us
    received, delivered, sent = {}, {}, {}
    names = ("t_us", "node", "kind", "origin", "seq", "sender", "value")
    for t, node, kind, origin, seq, sender, value in zip(*(table[n] for n in names), strict=True):
        ms, key = (t - start) // 1000, (node, origin, str(seq))
        if kind == "receive":
            received.setdefault(key, (ms, -1 if sender is None else sender, value))
        elif kind == "deliver":
            delivered.setdefault(key, ms)
        elif kind == "send":
            sent[value] = ms
    return received, delivered, sent


def shown(rows):
    found = {}
    for node, origin, seq, t, end, sender, flight in rows:
        found.setdefault((node, origin, seq), (t, end, sender, flight))
    return found


def drawn_keys(received, count=3000):
    keys = list(received)
    draw = np.random.default_rng(1)
    return [keys[i] for i in draw.choice(len(keys), min(count, len(keys)), replace=False)]


def agree_on_waiting(found, received, delivered, is_relay=lambda _: False):
    """Check 50 counts of waiting messages against the log."""
    draw = np.random.default_rng(2)
    kept = {k: t for k, (t, *_) in received.items() if not is_relay(k[0])}
    instants = draw.integers(0, max(kept.values()) + 1, 25).tolist()
    waits = [t for k, t in kept.items() if delivered.get(k, NEVER) > t]
    instants += [waits[i] for i in draw.choice(len(waits), 25)] if waits else []
    wanted = [sum(t <= x < delivered.get(k, NEVER) for k, t in kept.items()) for x in instants]
    assert [sum(t <= x < end for t, end, *_ in found.values()) for x in instants] == wanted
    assert (max(wanted) > 0) == bool(waits)
    return bool(waits)


@pytest.mark.parametrize("protocol", ["causal", "delta", "vector", "none"])
def test_contacts_agree_with_the_log_of_each_order(tmp_path, protocol):
    lifetime = ("--lifetime", "20m") if protocol == "delta" else ()
    log = simulate_buses(tmp_path, "--protocol", protocol, *lifetime, minutes=90)
    run = gather_run(log)
    received, delivered, _ = log_of(log, run)
    found = shown(ask_model(tmp_path, run, ROWS))
    for key in drawn_keys(received):
        t, sender, _ = received[key]
        assert found[key][:3] == (t, delivered.get(key, NEVER), sender), key
    assert len(found) == len(received) > 3000
    assert agree_on_waiting(found, received, delivered) == (protocol != "none")


@pytest.mark.parametrize("system", ["was", "was_flood", "ck", "tcp_flooding"])
def test_cells_agree_with_the_log_of_each_system(tmp_path, system):
    log = make_cells(tmp_path / system, system)
    run = gather_run(log)
    received, delivered, _ = log_of(log, run)
    found = shown(ask_model(tmp_path, run, ROWS))
    stations = CELLS.stations
    for key in drawn_keys(received):
        t, sender, _ = received[key]
        end = delivered.get(key, t if key[0] < stations else NEVER)
        assert found[key][:3] == (t, end, sender), key
    assert len(found) == len(received) > 2000
    has_waits = agree_on_waiting(found, received, delivered, lambda node: node < stations)
    assert has_waits == (system != "ck")  # its hosts deliver all that they receive


def test_phases_and_frames_of_cells_equal_their_tables(tmp_path):
    log = make_cells(tmp_path / "was", queue_max=2)
    run = gather_run(log)
    start = Clock(run).start_us
    phases = pq.read_table(log.with_name("phases.parquet")).to_pylist()
    draw = np.random.default_rng(3)
    asked, wanted = [], []
    for _ in range(200):
        node = int(draw.integers(CELLS.stations, CELLS.nodes))
        t = int(draw.integers(0, CELLS.duration_us // 1000))
        before = [p for p in phases if p["node"] == node and (p["t_us"] - start) // 1000 <= t]
        asked.append([node, t])
        wanted.append([before[-1]["station"], before[-1]["phase"]] if before else None)
    code = f"""{json.dumps(asked)}.map(([n, t]) => {{ const at = kind.phaseRow(n, t), c = columns;
      if (at < 0) return null;
      return [c["phase.station"][at], model.extra.phases[c["phase.phase"][at]]]; }})"""
    assert ask_model(tmp_path, run, code) == wanted
    assert {phase for _, phase in filter(None, wanted)} >= {"connected"}
    frames = pq.read_table(log.with_name("frames.parquet")).to_pandas()
    on_air = frames[frames.airtime_us >= 0]
    counts = ask_model(tmp_path, run, "kind.countFrames(() => true)")
    assert counts["sent"] == len(on_air) > 1000
    assert counts["thrown"] == len(frames) - len(on_air) > 0
    assert counts["unknown"] == int((on_air.received < 0).sum())
    assert counts["collided"] == int(on_air.collided.clip(lower=0).sum()) > 0
    assert counts["received"] == int(on_air.received.clip(lower=0).sum())


def test_stations_relay_and_never_wait(tmp_path):
    run = gather_run(make_cells(tmp_path / "was"))
    waits = "[...Array(7).keys()].map((n) => model.waitingAt(n, 20000).length)"
    assert ask_model(tmp_path, run, waits) == [0] * 7
    assert run.names[0] == "S0"
    assert run.names[CELLS.stations] == f"H{CELLS.stations}"


def test_vcube_agrees_with_the_log_and_its_packets_with_their_rows(tmp_path):
    log = make_vcube(tmp_path / "vcube")
    run = gather_run(log)
    received, delivered, sent = log_of(log, run)
    found = shown(ask_model(tmp_path, run, ROWS))
    for key in drawn_keys(received):
        t, sender, packet = received[key]
        assert found[key] == (t, delivered.get(key, NEVER), sender, t - sent[packet]), key
    assert len(found) == len(received) > 1000
    assert agree_on_waiting(found, received, delivered)
    assert run.pasts is not None
    assert len(run.pasts)


def test_each_packet_has_the_messages_that_its_rows_name(tmp_path):
    log = make_vcube(tmp_path / "vcube", nodes=16)
    table = pq.read_table(log).to_pydict()
    wanted, target = defaultdict(list), {}
    rows = zip(*(table[n] for n in ("kind", "node", "origin", "seq", "value")), strict=True)
    for kind, node, origin, seq, packet in rows:
        if kind == "send":
            wanted[packet].append([node, origin, str(seq)])
        elif kind == "receive":
            target[packet] = node
    code = """[...columns["packet.t"].keys()].map((i) => [columns["packet.source"][i],
      columns["packet.target"][i],
      kind.messagesOf(i).map((m) => [model.origin[m], model.seqText(m)])])"""
    found = ask_model(tmp_path, gather_run(log), code)
    listed = [[m[0][0], target[p], sorted(one[1:] for one in m)] for p, m in wanted.items()]
    assert sorted([s, t, sorted(m)] for s, t, m in found) == sorted(listed)
    assert max(len(m) for _, _, m in found) > 1


def test_an_observers_queue_and_order_equal_its_output(tmp_path):
    path = make_observed(tmp_path)
    rows = pq.read_table(path).to_pylist()
    run = gather_run(path)
    start = min(min(r["time"], r["delivered_at"] - r["waited_us"]) for r in rows) // 1000
    arrived = [(r["delivered_at"] - r["waited_us"]) // 1000 - start for r in rows]
    left = [r["delivered_at"] // 1000 - start for r in rows]
    found = ask_model(tmp_path, run, ROWS)
    assert sorted(found_row[3:5] for found_row in found) == sorted(
        map(list, zip(arrived, left, strict=True))
    )
    instants = np.random.default_rng(2).integers(0, max(left), 50).tolist()
    held = [sum(a <= t < d for a, d in zip(arrived, left, strict=True)) for t in instants]
    assert ask_model(tmp_path, run, f"{instants}.map((t) => kind.heldAt(t).length)") == held
    assert max(held) > 3
    moved = ask_model(
        tmp_path,
        run,
        "[...columns['queue.place'].keys()].map((i) => kind.changesOf(i).before.length > 0)",
    )
    assert sum(moved) == sum(r["moved"] for r in rows) > 100


def test_late_deliveries_of_an_observer_are_those_of_the_vector_clocks(tmp_path):
    path = make_observed(tmp_path, messages=600)
    rows = sorted(pq.read_table(path).to_pylist(), key=lambda r: r["delivered_seq"])
    late = 0
    for at, row in enumerate(rows):
        own = row["past"][row["process"]]
        late += any(before["past"][row["process"]] >= own for before in rows[:at])
    run = gather_run(path)
    assert len(run.violations.t_us) == late
    assert late > 0
    assert run.verdict == "invalid"
    wrong = next(
        at
        for at, row in enumerate(rows)
        if any(r["past"][row["process"]] >= row["past"][row["process"]] for r in rows[:at])
    )
    process, own = rows[wrong]["process"], rows[wrong]["past"][rows[wrong]["process"]]
    effect = next(r for r in rows if r["past"][process] >= own and r is not rows[wrong])
    words = """model.proofs(model.wrong.message[0]).map((p) => [p.chain.length,
      model.names[p.node], +model.names[model.origin[p.follower]], p.before <= p.t])"""
    assert ask_model(tmp_path, run, words) == [[4, "observer", effect["process"], True]]


def test_the_recorded_arrivals_of_an_observer_are_those_of_the_run(tmp_path):
    rows = pq.read_table(make_observed(tmp_path, messages=600)).to_pylist()
    arrival = simulate(Drift(messages=600, processes=6, seed=2)).arrival
    found = sorted((r["delivered_at"] - r["waited_us"]) // 1000 for r in rows)
    assert found == sorted(arrival[arrival >= 0].tolist())


def levels(lines, spoken):
    """Return the longest chain before each event, by repeated passes: a slow reference."""
    place = {event: 0 for line in lines for event in line}
    changed = True
    while changed:
        changed = False
        for line in lines:
            for at, event in enumerate(line):
                causes = [line[at - 1]] if at else []
                causes += [spoken[event]] if event in spoken else []
                least = max((place[cause] + 1 for cause in causes), default=0)
                if least > place[event]:
                    place[event], changed = least, True
    return place


def test_real_nodes_are_laid_out_by_the_longest_causal_chain(tmp_path):
    folder = make_nodes(tmp_path / "nodes")
    ((merge, _),) = read_merges(sorted(folder.rglob("*.node.parquet")))
    table = merge.table.to_pydict()
    rows = list(zip(merge.line.tolist(), table["kind"], table["origin"], table["seq"], strict=True))
    said = {(o, s): at for at, (_, kind, o, s) in enumerate(rows) if kind == "broadcast"}
    spoken = {
        at: said[o, s]
        for at, (line, kind, o, s) in enumerate(rows)
        if kind in ("receive", "deliver") and (o, s) in said and rows[said[o, s]][0] != line
    }
    lines = [
        [at for at, row in enumerate(rows) if row[0] == line] for line in range(len(merge.nodes))
    ]
    place = levels(lines, spoken)
    received = {
        (line, merge.nodes.index(o), str(s)): place[at] * 1000
        for at, (line, kind, o, s) in reversed(list(enumerate(rows)))
        if kind == "receive"
    }
    delivered = {
        (line, merge.nodes.index(o), str(s)): place[at] * 1000
        for at, (line, kind, o, s) in enumerate(rows)
        if kind == "deliver"
    }
    run = gather_run(folder)
    found = shown(ask_model(tmp_path, run, ROWS))
    assert len(found) == len(received) > 100
    for key in drawn_keys(received):
        assert found[key][:3] == (received[key], delivered.get(key, NEVER), -1), key
    assert agree_on_waiting(found, {k: (t,) for k, t in received.items()}, delivered)
    assert run.verdict == verify_events(folder).state == "valid"
    assert "no common clock" in run.notes[0]


def test_a_gap_in_the_log_of_a_node_is_shown_and_makes_the_verdict_unknown(tmp_path):
    folder = make_nodes(tmp_path / "nodes", gap=True)
    run = gather_run(folder)
    assert run.verdict == verify_events(folder).state != "valid"
    assert ask_model(tmp_path, run, "[...columns['gap.missing']]") == [3]
    assert "missing" in run.reason or len(run.violations.t_us)


def test_clocks_of_another_system_are_laid_out_by_causality(tmp_path):
    path = make_clocks(tmp_path / "shiviz.log")
    run = foreign_run(path, None)
    verdict = verify_events(path).runs[0]
    found = ask_model(tmp_path, run, ROWS)
    assert len(found) == verdict.messages > 100
    assert all(
        end == t and flight >= 1000 and sender == origin
        for _, origin, _, t, end, sender, flight in found
    )
    assert run.verdict == verdict.state == "valid"
    assert ask_model(tmp_path, run, "model.extra.labels.length") == 400


def test_findings_of_another_system_are_on_the_page_in_words(tmp_path):
    path = make_clocks(tmp_path / "bad.log", damage=True)
    verdict = verify_events(path).runs[0]
    run = foreign_run(path, None)
    assert run.verdict == verdict.state == "invalid"
    assert len(run.violations.t_us) == len(verdict.findings) > 0
    assert set(run.wrong_words) == {finding.kind for finding in verdict.findings}
    assert ask_model(tmp_path, run, "model.extra.findings.length") == len(verdict.findings)


def test_places_follow_every_chain_and_count_what_no_order_keeps():
    lines = [[0, 1, 2], [3, 4], [5]]
    place, broken = places_of(lines, {4: (1,), 2: (4,), 5: (2,)})
    assert (place, broken) == ({0: 0, 1: 1, 2: 3, 3: 0, 4: 2, 5: 4}, 0)
    place, broken = places_of([[0, 1], [2, 3]], {0: (3,), 2: (1,)})
    assert sorted(place) == [0, 1, 2, 3]
    assert broken == 1
    assert STEP_US == 1_000_000
