"""The reports of The ONE: links read back exactly, figures equal to an independent count."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

from beforehand.cli import main
from beforehand.errors import InputError
from beforehand.export.one_reports import event_log_report, message_stats_report
from beforehand.export.run_log import read_links, read_run
from beforehand.mobility.formats.contacts_list import write_contacts
from beforehand.mobility.generators import crowd
from beforehand.mobility.read import read
from beforehand.mobility.trace import make_trace
from beforehand.protocols.epidemic.options import Options
from beforehand.sim.contacts.run import Spec, run_one
from beforehand.sim.log import event_table, links_table, write_events


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    trace = crowd.generate(4, nodes_mean=50, hours=0.2)
    result = run_one(trace, Spec("causal", 2, layer=Options(announce_us=1_000_000, capacity=8)))
    log = event_table("r", result.columns, senders=result.senders, names=trace.names)
    write_events(log, folder / "run.parquet")
    write_events(links_table(trace.contacts), folder / "run.links.parquet")
    return trace, result, folder / "run.parquet"


def lines_of(path):
    return [line.split() for line in event_log_report(read_run(path), read_links(path))]


def test_the_connections_of_the_report_are_the_contacts_of_the_trace(made, tmp_path):
    trace, _, path = made
    report = tmp_path / "report.txt"
    report.write_text("\n".join(event_log_report(read_run(path), read_links(path))))
    found = read(report, "one-events")
    # Contacts of one pair that touch become one.
    again = {
        (trace.names[a], trace.names[b], up, down) for a, b, up, down in trace.contacts.tolist()
    }
    shown = {
        (found.names[a], found.names[b], up, down) for a, b, up, down in found.contacts.tolist()
    }
    norm = lambda rows: {(*sorted(row[:2]), *row[2:]) for row in rows}  # noqa: E731
    assert norm(shown) == norm(again)
    assert set(found.changes) == {"skipped_line"}


def test_every_transfer_is_over_a_link_that_is_up_and_from_a_holder(made):
    _, _, path = made
    up, held, marks, last = set(), set(), [], 0.0
    for time, action, *fields in lines_of(path):
        assert float(time) >= last
        last = float(time)
        if action == "CONN":
            (up.add if fields[2] == "up" else up.discard)(frozenset(fields[:2]))
        elif action == "C":
            held.add(tuple(fields))
        else:
            source, target, message, mark = fields
            assert (source, message) in held
            assert frozenset((source, target)) in up
            assert mark == ("A" if (target, message) in held else "D")
            held.add((target, message))
            marks.append(mark)
    assert marks.count("D") > 100
    assert marks.count("A") > 10  # evicted, and received again


def test_the_figures_are_those_of_the_lines(made):
    trace, _, path = made
    found = dict(
        line.split(": ") for line in message_stats_report(read_run(path), "x") if ": " in line
    )
    born, hops, made_hops, latency, relayed = {}, {}, [], [], 0
    for time, action, *fields in lines_of(path):
        if action == "C":
            born[fields[1]] = float(time)
            hops[fields[0], fields[1]] = 0
        elif action == "DE":
            source, target, message, mark = fields
            relayed += 1
            if target != message.rpartition("-")[0]:  # the copy of the origin has no hop
                hops[target, message] = hops[source, message] + 1
            if mark == "D":
                made_hops.append(hops[target, message])
                latency.append(float(time) - born[message])
    created = len(born) * (trace.nodes_count - 1)
    assert int(found["created"]) == created
    assert int(found["relayed"]) == relayed
    assert int(found["delivered"]) == len(latency) == len(made_hops)
    assert float(found["delivery_prob"]) == pytest.approx(len(latency) / created, abs=1e-4)
    assert float(found["latency_avg"]) == pytest.approx(np.mean(latency), abs=1e-4)
    middle = sorted(latency)[len(latency) // 2]
    assert float(found["latency_med"]) == pytest.approx(middle, abs=1e-4)
    assert float(found["hopcount_avg"]) == pytest.approx(np.mean(made_hops), abs=1e-4)
    assert int(found["hopcount_med"]) == sorted(made_hops)[len(made_hops) // 2]
    assert found["dropped"] == found["started"] == "NaN"


def test_unknown_senders_of_a_log_are_reported_and_not_guessed(made, tmp_path):
    trace, result, _ = made
    old = tmp_path / "old.parquet"
    log = event_table("r", result.columns, names=trace.names)
    write_events(log.drop_columns(["sender"]), old)
    write_events(links_table(trace.contacts), tmp_path / "old.links.parquet")
    for path in (old, tmp_path / "null.parquet"):
        if path != old:
            write_events(log, path)
        with pytest.raises(InputError, match="does not name the sender"):
            list(event_log_report(read_run(path), []))
        assert "hopcount_avg: NaN" in list(message_stats_report(read_run(path), "x"))


def test_the_command_writes_the_documented_files(tmp_path, capsys):
    trace, events, out = tmp_path / "c.csv", tmp_path / "run.parquet", tmp_path / "e.txt"
    write_contacts(make_trace(["a", "b"], np.array([[0, 1, 0, 10**8]])), trace)
    assert main(["simulate", str(trace), "--events", str(events)]) == 0
    assert main(["export", str(events), "--as", "EventLogReport", "--out", str(out)]) == 0
    lines = out.read_text().splitlines()
    assert lines[0] == "0.0 CONN a b up"
    assert lines[1].startswith("20.0 C a a-")
    assert lines[-1] == "100.0 CONN a b down"
    capsys.readouterr()
    assert main(["export", str(events), "--as", "MessageStatsReport"]) == 0
    assert "delivery_prob: 1.0000" in capsys.readouterr().out
    (tmp_path / "run.links.parquet").unlink()
    assert main(["export", str(events), "--as", "EventLogReport"]) == 2
    assert "no links beside the event log" in capsys.readouterr().err
    assert main(["export", str(tmp_path / "none.parquet"), "--as", "EventLogReport"]) == 2


def test_one_run_of_several_is_chosen_by_name(made, tmp_path):
    _, result, _ = made
    import pyarrow as pa

    both = [event_table(name, result.columns, senders=result.senders) for name in "xy"]
    path = tmp_path / "two.parquet"
    pq.write_table(pa.concat_tables(both, promote_options="permissive"), path)
    with pytest.raises(InputError, match="2 runs: `x`, `y`"):
        read_run(path)
    assert len(read_run(path, "y").columns["node"]) == len(result.columns["node"])
    with pytest.raises(InputError, match="no run `z`"):
        read_run(path, "z")
