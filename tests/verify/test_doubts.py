"""`verify` calls no unknown run valid, and no run invalid for an order that it did not promise."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from beforehand.errors import InputError
from beforehand.mobility.generators.crowd import generate
from beforehand.protocols.registry import PROTOCOLS
from beforehand.sim.contacts.run import Spec, run_one
from beforehand.sim.log import event_table, write_events
from beforehand.verify.verdict import Verdict, verify_events, worst
from tests.verify.test_verdict import CHAIN, table_of

SOUND = CHAIN[:10]


@pytest.fixture
def verify(tmp_path):
    def write_and_verify(table, **options):
        pq.write_table(table, tmp_path / "events.parquet")
        return verify_events(tmp_path / "events.parquet", **options)

    return write_and_verify


@pytest.fixture(scope="module")
def simulated():
    trace = generate(3, nodes_mean=40, hours=0.3)
    tables = {}
    for name in ("causal", "none"):
        columns = run_one(trace, Spec(name, seed=2)).columns
        promise = PROTOCOLS[name].written
        tables[name] = event_table(name, columns, promise=promise, names=trace.names)
    return tables


def test_a_log_without_rows_is_not_valid(verify, tmp_path):
    verdict = verify(table_of(SOUND).slice(0, 0))
    assert (verdict.state, verdict.exit_code) == ("unknown", 3)
    (run,) = verdict.runs
    assert run.reason == "there are no events in the log"
    (tmp_path / "deep").mkdir()
    pq.write_table(table_of(SOUND), tmp_path / "deep" / "events.parquet")
    assert verify_events(tmp_path).state == "unknown"  # one of two is sound


def test_on_nothing_there_is_no_verdict():
    assert (Verdict(()).state, Verdict(()).exit_code) == ("unknown", 3)
    assert worst([]) == "unknown"
    assert worst(["valid", "unknown"]) == "unknown"
    assert worst(["valid", "unknown", "invalid"]) == "invalid"


@pytest.mark.parametrize("kind", ["Deliver", "banana", " deliver", "", "DELIVER", "delivered"])
def test_rows_of_an_unknown_kind_do_not_hide_a_violation(verify, kind):
    rows = [*SOUND, (4, kind, 1, 70)]
    verdict = verify(table_of(rows))
    assert verdict.state == "unknown"
    assert verdict.runs[0].reason == f"1 events are of no known kind: `{kind}` 1"
    late = verify(table_of([*CHAIN, (4, kind, 1, 70)]))
    assert late.state == "invalid"  # which it is, whatever the other event was


def test_a_broadcast_under_a_wrong_name_makes_no_delivery_wrong(verify):
    rows = [(1, "Broadcast", 1, 70), (2, "deliver", 1, 70)]
    assert verify(table_of(rows)).state == "unknown"
    assert verify(table_of([(1, "join", -1, -1), rows[1]])).state == "invalid"


def test_many_unknown_kinds_of_events_are_counted_in_one_reason(verify):
    rows = [*SOUND, *((1, f"kind-{i}", 1, 1) for i in range(9))]
    (run,) = verify(table_of(rows)).runs
    assert run.reason.startswith("9 events are of no known kind")
    assert run.reason.endswith("4 more kinds")


def test_a_run_that_promised_no_order_is_not_invalid_for_its_disorder(simulated, tmp_path):
    path = tmp_path / "none.parquet"
    write_events(simulated["none"], path)
    (run,) = verify_events(path).runs
    assert (run.state, run.promise) == ("valid", "none")
    assert run.counts["late"] > 0
    assert "no order was promised" in run.reason
    (held,) = verify_events(path, promise="causal").runs
    assert (held.state, held.promise) == ("invalid", "causal")


def test_a_run_without_a_promised_order_must_not_deliver_twice_or_unknown_messages(verify):
    about = {"beforehand": json.dumps({"runs": {"r": {"promise": "none"}}})}
    for more, state in (
        (CHAIN[10], "valid"),
        ((2, "deliver", 1, 70), "invalid"),
        ((2, "deliver", 9, 9), "invalid"),
    ):
        table = table_of([*SOUND, more]).replace_schema_metadata(about)
        assert verify(table).state == state


def test_a_log_that_promises_nothing_is_held_to_causal_order(verify):
    assert verify(table_of(CHAIN)).runs[0].promise == "causal"
    assert verify(table_of(CHAIN), promise="none").state == "valid"


@pytest.mark.parametrize(
    ("about", "reason"),
    [
        ({"runs": {"r": {"promise": "fifo"}}}, "promises `fifo`"),
        ({"runs": {"r": {"events": "many"}}}, "cannot be read"),
        ({"runs": []}, "cannot be read"),
    ],
)
def test_unreadable_metadata_of_a_log_is_a_doubt(verify, about, reason):
    metadata = {"beforehand": json.dumps(about)}
    (run,) = verify(table_of(SOUND).replace_schema_metadata(metadata)).runs
    assert run.state == "unknown"
    assert reason in run.reason


def test_a_log_that_was_cut_off_at_its_end_is_not_valid(verify, simulated):
    whole = simulated["causal"]
    assert verify(whole).state == "valid"
    (cut,) = verify(whole.slice(0, len(whole) - 5)).runs
    assert (cut.state, cut.reason) == ("unknown", "5 steps are missing from the log")


@pytest.mark.parametrize("level", [1, 2])
def test_a_file_that_differs_from_its_manifest_is_reported_and_others_are_judged(tmp_path, level):
    for name in ("good", "short"):
        path = tmp_path / name / "deep" / "events.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(table_of(SOUND, run=name), path)
        folder = path.parents[level - 1]
        sizes = {path.relative_to(folder).as_posix(): path.stat().st_size}
        (folder / "manifest.json").write_text(json.dumps({"files": sizes}))
    assert verify_events(tmp_path).state == "valid"
    path.write_bytes(path.read_bytes()[:-100])
    good, short = verify_events(tmp_path).runs
    assert (good.state, short.state) == ("valid", "unknown")
    assert "bytes, but" in short.reason
    (folder / "manifest.json").write_text("{")
    assert "not a manifest" in verify_events(tmp_path).runs[1].reason


def test_numbers_without_a_sign_are_put_in_order(verify):
    table = table_of(SOUND).take(list(range(9, -1, -1)))
    unsigned = table.set_column(1, "step", table["step"].cast(pa.uint64()))
    assert verify(unsigned).state == "valid"


@pytest.mark.parametrize(
    ("at", "name", "values", "fragment"),
    [
        (1, "step", np.arange(-3, 7), "step -3 of run `r` is below 0"),
        (6, "seq", pa.array([2**63] * 10, pa.uint64()), "beyond 64 bits"),
        (4, "kind", pa.array(range(10)), "`kind` is int64, not text"),
        (4, "kind", pa.array([b"deliver"] * 10), "`kind` is binary, not text"),
        (0, "run", pa.array([["r"]] * 10), "not text"),
        (1, "step", pa.array([0.5] * 10), "not whole numbers"),
    ],
)
def test_columns_of_another_kind_are_refused(verify, at, name, values, fragment):
    with pytest.raises(InputError, match=fragment):
        verify(table_of(SOUND).set_column(at, name, pa.array(values)))


def test_a_log_may_come_in_parts(tmp_path):
    for at in range(0, 10, 4):
        pq.write_table(table_of(SOUND).slice(at, 4), tmp_path / f"part-{at}.parquet")
    (tmp_path / "_SUCCESS").touch()
    (run,) = verify_events(tmp_path).runs
    assert (run.state, run.deliveries) == ("valid", 5)
    (tmp_path / "part-4.parquet").unlink()
    assert verify_events(tmp_path).state == "unknown"


def test_parts_may_differ_in_how_they_spell_the_same(tmp_path):
    plain = table_of(SOUND)
    coded = plain.set_column(4, "kind", plain["kind"].dictionary_encode())
    pq.write_table(coded.slice(0, 3), tmp_path / "part-0.parquet")
    pq.write_table(coded.slice(3), tmp_path / "part-1.parquet")
    assert verify_events(tmp_path).state == "valid"


def test_each_part_declares_the_promises_of_its_own_runs(tmp_path):
    for name, promise in (("one", "none"), ("two", "causal")):
        about = {"beforehand": json.dumps({"runs": {name: {"promise": promise}}})}
        table = table_of(CHAIN, run=name).replace_schema_metadata(about)
        pq.write_table(table, tmp_path / f"{name}.parquet")
    assert [run.state for run in verify_events(tmp_path).runs] == ["valid", "invalid"]


@pytest.mark.parametrize("packs", [False, True])
def test_a_log_may_come_from_the_standard_input(tmp_path, monkeypatch, packs):
    pq.write_table(table_of(CHAIN), tmp_path / "x")
    content = (tmp_path / "x").read_bytes()
    source = io.BytesIO(gzip.compress(content) if packs else content)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(source))
    assert verify_events(Path("-")).state == "invalid"


def test_a_folder_with_the_name_of_a_log_is_one_in_parts(tmp_path):
    folder = tmp_path / "run" / "events.parquet"
    folder.mkdir(parents=True)
    pq.write_table(table_of(SOUND), folder / "part-0.parquet")
    assert verify_events(tmp_path).state == "valid"


def test_stories_call_nodes_by_their_names(verify):
    about = {"runs": {"r": {"names": ["zero", "ann", "bob", "cid", "dee"]}}}
    table = table_of(CHAIN).replace_schema_metadata({"beforehand": json.dumps(about)})
    (story,) = verify(table).stories()
    assert "node dee delivered ann:70 after cid:90" in story
    assert story.splitlines()[1].endswith("node ann broadcasts ann:70")


def test_a_broadcast_by_another_node_than_its_origin_is_a_doubt(verify):
    (run,) = verify(table_of([(2, "broadcast", 1, 70), (1, "deliver", 1, 70)])).runs
    assert run.state == "unknown"
    assert run.reason == "1 broadcasts are by another node than their origin"


@pytest.mark.parametrize("how", ["a file", "packed", "stdin"])
def test_two_logs_that_were_put_one_behind_the_other_are_refused(tmp_path, monkeypatch, how):
    """As `cat` does it: the end of the second would be believed, and rows of the first read."""
    pq.write_table(table_of(SOUND), tmp_path / "1")
    pq.write_table(table_of(CHAIN), tmp_path / "2")
    both = [(tmp_path / name).read_bytes() for name in ("1", "2")]
    path = tmp_path / "both"
    path.write_bytes(b"".join(map(gzip.compress, both) if how == "packed" else both))
    if how == "stdin":
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"".join(both))))
        path = Path("-")
    with pytest.raises(InputError, match="several Parquet files, one behind the other"):
        verify_events(path)


def test_only_the_last_part_of_a_log_decided_the_promise(tmp_path):
    late = table_of(CHAIN)
    for part, promise, rows in ((0, "causal", late.slice(0, 5)), (1, "none", late.slice(5))):
        said = json.dumps({"runs": {"r": {"promise": promise}}})
        rows = rows.replace_schema_metadata({"beforehand": said})
        pq.write_table(rows, tmp_path / f"part-{part}.parquet")
    (run,) = verify_events(tmp_path).runs
    assert run.counts["late"]
    assert run.state == "unknown", "whether that is a violation hangs on which of them is right"
    assert "its files have different promises: `causal`, `none`" in run.reason


def test_a_log_behind_a_link_to_a_folder_was_not_judged(tmp_path):
    for name, rows in (("here/a", SOUND), ("elsewhere", CHAIN)):
        (tmp_path / name).mkdir(parents=True)
        pq.write_table(table_of(rows, run=name), tmp_path / name / "events.parquet")
    (tmp_path / "here" / "_hidden").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "here" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "here" / "link" / "back").symlink_to(tmp_path / "here")
    found = {run.run: run.state for run in verify_events(tmp_path / "here").runs}
    assert found == {"here/a": "valid", "elsewhere": "invalid"}
