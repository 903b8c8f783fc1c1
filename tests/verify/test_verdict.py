"""`verify`: the verdict on a file, its proofs, and its refusals."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from beforehand.check.rules.oracle import judge as judge_slowly
from beforehand.errors import InputError
from beforehand.mobility.generators.crowd import generate
from beforehand.sim.contacts.run import Spec, run_one
from beforehand.sim.log import event_table, write_events
from beforehand.verify.verdict import verify_events

CHAIN = [
    # 1 says a, 2 hears it and answers b, 3 hears it and answers c: 4 gets c before a.
    (1, "join", -1, -1),
    (1, "broadcast", 1, 70),
    (1, "deliver", 1, 70),
    (2, "deliver", 1, 70),
    (2, "broadcast", 2, 50),
    (2, "deliver", 2, 50),
    (3, "receive", 2, 50),
    (3, "deliver", 2, 50),
    (3, "broadcast", 3, 90),
    (4, "deliver", 3, 90),
    (4, "deliver", 1, 70),
]


def table_of(rows, run="r"):
    node, kind, origin, seq = zip(*rows, strict=True)
    steps = np.arange(len(rows))
    return pa.table(
        {
            "run": [run] * len(rows),
            "step": steps,
            "t_us": steps * 1_000_000,
            "node": pa.array(node, pa.int32()),
            "kind": kind,
            "origin": pa.array(origin, pa.int32()),
            "seq": seq,
            "value": steps * 0,
        }
    )


@pytest.fixture
def verify(tmp_path):
    def write_and_verify(table):
        pq.write_table(table, tmp_path / "events.parquet")
        return verify_events(tmp_path / "events.parquet")

    return write_and_verify


@pytest.fixture(scope="module")
def simulated():
    trace = generate(3, nodes_mean=40, hours=0.3)
    return {
        protocol: run_one(trace, Spec(protocol, seed=2)).columns for protocol in ("causal", "none")
    }


def test_a_causal_run_is_valid_and_one_without_order_is_not(simulated, tmp_path):
    for protocol, state, code in (("causal", "valid", 0), ("none", "invalid", 1)):
        path = tmp_path / f"{protocol}.parquet"
        write_events(event_table(protocol, simulated[protocol]), path)
        verdict = verify_events(path)
        assert (verdict.state, verdict.exit_code) == (state, code)
        (run,) = verdict.runs
        assert run.run == protocol
        assert run.broadcasts == np.count_nonzero(simulated[protocol]["kind"] == 0) > 50
        assert (sum(run.counts.values()) > 0) == (state == "invalid")


def test_a_violation_is_proved_by_the_chain_between_the_two_messages(verify):
    verdict = verify(table_of(CHAIN))
    assert verdict.state == "invalid"
    (story,) = verdict.stories()
    head, *steps = story.splitlines()
    assert head == "run r: node 4 delivered 1:70 after 3:90, which causally follows it"
    assert [step.split("node ")[1] for step in steps] == [
        "1 broadcasts 1:70",
        "2 delivers 1:70",
        "2 broadcasts 2:50",
        "3 delivers 2:50",
        "3 broadcasts 3:90",
        "4 delivers 3:90",
        "4 delivers 1:70",
    ]
    assert [int(step.split()[1]) for step in steps] == [1, 3, 4, 7, 8, 9, 10]


def test_second_and_unknown_deliveries_have_stories(verify):
    rows = [*CHAIN[:6], (2, "deliver", 1, 70), (2, "deliver", 9, 9)]
    twice, unknown = verify(table_of(rows)).stories()
    assert "node 2 delivered 1:70 a second time" in twice
    assert [int(line.split()[1]) for line in twice.splitlines()[1:]] == [3, 6]
    assert "node 2 delivered 9:9, which no node had broadcast" in unknown


def test_every_story_of_a_disordered_run_ends_in_its_violation(simulated, tmp_path):
    columns = {name: values[:4000] for name, values in simulated["none"].items()}
    write_events(event_table("none", columns), tmp_path / "e.parquet")
    (run,) = verify_events(tmp_path / "e.parquet").runs
    log = run.log
    events = np.where(log.is_broadcast, "broadcast", "deliver").tolist()
    ids = list(zip(log.origin.tolist(), log.seq.tolist(), strict=True))
    expected = judge_slowly(zip(log.node.tolist(), events, ids, strict=True))
    stories = list(run.stories())
    assert len(stories) == len(expected) > 100
    for violation, story in zip(expected, stories, strict=True):
        message = ":".join(map(str, violation.message))
        after = ":".join(map(str, violation.after))
        assert f"node {violation.node} delivered {message} after {after}," in story
        lines = story.splitlines()
        assert lines[1].endswith(f"broadcasts {message}")
        assert lines[-2].endswith(f"node {violation.node} delivers {after}")
        assert lines[-1].endswith(f"node {violation.node} delivers {message}")


def test_a_log_with_holes_is_unknown_unless_what_is_there_is_wrong(verify):
    whole = table_of(CHAIN[:10])
    assert verify(whole).state == "valid"
    assert verify(whole.slice(1)).state == "unknown"
    assert verify(whole.take([0, 1, 2, 3, 9])).state == "unknown"  # 3:90 may have been broadcast
    assert verify(table_of(CHAIN).slice(1)).state == "invalid"


def test_a_log_without_deliveries_proves_nothing(verify):
    verdict = verify(table_of(CHAIN[:2]))
    assert (verdict.state, verdict.exit_code) == ("unknown", 3)
    assert verdict.runs[0].reason == "nothing was delivered"


def test_the_order_is_that_of_the_steps_and_not_of_the_rows(verify):
    table = table_of(CHAIN[:10])
    backwards = table.take(list(range(9, -1, -1)))
    assert verify(backwards).state == "valid"


def test_the_worst_run_decides(verify):
    good, bad = table_of(CHAIN[:10], run="good"), table_of(CHAIN, run="bad")
    verdict = verify(pa.concat_tables([good, bad]))
    assert [(run.run, run.state) for run in verdict.runs] == [("good", "valid"), ("bad", "invalid")]
    assert verdict.state == "invalid"


def test_a_folder_is_all_of_its_runs(tmp_path):
    for name, rows in (("one", CHAIN[:10]), ("two", CHAIN)):
        (tmp_path / "events" / name).mkdir(parents=True)
        pq.write_table(table_of(rows, name), tmp_path / "events" / name / "events.parquet")
        (tmp_path / "events" / name / "gauges.parquet").write_text("not for us")
    assert [run.run for run in verify_events(tmp_path).runs] == ["one", "two"]


@pytest.mark.parametrize(
    ("spoil", "fragment"),
    [
        (lambda t: t.drop_columns(["step", "seq"]), "no column `step`, `seq`"),
        (lambda t: t.set_column(3, "node", pa.array(["x"] * len(t))), "not whole numbers"),
        (lambda t: t.set_column(6, "seq", pa.array([None] * len(t), pa.int64())), "empty fields"),
        (lambda t: pa.concat_tables([t, t.slice(2, 1)]), "step 2 of run `r` is there twice"),
        (lambda _: table_of([*CHAIN, CHAIN[1]]), "1:70 is broadcast twice, in steps 1 and 11"),
    ],
)
def test_a_file_that_is_no_event_log_is_refused(verify, spoil, fragment):
    with pytest.raises(InputError) as caught:
        verify(spoil(table_of(CHAIN)))
    assert fragment in caught.value.problem
    assert "events.parquet" in caught.value.where


def test_a_file_that_is_not_parquet_is_refused(tmp_path):
    (tmp_path / "x.parquet").write_text("hello")
    (tmp_path / "folder").mkdir()
    for path, fragment in [
        (tmp_path / "x.parquet", "not a Parquet file"),
        (tmp_path / "none", "no such file"),
        (tmp_path / "folder", "no `events.parquet`"),
    ]:
        with pytest.raises(InputError, match=fragment):
            verify_events(path)
