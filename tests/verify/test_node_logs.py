"""The logs of real nodes, without a common clock: the verdict is that of the order nobody saw."""

from __future__ import annotations

import json
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from beforehand.cli import main
from beforehand.errors import InputError
from beforehand.events import KINDS as SIMULATED
from beforehand.mobility.generators.crowd import generate
from beforehand.sim.contacts.run import Spec, run_one
from beforehand.sim.log import event_table, write_events
from beforehand.verify.verdict import verify_events
from tests.kernels.verify.test_merge import random_run
from tests.verify.test_verdict import CHAIN

NAMES = ("zed", "ann", "bob", "cid", "dee")
SOUND = [row for row in CHAIN[:10] if row[1] != "join"]
LATE = [row for row in CHAIN if row[1] != "join"]


def split(rows, names=NAMES):
    """Each node's own rows: (kind, origin, seq), between a start and a stop."""
    lines = {names[node]: [("start", "", 1)] for node, *_ in rows}
    for node, kind, origin, seq in rows:
        lines[names[node]].append((kind, names[origin], seq))
    return {name: [*line, ("stop", "", 0)] for name, line in lines.items()}


def write(folder, name, line, *, life="a", first=0, run="harbour", rng=None, about=None):
    """One file, with a clock that is wrong."""
    rng = rng or random.Random(name)
    kinds, origins, seqs = zip(*line, strict=True)
    size = len(line)
    wrong_us = rng.randrange(-(10**15), 10**15)
    times = wrong_us + np.cumsum([rng.randrange(-1000, 5000) for _ in line])
    is_start = [kind == "start" for kind in kinds]
    table = pa.table(
        {
            "run": [run] * size,
            "node": pa.array([name] * size).dictionary_encode(),
            "life": [life] * size,
            "step": np.arange(first, first + size),
            "t_us": times,
            "kind": kinds,
            "origin": origins,
            "seq": pa.array([0 if s else q for s, q in zip(is_start, seqs, strict=True)]),
            "value": pa.array([q if s else 0 for s, q in zip(is_start, seqs, strict=True)]),
        }
    ).replace_schema_metadata({"beforehand": json.dumps({"runs": {run: about or {}}})})
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{run}.{name}.{life}.{first:012d}.node.parquet"
    pq.write_table(table, path)
    return path


def write_all(folder, lines):
    for name, line in lines.items():
        write(folder / name, name, line)
    return folder


def judged(folder):
    (run,) = verify_events(folder).runs
    return run


@pytest.fixture(scope="module")
def simulated():
    return {
        (protocol, seed): run_one(
            generate(seed, nodes_mean=20, hours=0.2), Spec(protocol, seed=seed)
        ).columns
        for protocol in ("causal", "none")
        for seed in (3, 4, 5)
    }


@pytest.mark.parametrize("protocol", ["causal", "none"])
@pytest.mark.parametrize("seed", [3, 4, 5])
def test_a_simulated_run_is_judged_alike_from_its_nodes_own_logs(
    simulated, protocol, seed, tmp_path
):
    columns = simulated[protocol, seed]
    write_events(event_table("r", columns), tmp_path / "whole" / "events.parquet")
    expected = judged(tmp_path / "whole")
    assert expected.deliveries > 100
    assert expected.state == ("valid" if protocol == "causal" else "invalid")
    kept = [SIMULATED.index(kind) for kind in ("broadcast", "receive", "deliver")]
    cells = zip(*(columns[n].tolist() for n in ("node", "kind", "origin", "seq")), strict=True)
    rows = [(n, SIMULATED[kind], o, s) for n, kind, o, s in cells if kind in kept]
    names = [f"node-{at:03d}" for at in range(1 + max(node for node, *_ in rows))]
    found = judged(write_all(tmp_path / "nodes", split(rows, names)))
    assert (found.state, found.counts) == (expected.state, expected.counts)
    assert (found.broadcasts, found.deliveries) == (expected.broadcasts, expected.deliveries)
    told = {story.splitlines()[0] for story in found.stories()}
    assert len(told) == len({story.splitlines()[0] for story in expected.stories()})


@pytest.mark.parametrize("seed", range(25))
def test_planted_violations_are_found_with_any_clock_readings(seed, tmp_path):
    rng = random.Random(seed)
    spoken = {}
    rows = []
    for node, is_broadcast, message in random_run(rng, 80):
        spoken.setdefault(message, node)
        rows.append((node, "broadcast" if is_broadcast else "deliver", spoken[message], message))
    size = len(rows)
    columns = {
        "t_us": np.arange(size),
        "node": np.array([row[0] for row in rows]),
        "kind": np.array([SIMULATED.index(row[1]) for row in rows], np.int8),
        "origin": np.array([row[2] for row in rows]),
        "seq": np.array([row[3] for row in rows]),
        "value": np.zeros(size, np.int64),
    }
    write_events(event_table("r", columns), tmp_path / "whole.parquet")
    expected = judged(tmp_path / "whole.parquet")
    assert expected.counts["late"] + expected.counts["twice"] > 0
    found = judged(write_all(tmp_path / "nodes", split(rows)))
    assert (found.state, found.counts) == (expected.state, expected.counts)


def test_a_sound_run_is_valid_and_a_late_delivery_is_proved_by_names(tmp_path):
    assert judged(write_all(tmp_path / "sound", split(SOUND))).state == "valid"
    run = judged(write_all(tmp_path / "late", split(LATE)))
    assert (run.run, run.state) == ("harbour", "invalid")
    (story,) = run.stories()
    head, *steps = story.splitlines()
    assert head == "run harbour: node dee delivered ann:70 after cid:90, which causally follows it"
    assert [step.split("node ")[1] for step in steps] == [
        "ann broadcasts ann:70",
        "bob delivers ann:70",
        "bob broadcasts bob:50",
        "cid delivers bob:50",
        "cid broadcasts cid:90",
        "dee delivers cid:90",
        "dee delivers ann:70",
    ]
    assert [int(step.split()[1]) for step in steps] == [1, 1, 2, 2, 3, 1, 2]  # each its own


def test_the_command_judges_a_folder_of_logs(tmp_path, capsys):
    assert main(["verify", str(write_all(tmp_path / "late", split(LATE))), "--explain"]) == 1
    assert "node dee delivered ann:70 after cid:90" in capsys.readouterr().out
    assert main(["verify", str(write_all(tmp_path / "sound", split(SOUND)))]) == 0
    alone = next((tmp_path / "sound" / "dee").iterdir())
    assert main(["verify", str(alone)]) == 3
    assert "1 deliveries from members without a log: `cid`" in capsys.readouterr().out


def test_a_cycle_of_causes_is_invalid_even_if_logs_are_missing(tmp_path):
    rows = [
        (1, "deliver", 2, 1),
        (1, "broadcast", 1, 1),
        (2, "deliver", 1, 1),
        (2, "broadcast", 2, 1),
    ]
    lines = split(rows)
    run = judged(write_all(tmp_path / "whole", lines))
    assert run.state == "invalid"
    assert run.reason == "1 deliveries before their broadcasts, in whatever order"
    (story,) = run.stories()
    assert "before it was broadcast" in story
    assert len(story.splitlines()) == 3
    cut = {name: line[:-1] for name, line in lines.items()}
    assert judged(write_all(tmp_path / "cut", cut)).state == "invalid"


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda lines: lines["bob"].pop(), "no stop event, so killed or running: `bob`"),
        (lambda lines: lines.pop("cid"), "deliveries from members without a log: `cid`"),
        (
            lambda lines: lines["bob"].__setitem__(0, ("start", "", 2)),
            "ran without a log: `bob`",
        ),
        (
            lambda lines: lines["bob"].insert(3, ("start", "", 3)),
            "ran without a log: `bob`",
        ),
        (lambda lines: lines["bob"].pop(0), "ran without a log: `bob`"),
        (lambda lines: lines["bob"].insert(2, ("Deliver", "cid", 90)), "no known kind"),
    ],
)
def test_unknown_is_not_valid(spoil, reason, tmp_path):
    lines = split(SOUND)
    spoil(lines)
    run = judged(write_all(tmp_path, lines))
    assert run.state == "unknown"
    assert reason in run.reason


def test_a_node_that_was_killed_and_came_back_is_valid(tmp_path):
    lines = split(SOUND)
    lines["bob"].insert(3, ("start", "", 2))
    lines["cid"][3:3] = [("stop", "", 0), ("start", "", 2)]
    assert judged(write_all(tmp_path, lines)).state == "valid"


def test_a_gap_between_two_files_is_a_doubt_and_the_same_file_twice_is_not(tmp_path):
    lines = split(SOUND)
    bob = lines.pop("bob")
    write_all(tmp_path, lines)
    parts = [write(tmp_path, "bob", bob[at : at + 2], first=at) for at in range(0, len(bob), 2)]
    assert judged(tmp_path).state == "valid"
    (tmp_path / "copy").mkdir()
    for part in parts:
        (tmp_path / "copy" / part.name).write_bytes(part.read_bytes())
    assert judged(tmp_path).state == "valid"
    for folder in (tmp_path, tmp_path / "copy"):
        (folder / parts[1].name).unlink()
    run = judged(tmp_path)
    assert run.state == "unknown"
    assert "events are missing from the log of `bob` (2)" in run.reason


def test_an_unknown_message_is_invalid_only_if_the_log_of_its_origin_is_complete(
    tmp_path,
):
    lines = split([*SOUND, (4, "deliver", 1, 99)])
    assert judged(write_all(tmp_path / "whole", lines)).state == "invalid"
    lines["ann"].pop()
    run = judged(write_all(tmp_path / "cut", lines))
    assert (run.state, run.counts["unknown"]) == ("unknown", 1)


def test_two_incarnations_under_one_name_are_never_valid(tmp_path):
    lines = split(SOUND)
    write_all(tmp_path, lines)
    again = write(tmp_path, "dee", lines["dee"], life="b")
    run = judged(tmp_path)
    assert run.state == "unknown"
    assert "several incarnations in no known order: `dee`" in run.reason
    again.unlink()
    assert judged(tmp_path).state == "valid"


@pytest.mark.parametrize(
    ("extra", "problem"),
    [
        (("deliver", "ann", 71), "two logs of `bob` differ in step 1"),
        (("broadcast", "ann", 70), "two logs of `bob` differ in step 1"),
        (("deliver", "dee", 70), "two logs of `bob` differ in step 1"),
    ],
)
def test_two_logs_that_contradict_each_other_are_refused(extra, problem, tmp_path):
    lines = split(SOUND)
    write_all(tmp_path, lines)
    write(tmp_path / "other", "bob", [extra], first=1)
    with pytest.raises(InputError, match=problem):
        verify_events(tmp_path)


def test_a_message_that_is_broadcast_twice_is_refused_with_both_places(tmp_path):
    write_all(tmp_path, split([*SOUND, (4, "broadcast", 1, 70)]))
    with pytest.raises(InputError, match=r"step 1 of `ann` and step 2 of `dee`"):
        verify_events(tmp_path)


def test_clocks_that_are_set_back_are_shown_as_they_were(tmp_path):
    write_all(tmp_path, split(LATE))
    path = next((tmp_path / "dee").iterdir())
    table = pq.read_table(path)
    times = pa.array([10**15, -(10**15), 5, 0])
    pq.write_table(table.set_column(4, "t_us", times), path)
    (story,) = judged(tmp_path).stories()
    assert "at -" in story.splitlines()[-1]


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda table: table.drop_columns(["life"]), "no column `life`"),
        (lambda table: table.set_column(3, "step", pa.array(range(-1, 3))), "below 0"),
        (lambda table: table.set_column(6, "origin", pa.array(range(4))), "not text"),
        (lambda table: table.set_column(1, "node", pa.array([None] * 4, pa.string())), "empty"),
    ],
)
def test_a_file_that_is_not_the_log_of_a_node_is_refused(tmp_path, spoil, problem):
    write_all(tmp_path, split(LATE))
    path = next((tmp_path / "dee").iterdir())
    pq.write_table(spoil(pq.read_table(path)), path)
    with pytest.raises(InputError, match=problem):
        verify_events(tmp_path)
    path.write_bytes(b"PAR1 and nothing else")
    with pytest.raises(InputError, match="not a Parquet file"):
        verify_events(tmp_path)


def test_files_without_rows_are_unknown(tmp_path):
    path = write(tmp_path, "ann", split(LATE)["ann"])
    pq.write_table(pq.read_table(path).slice(0, 0), path)
    run = judged(tmp_path)
    assert (run.state, run.reason) == ("unknown", "there are no events in the log")


def test_two_groups_in_one_folder_are_two_runs(tmp_path):
    for run, rows in (("harbour", SOUND), ("market", LATE)):
        for name, line in split(rows).items():
            write(tmp_path, name, line, run=run)
    found = {run.run: run.state for run in verify_events(tmp_path).runs}
    assert found == {"harbour": "valid", "market": "invalid"}


def test_nodes_that_promise_different_things_are_not_judged(tmp_path):
    for name, line in split(SOUND).items():
        write(tmp_path, name, line, about={"promise": "none" if name == "bob" else "causal"})
    run = judged(tmp_path)
    assert run.state == "unknown"
    assert "files have different promises: `causal`, `none`" in run.reason


def test_a_node_that_broadcasts_under_the_name_of_another_was_valid(tmp_path):
    rows = [(1, "broadcast", 2, 70), (3, "deliver", 2, 70), (2, "deliver", 2, 70)]
    write_all(tmp_path, split(rows))
    run = judged(tmp_path)
    assert run.state == "unknown"
    assert run.reason == "1 broadcasts are by another node than their origin"


def test_two_logs_of_nodes_put_together_by_cat_are_not_one_of_them(tmp_path):
    """Files of one layout: the end of the second fits the rows of the first."""
    lines = split(LATE) | {"eve": [("start", "", 1), *split(LATE)["dee"][2:0:-1], ("stop", "", 0)]}
    paths = {name: write(tmp_path, name, line) for name, line in lines.items()}
    for path in paths.values():
        table = pq.read_table(path)
        table = table.set_column(4, "t_us", pa.array(range(len(table))))
        pq.write_table(table, path, compression=None, use_dictionary=False)
    assert judged(tmp_path).state == "invalid"
    paths["eve"].write_bytes(paths["eve"].read_bytes() + paths["dee"].read_bytes())
    paths["dee"].unlink()
    with pytest.raises(InputError, match="several Parquet files, one behind the other"):
        verify_events(tmp_path)


def test_logs_of_nodes_beside_logs_of_runs_are_judged_too(tmp_path):
    write_all(tmp_path / "nodes", split(LATE))
    columns = {"t_us": [0], "node": [1], "origin": [1], "seq": [1], "value": [0]}
    arrays = {name: np.array(values) for name, values in columns.items()}
    arrays["kind"] = np.array([0], np.int8)
    write_events(event_table("sim", arrays), tmp_path / "events.parquet")
    assert [run.run for run in verify_events(tmp_path).runs] == ["sim", "harbour"]


def write_with_rosters(folder, lines, rosters):
    for name, line in lines.items():
        write(folder, name, line, about={"members": rosters.get(name, [])})
    return folder


def test_a_member_in_any_roster_without_a_log_is_a_doubt(tmp_path):
    rosters = {"ann": ["ann", "bob"], "bob": ["bob", "eve"]}
    run = judged(write_with_rosters(tmp_path / "sound", split(SOUND), rosters))
    assert (run.state, run.reason) == ("unknown", "members without a log: `eve`")
    assert run.log.about.members == ("ann", "bob", "eve")
    run = judged(write_with_rosters(tmp_path / "late", split(LATE), rosters))
    assert run.state == "invalid", "whatever eve did"


def test_a_member_whose_messages_were_delivered_is_doubted_once(tmp_path):
    lines = split(SOUND)
    del lines["cid"]
    run = judged(write_with_rosters(tmp_path, lines, {"ann": ["ann", "cid", "fay"]}))
    assert run.reason == (
        "1 deliveries from members without a log: `cid`; members without a log: `fay`"
    )


def test_a_roster_of_one_run_does_not_apply_to_another(tmp_path):
    for run in ("harbour", "market"):
        for name, line in split(SOUND).items():
            members = ["eve"] if run == "market" else []
            write(tmp_path, name, line, run=run, about={"members": members})
    found = {run.run: run.state for run in verify_events(tmp_path).runs}
    assert found == {"harbour": "valid", "market": "unknown"}
