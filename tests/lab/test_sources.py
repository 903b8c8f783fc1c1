"""Traces and event logs as data sources of Spark."""

from __future__ import annotations

import pytest

from beforehand.errors import InputError
from beforehand.lab import Spec, read_trace, register_sources, simulate_runs, verify_runs
from beforehand.lab.sources import ContactSource, EventReader, event_rows
from beforehand.sim.contacts.run import run_one
from beforehand.sim.log import event_table, write_events


@pytest.fixture
def trace_file(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text("a,b,start,end\n0,1,0,60\n1,2,30,90\n0,2,100,160\n")
    return path


@pytest.mark.spark
def test_contacts_and_events_are_read_simulated_and_judged_in_a_session(
    spark, trace_file, tmp_path
):
    register_sources(spark)
    trace = read_trace(trace_file)
    reader = spark.read.format("beforehand.contacts")
    contacts = reader.load(str(trace_file))
    assert [list(row) for row in contacts.collect()] == trace.contacts.tolist()
    presence = reader.option("table", "presence").load(str(trace_file))
    assert [list(row) for row in presence.select("node", "up_us", "down_us").collect()] == (
        trace.presence.tolist()
    )
    (made,) = verify_runs(simulate_runs(contacts, {"run": Spec("causal")})).collect()
    assert made.verdict == "valid"

    folder = tmp_path / "logs"
    folder.mkdir()
    result = run_one(trace, Spec("causal"))
    for name in ("one", "two"):
        table = event_table(name, result.columns, senders=result.senders, promise="causal")
        write_events(table, folder / f"{name}.parquet")
    assert event_rows(str(folder / "one.parquet"))["events"].unique().to_pylist() == [
        table.num_rows
    ]
    events = spark.read.format("beforehand.events").load(str(folder))
    found = {row.run: (row.verdict, row.promise) for row in verify_runs(events).collect()}
    assert found == {"one": ("valid", "causal"), "two": ("valid", "causal")}


def test_options_that_fit_no_source_are_refused(tmp_path):
    with pytest.raises(InputError, match="no table `nodes`"):
        ContactSource({"table": "nodes"}).schema()
    with pytest.raises(InputError, match="no event log there"):
        EventReader({"path": str(tmp_path)}).partitions()
    with pytest.raises(InputError, match="no path"):
        EventReader({})
