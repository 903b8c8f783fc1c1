"""Simulate and verify in a Spark program: the same events and verdicts as everywhere."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from beforehand.errors import InputError
from beforehand.events import COLUMNS
from beforehand.mobility.trace import make_trace
from beforehand.pipeline.frames import (
    IS_STAY,
    RUN_EVENTS,
    _judge,
    _simulate,
    _simulate_named,
    simulate_runs,
    verify_runs,
)
from beforehand.pipeline.schemas import CONTACTS, names_of, table_of_rows
from beforehand.sim.contacts.run import Spec, run_one
from beforehand.sim.contacts.traffic import Traffic

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "pipeline.md"
MINUTE = 60_000_000
NAMED = {0: "ida", 1: "bob", 2: "ann"}
SPEC = Spec("causal")
MET = [(0, 1, 0, 3 * MINUTE), (1, 2, 2 * MINUTE, 5 * MINUTE), (0, 2, 4 * MINUTE, 6 * MINUTE)]


def rows_of(met, there=(), run="a"):
    rows = [(run, *row) for row in met]
    rows += [(run, node, None, up_us, down_us) for node, up_us, down_us in there]
    table = table_of_rows(f"run string, {CONTACTS}", rows)
    return table.append_column(IS_STAY, pa.array([False] * len(met) + [True] * len(there)))


def test_a_run_has_the_events_of_the_simulator():
    spec = Spec("causal", seed=4)
    events = _simulate("a", spec, rows_of(MET), False)
    expected = run_one(make_trace(("0", "1", "2"), np.array(MET)), spec).columns
    assert events.column_names == names_of(RUN_EVENTS)
    assert events["step"].to_pylist() == list(range(len(expected["kind"])))
    for name in COLUMNS.keys() - {"kind"}:
        assert events[name].to_pylist() == expected[name].tolist()
    assert events["kind"].to_pylist().count("deliver") > 10


def test_nodes_and_their_presence_are_those_of_the_input():
    names = {0: 7, 1: 90, 2: 41}
    met = [(names[a], names[b], up_us, down_us) for a, b, up_us, down_us in MET]
    events = _simulate("a", Spec("causal"), rows_of(met), False)
    assert set(events["node"].to_pylist()) == {7, 41, 90}
    assert set(events["origin"].to_pylist()) == {-1, 7, 41, 90}
    there = [(7, 0, 6 * MINUTE), (90, 0, 5 * MINUTE), (41, 2 * MINUTE, 6 * MINUTE), (5, 0, MINUTE)]
    stays = _simulate("a", Spec("causal"), rows_of(met, there), True).to_pylist()
    joined = {(row["node"], row["t_us"]) for row in stays if row["kind"] == "join"}
    assert joined == {(7, 0), (90, 0), (41, 2 * MINUTE), (5, 0)}


def test_nodes_may_have_names():
    rows = rows_of(MET)
    for end in ("a", "b"):
        named = pa.array([NAMED[number] for number in rows[end].to_pylist()])
        rows = rows.set_column(rows.column_names.index(end), end, named)
    spec = Spec("causal", traffic=Traffic(sources=("ida",)))
    events = _simulate_named("a", spec, rows, False).to_pylist()
    numbers = {"ann": 0, "bob": 1, "ida": 2}
    assert {(row["node_name"], row["node"]) for row in events} == set(numbers.items())
    spoken = [row for row in events if row["kind"] == "broadcast"]
    assert spoken
    assert {row["origin_name"] for row in spoken} == {"ida"}
    received = [row for row in events if row["kind"] == "receive"]
    assert {row["sender_name"] for row in received} <= set(numbers)
    assert all(row["sender_name"] is None for row in spoken)


def test_a_contact_without_a_name_is_refused():
    rows = rows_of([*MET, (0, None, 0, 9)])
    for end in ("a", "b"):
        named = pa.array([NAMED.get(number) for number in rows[end].to_pylist()])
        rows = rows.set_column(rows.column_names.index(end), end, named)
    with pytest.raises(InputError, match="empty fields among the contacts"):
        _simulate_named("a", SPEC, rows, False)


def test_a_promise_and_the_end_of_a_run_go_with_its_events():
    loose = _simulate("a", Spec("none"), rows_of(MET), False)
    (judged,) = _judge(loose).to_pylist()
    assert (judged["verdict"], judged["promise"]) == ("valid", "none")
    (cut,) = _judge(loose.slice(0, len(loose) - 3)).to_pylist()
    assert cut["verdict"] == "unknown"
    assert "3 steps are missing" in cut["reason"]
    (plain,) = _judge(loose.drop_columns(["promise", "events"])).to_pylist()
    assert plain["promise"] == "causal"
    at = loose.column_names.index("promise")
    mixed = loose.set_column(at, "promise", pa.array(["none"] * (len(loose) - 1) + ["causal"]))
    with pytest.raises(InputError, match="several values of `promise`"):
        _judge(mixed)


@pytest.mark.parametrize(
    ("met", "there", "problem"),
    [
        ([*MET, (0, None, 0, 9)], None, "empty fields among the contacts"),
        ([(0, 1, 9, 3)], None, "a contact ends before it starts"),
        ([(0, 1, -9, 3)], None, "from before zero on"),
        ([(-1, 1, 0, 3)], None, "no number of a node: -1"),
        ([(2**32 + 5, 1, 0, 3)], None, "no number of a node: 4294967301"),
        ([(0, 1, 0, 10**15)], None, "of which 20,000,000 can be played"),
        ([(0, 1, 0, 9)], [(0, 0, 9)], "node 1 has a contact and is never present"),
        ([(0, 1, 0, 9)], [], "node 0 has a contact and is never present"),
        ([], [(0, 0, 9), (0, 5, 12)], "there twice at one time"),
        ([], [(0, 9, 0)], "a stay ends before it starts"),
    ],
)
def test_contacts_that_were_silently_played_wrongly_are_refused(met, there, problem):
    with pytest.raises(InputError, match=problem):
        _simulate("a", Spec("causal"), rows_of(met, there or ()), there is not None)


@pytest.mark.spark
def test_the_script_of_the_documents_runs_as_it_stands(spark, capsys):
    (script,) = [
        block
        for block in re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
        if "simulate_runs" in block
    ]
    assert len(script.strip().splitlines()) <= 15
    names: dict[str, object] = {}
    exec(script, names)
    shown = capsys.readouterr().out
    assert "deliver" in shown
    verdicts = {row["run"]: row for row in verify_runs(names["events"]).collect()}
    assert {run: row["verdict"] for run, row in verdicts.items()} == dict.fromkeys(
        verdicts, "valid"
    )
    assert {row["promise"] for row in verdicts.values()} == {"causal", "none"}
    assert all(row["deliveries"] > 0 for row in verdicts.values())
    # The error comes before anything runs.
    contacts = names["contacts"]
    with pytest.raises(InputError, match="no column `up_us`"):
        simulate_runs(contacts.drop("up_us"), {"a": Spec("causal")})
    with pytest.raises(InputError, match="some columns of nodes are names, others are not"):
        simulate_runs(contacts.withColumn("a", contacts["a"].cast("string")), {"a": Spec("causal")})
    with pytest.raises(InputError, match="column `up_us` is string, not whole numbers"):
        simulate_runs(contacts.withColumn("up_us", contacts["a"].cast("string")), {"a": SPEC})
    calls = " ".join(f"WHEN {number} THEN '{name}'" for number, name in NAMED.items())
    named = contacts.selectExpr(
        f"CASE a {calls} END AS a", f"CASE b {calls} END AS b", "up_us", "down_us"
    )
    events = simulate_runs(named, {"a": SPEC})
    assert {row["node_name"] for row in events.collect()} == set(NAMED.values())
    (judged,) = verify_runs(events).collect()
    assert judged["verdict"] == "valid"
    with pytest.raises(InputError, match="no run"):
        simulate_runs(contacts, {})
    with pytest.raises(InputError, match="no column `seq`"):
        verify_runs(names["events"].drop("seq"))
