"""`verify_events` and `beforehand verify` give one answer on every kind of folder."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from beforehand.cli import main
from beforehand.errors import InputError, visible
from beforehand.files import marks_below
from beforehand.verify.verdict import verify_events
from tests.commands.zoo import make_zoo
from tests.verify.test_doubts import SOUND
from tests.verify.test_node_logs import LATE, split, write_all
from tests.verify.test_node_logs import SOUND as SOUND_NODES
from tests.verify.test_verdict import CHAIN, table_of


def write_run(root, name, rows=SOUND):
    """A finished dataset of the stage `overlay`: its log and its manifest."""
    folder = root / "data" / "overlay" / name
    folder.mkdir(parents=True)
    pq.write_table(table_of(rows, run=name), folder / "events.parquet")
    marks = {
        file: {"bytes": m.bytes, "digest": m.digest} for file, m in marks_below(folder).items()
    }
    (folder / "manifest.json").write_text(json.dumps({"files": marks}))
    return folder


def write_plan(root, *names, stage="overlay"):
    folders = [f"data/{stage}/{name}" for name in names]
    plan = {"scenario": "x", "world": "overlay", "stages": {stage: folders}}
    root.mkdir(exist_ok=True)
    (root / "plan.json").write_text(json.dumps(plan))
    return root


def whole(root):
    write_run(root, "a")
    write_run(root, "b")
    write_plan(root, "a", "b")


def without_dataset(root):
    write_run(root, "a")
    write_plan(root, "a", "b")


def without_log(root):
    whole(root)
    (root / "data" / "overlay" / "b" / "events.parquet").unlink()


def without_manifest(root):
    whole(root)
    (root / "data" / "overlay" / "b" / "manifest.json").unlink()


def with_cut_off_manifest(root):
    whole(root)
    path = root / "data" / "overlay" / "b" / "manifest.json"
    path.write_text(path.read_text()[:20])


def with_cut_off_manifest_and_no_log(root):
    with_cut_off_manifest(root)
    (root / "data" / "overlay" / "b" / "events.parquet").unlink()


def with_damaged_log(root):
    whole(root)
    path = root / "data" / "overlay" / "b" / "events.parquet"
    path.write_bytes(path.read_bytes()[:-50])


def with_a_violation_beside_a_lost_log(root):
    write_run(root, "a", CHAIN)
    write_plan(root, "a", "b")


def of_an_earlier_run(root):
    write_run(root, "a")
    write_plan(root, "c")


def of_nothing(root):
    write_run(root, "a")
    write_plan(root)


def with_a_broken_plan(root):
    whole(root)
    (root / "plan.json").write_text("{")


def nodes(root):
    write_all(root, split(SOUND_NODES))


def nodes_of_a_violation(root):
    write_all(root, split(LATE))


def nodes_without_one(root):
    lines = split(SOUND_NODES)
    del lines["cid"]
    write_all(root, lines)


FOLDERS = {
    whole: "valid",
    without_dataset: "unknown",
    without_log: "unknown",
    without_manifest: "unknown",
    with_cut_off_manifest: "unknown",
    with_cut_off_manifest_and_no_log: "unknown",
    with_damaged_log: "unknown",
    with_a_violation_beside_a_lost_log: "invalid",
    of_an_earlier_run: "unknown",
    of_nothing: "valid",
    with_a_broken_plan: "",
    nodes: "valid",
    nodes_of_a_violation: "invalid",
    nodes_without_one: "unknown",
}


def of_library(path, promise):
    """Return (exit code, verdict), or (2, the problem)."""
    try:
        verdict = verify_events(path, promise=promise)
    except InputError as error:
        return 2, error.problem
    runs = [
        {
            "run": run.run,
            "verdict": run.state,
            "reason": run.reason,
            "promise": run.promise,
            "promise_from": run.promise_from,
            "broadcasts": run.broadcasts,
            "deliveries": run.deliveries,
            "violations": run.counts,
        }
        for run in verdict.runs
    ]
    told = {"verdict": verdict.state, "runs": runs, "lost": list(verdict.lost)}
    return verdict.exit_code, told


def of_command(path, promise, capsys):
    asked = [] if promise is None else ["--promise", promise]
    code = main(["verify", str(path), "--json", *asked])
    shown = capsys.readouterr()
    if code == 2:
        return code, shown.err
    told = json.loads(shown.out)
    return code, {name: told[name] for name in ("verdict", "runs", "lost")}


def check_one_answer(path, promise, capsys):
    (code, known), (expected, told) = (
        of_library(path, promise),
        of_command(path, promise, capsys),
    )
    assert code == expected, f"{path}: {known}, but the command says {told}"
    if code == 2:
        assert visible(known) in told
    else:
        assert known == told
    return code


@pytest.mark.parametrize("promise", [None, "none"])
@pytest.mark.parametrize("make", FOLDERS, ids=lambda make: make.__name__)
def test_library_and_command_give_one_answer(tmp_path, capsys, make, promise):
    make(tmp_path)
    check_one_answer(tmp_path, promise, capsys)
    if FOLDERS[make] and promise is None:
        assert verify_events(tmp_path).state == FOLDERS[make]


def test_library_and_command_agree_on_every_hostile_log(tmp_path, capsys):
    zoo = make_zoo(tmp_path)
    paths = [path for folder in ("logs", "out") for path in sorted((zoo / folder).iterdir())]
    codes = [check_one_answer(path, None, capsys) for path in paths]
    assert {*codes} == {0, 1, 2, 3}
    assert len(codes) > 100


def test_reasons_are_those_that_the_command_prints(tmp_path, capsys):
    without_dataset(tmp_path)
    write_run(tmp_path, "silent", CHAIN[:2])
    assert [*verify_events(tmp_path).reasons()] == [
        ("silent", "unknown", "nothing was delivered"),
        ("data/overlay/b", "unknown", "its event log is missing"),
    ]
    main(["verify", str(tmp_path)])
    shown = capsys.readouterr().out
    assert "silent: unknown: nothing was delivered" in shown
    assert "data/overlay/b: unknown: its event log is missing" in shown


def test_a_planned_run_without_a_log_was_valid_for_the_library_and_unknown_for_the_command(
    tmp_path,
):
    without_dataset(tmp_path)
    assert main(["verify", str(tmp_path)]) == 3
    verdict = verify_events(tmp_path)
    assert (verdict.state, verdict.exit_code) == ("unknown", 3)


def test_a_dataset_with_a_cut_off_manifest_and_no_log_was_overlooked(tmp_path):
    with_cut_off_manifest_and_no_log(tmp_path)
    verdict = verify_events(tmp_path)
    assert (verdict.state, verdict.lost) == ("unknown", ("data/overlay/b",))
