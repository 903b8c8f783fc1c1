"""Deliveries at or below the floor of their node, which the log of the stamped order states."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from beforehand.cli import main
from beforehand.mobility.generators.crowd import generate
from beforehand.protocols.epidemic.options import Options
from beforehand.sim.contacts.run import Spec, run_one
from beforehand.sim.log import event_table, write_events
from beforehand.verify import floors, stream
from beforehand.verify.stored_index import open_index, write_index
from beforehand.verify.verdict import verify_events
from tests.verify import test_stream
from tests.verify.test_node_logs import judged, split, write_all
from tests.verify.test_verdict import table_of

is_streamed = test_stream.is_streamed

SOUND = [
    (1, "broadcast", 1, 70),
    (1, "deliver", 1, 70),
    (2, "broadcast", 2, 90),
    (2, "deliver", 2, 90),
    (3, "deliver", 2, 90),
    (3, "skip", 1, 80),
    (3, "skip", 1, 85),
    (4, "skip", 2, 60),
    (4, "deliver", 1, 70),
]
WRONG = [*SOUND, (3, "deliver", 1, 70)]
STORY = [
    "run r: node 3 delivered 1:70, which is not above its floor of 80",
    "  step        5  at       5s  node 3 skips up to 80",
    "  step        9  at       9s  node 3 delivers 1:70",
]


def verdict_of(rows, tmp_path, **options):
    pq.write_table(table_of(rows), tmp_path / "events.parquet", **options)
    return verify_events(tmp_path / "events.parquet")


def test_delivery_below_an_earlier_floor_of_its_node_makes_the_run_invalid(tmp_path, capsys):
    assert verdict_of(SOUND, tmp_path).state == "valid"
    verdict = verdict_of(WRONG, tmp_path)
    assert (verdict.state, verdict.exit_code) == ("invalid", 1)
    reason = "1 deliveries at or below the floor of their node"
    assert verdict.runs[0].reason == reason
    assert [story.splitlines() for story in verdict.stories()] == [STORY]
    path = str(tmp_path / "events.parquet")
    assert main(["verify", path, "--explain", "--promise", "none"]) == 1
    printed = capsys.readouterr().out
    assert reason in printed
    assert "\n".join(STORY) in printed
    assert main(["verify", path, "--explain", "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert (answer["stories"], answer["stories_not_shown"]) == (["\n".join(STORY)], 0)


def test_stamp_of_the_floor_itself_lies_at_the_floor(tmp_path):
    at, above = (
        [(1, "broadcast", 1, stamp), (3, "skip", 2, 80), (3, "deliver", 1, stamp)]
        for stamp in (80, 81)
    )
    assert verdict_of(at, tmp_path).state == "invalid"
    assert verdict_of(above, tmp_path).state == "valid"


def test_floor_never_falls(tmp_path):
    rows = [(1, "broadcast", 1, 70), (3, "skip", 2, 80), (3, "skip", 2, 60), (3, "deliver", 1, 70)]
    (story,) = verdict_of(rows, tmp_path).stories()
    assert "its floor of 80" in story


def test_log_in_batches_gets_the_verdict_of_the_whole(tmp_path, is_streamed, monkeypatch):
    more = [(3, "skip", 1, 95), (4, "deliver", 2, 90), (3, "deliver", 2, 90)]
    for rows in (SOUND, WRONG, [*WRONG, *more]):
        is_streamed(10**9)
        whole = verdict_of(rows, tmp_path, row_group_size=3)
        is_streamed(1)
        monkeypatch.setattr(stream, "BATCH_ROWS", 2)
        parts = verify_events(tmp_path / "events.parquet")
        assert parts.runs[0].log.indexed is not None
        assert parts.runs[0].reason == whole.runs[0].reason
        assert [*parts.stories()] == [*whole.stories()]
    assert whole.runs[0].log.below_floor.count == 2


def test_stored_index_keeps_the_deliveries_below_the_floor(tmp_path):
    verdict = verdict_of(WRONG, tmp_path)
    file = tmp_path / "events.parquet"
    assert write_index(file, tmp_path / "index")
    opened = open_index(file, tmp_path / "index")
    assert opened.below_floor == verdict.runs[0].log.below_floor


def test_log_without_skips_is_not_searched(tmp_path, monkeypatch):
    monkeypatch.delattr(floors.Floors, "add")
    rows = [row for row in WRONG if row[1] != "skip"]
    assert verdict_of(rows, tmp_path).state == "valid"
    with pytest.raises(AttributeError):
        verdict_of(WRONG, tmp_path)


def test_all_violations_are_counted_though_few_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(floors, "SHOWN_MAX", 2)
    sent = [(1, "broadcast", 1, stamp) for stamp in range(5)]
    rows = [*sent, (3, "skip", 1, 9), *((3, "deliver", 1, stamp) for stamp in range(5))]
    verdict = verdict_of(rows, tmp_path)
    assert verdict.runs[0].stories_count == 5
    assert [story.split(",")[0][-3:] for story in verdict.stories()] == ["1:0", "1:1"]


def test_logs_of_real_nodes_are_held_to_their_floors(tmp_path):
    assert judged(write_all(tmp_path / "sound", split(SOUND))).state == "valid"
    run = judged(write_all(tmp_path / "wrong", split(WRONG)))
    assert (run.state, run.log.below_floor.count) == ("invalid", 1)
    (story,) = run.stories()
    assert story.splitlines()[0].endswith(
        "node cid delivered ann:70, which is not above its floor of 80"
    )


def test_simulated_run_with_skips_is_valid_until_a_skipped_cause_is_delivered(tmp_path):
    trace = generate(3, nodes_mean=30, hours=0.6)
    spec = Spec("stamped", seed=2, lifetime_us=3_600_000_000, layer=Options(capacity=2))
    columns = run_one(trace, spec).columns
    table = event_table("r", columns)
    path = tmp_path / "events.parquet"
    write_events(table, path)
    assert verify_events(path).state == "valid"
    rows = table.to_pylist()
    skips = [row for row in rows if row["kind"] == "skip"]
    assert skips
    delivered = {(row["node"], row["origin"], row["seq"]) for row in rows}
    skip = skips[0]
    sent = [row for row in rows if row["kind"] == "broadcast" and row["seq"] <= skip["seq"]]
    missed = next(row for row in sent if (skip["node"], row["origin"], row["seq"]) not in delivered)
    late = {**rows[-1], "kind": "deliver", "node": skip["node"], "step": len(rows)}
    late |= {"origin": missed["origin"], "seq": missed["seq"]}
    planted = pa.Table.from_pylist([*rows, late], schema=table.schema.remove_metadata())
    pq.write_table(planted, path)
    assert verify_events(path).runs[0].log.below_floor.count == 1
