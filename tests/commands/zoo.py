"""A folder of hostile files, by name."""

from __future__ import annotations

import gzip
import json
import os
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.report.made_up import make_run
from tests.verify.test_verdict import CHAIN, table_of

SOUND = CHAIN[:10]
CONTACTS = "a b 0 600\nb c 100 900\nc d 500 1200\n"
WALK = "node,t,x,y\na,0,0,0\na,600,0,0\nb,0,900,0\nb,600,0,0\n"
MET = '[mobility]\ninput = "../contacts"\n[[protocols]]\nname = "causal"\n'
SCENARIO = '[mobility]\ngenerator = "waypoint"\nrange = "50m"\n[[protocols]]\nname = "causal"\n'


def make_zoo(root: Path) -> Path:
    """Write all hostile files into the folder, and return their paths by name."""
    _make_bytes(root)
    _make_logs(root / "logs")
    _make_scenarios(root / "toml")
    _make_results(root / "out")
    _make_streams(root / "stream")
    return root


def _make_bytes(root: Path) -> None:
    (root / "folder").mkdir()
    (root / "loop").symlink_to("loop")
    (root / "dangling").symlink_to("nowhere")
    (root / "to-device").symlink_to("/dev/null")
    for name, content in {
        "empty": b"",
        "binary": random.Random(1).randbytes(3000),
        "zeros": bytes(3000),
        "latin": "caf\xe9 b 0 1\n".encode("latin-1"),
        "utf16": "a b 0 600\n".encode("utf-16"),
        "comments": b"# nothing\n# but this\n",
        "blank": b"\n \n\t\n",
        "contacts": CONTACTS.encode(),
        "walk": WALK.encode(),
        "backwards": b"a b 0 600\nb c 900 100\n",
        "negative": b"a b -5 600\nb c 0 100\n",
        "not-a-time": b"a b nan 600\nb c 0 100\nc d 0 100\n",
        "endless": b"a b 0 inf\nb c 0 100\nc d 0 100\n",
        "too-late": b"a b 0 99999999999999999999\nb c 0 100\n",
        "alone": b"a a 0 600\n",
        "long-line": b"a " * 200_000,
        "uni": "Zo\xeb \u738b 0 600\n\u738b \U0001f600 100 900\n".encode(),
        "cut.gz": gzip.compress(CONTACTS.encode() * 1000)[:-20],
        "trailed.gz": gzip.compress(CONTACTS.encode()) + b"garbage",
        "packed-twice.gz": gzip.compress(gzip.compress(CONTACTS.encode())),
        "lasts-less": b"a,b,start,duration\nx,y,5,-3\n",
        "nan-place": b"node,t,x,y\na,0,nan,0\na,5,1,1\n",
        "far-place": b"node,t,x,y\na,0,1e308,0\na,5,1,1\n",
        "far-time": b"node,t,x,y\na,0,0,0\na,1e30,1,1\n",
        "seen-once": b"node,t,x,y\na,0,0,0\n",
        "swapped": b"node,t,lat,lon\na,0,120,50\na,9,120,50\n",
        "pole": b"node,t,lat,lon\na,0,90,50\na,9,90,-130\nb,0,80,0\nb,9,80,0\n",
        "unclosed": b'a,b,start,end\n"a,b,0,5\n',
        "hexes": b"a b 0x10 0x20\n",
        "underscores": b"a b 1_0 2_0\n",
        "utf16-bare": "a b 0 600\n".encode("utf-16-le"),
        "nan-walk": b"0 0 0 5 nan 3\n0 1 1 7 1 1\n",
        "nan-ns2": b'$node_(0) set X_ nan\n$ns_ at 1 "$node_(0) setdest 1 1 1"\n',
        "crawl-ns2": b'$ns_ at 1 "$node_(0) setdest 1 1 1e-300"\n',
        "before-ns2": b'$ns_ at -1 "$node_(0) setdest 1 1 1"\n',
        "far-one": b"0 9 0 9 0 9\n0 a 1e400 0\n3 a 1 1\n",
        "dirty": b"a b 0 600\na b 100 200\nc c 1 5\n",
        "zip": b"PK\x03\x04" + bytes(40),
        "half-zip": b"PK\x05\x06" + bytes(18),
    }.items():
        (root / name).write_bytes(content)


def _make_logs(root: Path) -> None:
    root.mkdir()
    sound = table_of(SOUND)
    tables = {
        "sound": sound,
        "late": table_of(CHAIN),
        "late-run": table_of(CHAIN, run="late"),
        "twice": table_of([*SOUND, (2, "deliver", 1, 70)]),
        "nowhere": table_of([*SOUND, (2, "deliver", 9, 9)]),
        "no-rows": sound.slice(0, 0),
        "hole": sound.slice(1),
        "silent": table_of(CHAIN[:2]),
        "capital": table_of([*SOUND, (4, "Deliver", 1, 70)]),
        "banana": table_of([*SOUND, (4, "banana", 1, 70)]),
        "late-banana": table_of([*CHAIN, (4, "banana", 1, 70)]),
        "no-kind": table_of([*SOUND, (4, "", 1, 70)]),
        "said-twice": table_of([*CHAIN, CHAIN[1]]),
        "same-step": pa.concat_tables([sound, sound.slice(2, 1)]),
        "two-runs": pa.concat_tables([sound, table_of(CHAIN, run="bad")]),
        "two-halves": pa.concat_tables([sound, table_of(CHAIN[:2], run="mute")]),
        "below-zero": _with(sound, "step", range(-3, 7)),
        "far-apart": _with(sound, "step", [*range(9), 2**62]),
        "unsigned": _with(sound, "step", pa.array(range(10), pa.uint64())),
        "beyond": _with(sound, "seq", pa.array([2**64 - 1] * 10, pa.uint64())),
        "lists": _with(sound, "run", [["r"]] * 10),
        "bytes": _with(sound, "kind", [b"deliver"] * 10),
        "no-columns": pa.table({"x": [1]}),
        "cut": _about(sound, {"runs": {"r": {"events": 12}}}),
        "grown": _about(sound, {"runs": {"r": {"events": 3}}}),
        "loose": _about(table_of(CHAIN), {"runs": {"r": {"promise": "none"}}}),
        "fifo": _about(sound, {"runs": {"r": {"promise": "fifo"}}}),
        "babble": sound.replace_schema_metadata({"beforehand": b"\xff\xfe{"}),
        "other-about": _about(sound, [1, 2]),
        "other-speaker": table_of([(2, "broadcast", 1, 70), (1, "deliver", 1, 70)]),
        "views": _with(table_of(CHAIN), "kind", pc.cast(table_of(CHAIN)["kind"], pa.string_view())),
        "below-seq": _with(table_of(CHAIN), "seq", pc.negate(table_of(CHAIN)["seq"])),
    }
    for name in ("run", "step", "t_us", "node", "kind", "origin", "seq"):
        tables[f"without-{name}"] = sound.drop_columns([name])
        nulls = pa.array([None] * 10, sound[name].type)
        tables[f"null-{name}"] = _with(sound, name, nulls)
    for name in ("step", "t_us", "node", "origin", "seq"):
        tables[f"text-{name}"] = _with(sound, name, ["x"] * 10)
        tables[f"float-{name}"] = _with(sound, name, [0.5] * 10)
    for name, table in tables.items():
        pq.write_table(table, root / name, write_page_checksum=True)
    whole, late_run = ((root / name).read_bytes() for name in ("sound", "late-run"))
    for name, content in {
        "truncated": whole[: len(whole) // 2],
        "no-end": whole[:-1],
        "mark": b"PAR1",
        "marks": b"PAR1PAR1",
        "marks-and-length": b"PAR1" + b"\xff\xff\xff\x7f" + b"PAR1",
        "scribbled": whole[:60] + b"\xff" * 40 + whole[100:],
        "behind-another": whole + late_run,
        "before-another": late_run + whole,
        "behind-another.gz": gzip.compress(whole) + gzip.compress(late_run),
        "scribbled-end": whole[:-60] + b"\xff" * 40 + whole[-20:],
    }.items():
        (root / name).write_bytes(content)
    for name, size in (("kept", 0), ("shrunk", 100)):
        path = root / name / "events.parquet"
        path.parent.mkdir()
        path.write_bytes(whole)
        sizes = {"files": {"events.parquet": len(whole) + size}}
        (path.parent / "manifest.json").write_text(json.dumps(sizes))
    (root / "unlisted").mkdir()
    (root / "unlisted" / "part-0.parquet").write_bytes(whole)
    (root / "unlisted" / "manifest.json").write_text('{"files": {}}')
    (root / "broken-manifest").mkdir()
    (root / "broken-manifest" / "events.parquet").write_bytes(whole)
    (root / "broken-manifest" / "manifest.json").write_text("[" * 100_000)
    (root / "half-parts").mkdir()
    pq.write_table(sound.slice(0, 5), root / "half-parts" / "part-0.parquet")
    (root / "half-parts" / "part-1.parquet").write_bytes(b"PAR1")
    packed = gzip.compress(whole)
    for name, content in {
        "sound.gz": packed,
        "late.gz": gzip.compress((root / "late").read_bytes()),
        "half.gz": packed[: len(packed) // 2],
        "text.gz": gzip.compress(b"hello"),
        "wrong.gz": packed[:2] + b"\xff" * 40,
    }.items():
        (root / name).write_bytes(content)
    # A sound log, and one that is late where it could be overlooked.
    for name, late in {
        "packed-part": "part-1.parquet.gz",
        "part-below": "more/part-1.parquet",
        "part-in-capitals": "part-1.PARQUET",
        "part-without-end": "part-1",
        "beside-a-run": "part-1.parquet",
        "packed-run": "b/events.parquet.gz",
    }.items():
        first = "a/events.parquet" if name.endswith("-run") else "part-0.parquet"
        other = gzip.compress(late_run) if late.endswith(".gz") else late_run
        for place, content in ((first, whole), (late, other)):
            (root / name / place).parent.mkdir(parents=True, exist_ok=True)
            (root / name / place).write_bytes(content)
    # A sound log, and beside it what has the name of one.
    for name, beside in (("part-nowhere", "part-1.parquet"), ("part-pipe", "part-1.parquet.gz")):
        (root / name).mkdir()
        (root / name / "part-0.parquet").write_bytes(whole)
        if name == "part-pipe":
            os.mkfifo(root / name / beside)
        else:
            (root / name / beside).symlink_to("nowhere")
    (root / "part-by-link").mkdir()
    (root / "part-by-link" / "part-0.parquet").write_bytes(whole)
    (root / "part-by-link" / "more").symlink_to("../part-below/more")
    (root / "part-by-link" / "round").symlink_to(".")
    for name, first, second in (
        ("two-promises", {"promise": "causal"}, {"promise": "none"}),
        ("two-counts", {"events": 12}, {"events": 10}),
        ("half-babble", None, {"promise": "causal"}),
    ):
        (root / name).mkdir()
        for part, said, rows in ((0, first, sound.slice(0, 5)), (1, second, sound.slice(5))):
            about = _about(rows, {"runs": {"r": said}} if said else [])
            pq.write_table(about, root / name / f"part-{part}.parquet")
    (root / "mixed-parts").mkdir()
    pq.write_table(sound.slice(0, 5), root / "mixed-parts" / "part-0.parquet")
    numbered = _with(sound.slice(5), "run", range(5))
    pq.write_table(numbered, root / "mixed-parts" / "part-1.parquet")
    (root / "other-parts").mkdir()
    pq.write_table(sound.slice(0, 5), root / "other-parts" / "part-0.parquet")
    other = _with(sound.slice(5), "node", ["x"] * 5)
    pq.write_table(other, root / "other-parts" / "part-1.parquet")


def _with(table: pa.Table, name: str, values: object) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, pa.array(values))


def _about(table: pa.Table, about: object) -> pa.Table:
    return table.replace_schema_metadata({"beforehand": json.dumps(about)})


def _make_scenarios(root: Path) -> None:
    root.mkdir()
    for name, content in {
        "sound": SCENARIO,
        "empty": "",
        "broken": "[mobility\n",
        "no-value": "[mobility]\nrange =\n",
        "twice": SCENARIO + "[mobility]\n",
        "deep": "x = " + "[" * 5000,
        "number": "x = " + "9" * 5000,
        "spaces": " " * 20_000 + "x\n",
        "no-table": "mobility = 5\nprotocols = 3\n",
        "moon": '[scenario]\nworld = "moon"\n',
        "drft": '[scenario]\nworld = "drft"\n',
        "path-world": '[scenario]\nworld = "../../etc"\n',
        "bad-name": '[scenario]\nname = "../../x"\n' + SCENARIO,
        "protocol": SCENARIO.replace("causal", "casual"),
        "key": SCENARIO + 'lifetime = "5m"\n',
        "no-protocols": '[mobility]\ngenerator = "waypoint"\nrange = "50m"\n',
        "no-mobility": '[[protocols]]\nname = "causal"\n',
        "no-input": '[mobility]\ninput = "nowhere.txt"\n[[protocols]]\nname = "causal"\n',
        "null-input": '[mobility]\ninput = "a\\u0000b"\n[[protocols]]\nname = "causal"\n',
        "device": '[mobility]\ninput = "/dev/zero"\n[[protocols]]\nname = "causal"\n',
        "nan": SCENARIO.replace("range", "hours = nan\nrange"),
        "generator": SCENARIO.replace("waypoint", "waypoints"),
        "no-unit": SCENARIO.replace('"50m"', "50"),
        "no-range": SCENARIO.replace('"50m"', '"0m"'),
        "far": SCENARIO.replace('"50m"', '"99999999999999999999km"'),
        "seeds": SCENARIO + "[sweep]\nseeds = 0\n",
        "many-seeds": SCENARIO + "[sweep]\nseeds = 9000000000\n",
        "no-lifetime": SCENARIO.replace("causal", "delta"),
        "loss": SCENARIO + "[network]\nloss = 0.5\n",
        "nan-loss": SCENARIO + '[network]\nloss = nan\nretry = "1s"\n',
        "size": SCENARIO + '[network]\nframe = "99999999999999999999GB"\n',
        "digits": SCENARIO + f'[network]\nframe = "{"9" * 5000}B"\n',
        "long-life": SCENARIO.replace("causal", "delta") + 'lifetimes = ["999999999d"]\n',
        "latency": SCENARIO + '[network]\nlatency = "-1s"\n',
        "paper": '[scenario]\npaper = "opp-bus"\n' + SCENARIO,
        "presence": MET.replace("\n[[", '\npresence = "maybe"\n[['),
        "no-slot": MET.replace("\n[[", '\nslot = "0s"\n[['),
        "less-slot": MET.replace("\n[[", '\nslot = "-20s"\n[['),
        "bare-slot": MET.replace("\n[[", "\nslot = 20\n[["),
        "nan-slot": MET.replace("\n[[", "\nslot_s = nan\n[["),
        "strict": MET.replace("\n[[", '\nstrict = "yes"\n[['),
        "back-hours": SCENARIO.replace("range", 'hours = "-1h"\nrange'),
        "many-hours": SCENARIO.replace("range", 'hours = "99999d"\nrange'),
        "date": SCENARIO.replace('"50m"', "2024-01-01"),
        "input-table": '[mobility.input]\nx = 1\n[[protocols]]\nname = "causal"\n',
        "often": SCENARIO + '[gauges]\nperiod = "1us"\n',
        "watched": SCENARIO + '[gauges]\nperiod = "1m"\nnode = [1]\n',
        "payload": SCENARIO + "[traffic]\npayload = -5\n",
        "overlay": '[scenario]\nworld = "overlay"\n[overlay]\nnodes = [1000000]\n',
        "nan-law": '[scenario]\nworld = "overlay"\n[overlay]\nstarts = ["normal", nan, 5]\n',
        "fat": '[scenario]\nworld = "overlay"\n[overlay]\npayload_bytes = 99999999999\n',
        "drift": '[scenario]\nworld = "drift"\n[drift]\nmessages = 99999999999999\n',
        "cells": '[scenario]\nworld = "cells"\n[cells]\nrates = [nan]\n',
        "five": '[mobility]\nrange = 5\nfoo = 1\n[traffic]\nperiod = "0s"\n[bar]\n',
    }.items():
        (root / f"{name}.toml").write_text(content)
    (root / "binary.toml").write_bytes(random.Random(1).randbytes(300))
    (root / "latin.toml").write_bytes('title = "caf\xe9"\n'.encode("latin-1"))
    (root / "folder.toml").mkdir()


def _make_results(root: Path) -> None:
    root.mkdir()
    plan = {"scenario": "x", "world": "contacts", "stages": {"events": ["data/events/a"]}}
    about = {"name": "x", "world": "contacts"}
    for name, index, scenario in (
        ("unfinished", json.dumps(plan), json.dumps(about)),
        ("not-json", "{", "{"),
        ("list", "[]", "[]"),
        ("deep", "[" * 100_000, "[" * 100_000),
        ("moon", json.dumps(plan | {"world": "moon"}), json.dumps(about | {"world": "moon"})),
        ("number", json.dumps(plan | {"stages": 5}), json.dumps(about | {"parameters": 5})),
        ("nameless", json.dumps({"world": "drift"}), json.dumps({"world": "drift"})),
        ("word", json.dumps(plan | {"world": 7}), json.dumps(about | {"world": 7})),
        ("damaged", json.dumps(plan), json.dumps(about)),
        ("shrunk", json.dumps(plan), json.dumps(about)),
        ("changed", json.dumps(plan), json.dumps(about)),
        ("old", json.dumps(plan), json.dumps(about)),
        ("odd", json.dumps(plan), json.dumps(about)),
        ("no-stages", json.dumps(plan | {"stages": {}}), json.dumps(about)),
        ("no-work", json.dumps(plan | {"stages": {"events": []}}), json.dumps(about)),
    ):
        (root / name).mkdir()
        (root / name / "plan.json").write_text(index)
        (root / name / "scenario.json").write_text(scenario)
        (root / name / "runs.parquet").write_bytes(b"PAR1 and no more")
    _make_finished(root)
    for stage in ("events", "overlay"):  # an earlier run is finished, and the last is not begun
        folder = root / f"only-old-{stage}"
        (folder / "data" / stage / "old").mkdir(parents=True)
        stages = {"stages": {stage: [f"data/{stage}/new"]}}
        (folder / "plan.json").write_text(json.dumps(plan | stages))
        pq.write_table(table_of(SOUND), folder / "data" / stage / "old" / "events.parquet")
    for name in ("plan.json", "scenario.json"):
        (root / "folders" / name).mkdir(parents=True)
        (root / "latin").mkdir(exist_ok=True)
        (root / "latin" / name).write_bytes('{"name": "caf\xe9"}'.encode("latin-1"))
    for name, manifest in {
        "damaged": "{",
        "shrunk": '{"files": {"events.parquet": {"bytes": 9, "digest": "0"}}}',
        "changed": '{"files": {"events.parquet": {"bytes": 4, "digest": "0"}}}',
        "old": '{"files": {"events.parquet": 4}}',
        "odd": '{"files": {"events.parquet": {"bytes": "4", "digest": 5}}}',
    }.items():
        folder = root / name / "data" / "events" / "a"
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text(manifest)
        (folder / "events.parquet").write_bytes(b"PAR1")


def _make_finished(root: Path) -> None:
    """Write a finished run, and copies of it with one fault each."""
    runs = [{**make_run("causal", None, seed), "world": "contacts"} for seed in (1, 2)]
    rows = len(runs)
    sound = pa.Table.from_pylist(runs)
    tables = {
        "whole": sound,
        "no-runs": sound.slice(0, 0),
        "no-bytes": sound.drop_columns(["bytes"]),
        "text-bytes": _with(sound, "bytes", ["x"] * rows),
        "null-deliveries": _with(sound, "deliveries", pa.array([None] * rows, pa.int64())),
        "null-protocol": _with(sound, "protocol", pa.array([None] * rows, pa.string())),
        "nan-delay": _with(sound, "delay_us_avg", [float("nan")] * rows),
        "text-hops": sound,
        "cut-hops": sound,
    }
    for name, table in tables.items():
        (root / name).mkdir()
        pq.write_table(table, root / name / "runs.parquet")
        (root / name / "scenario.json").write_text(json.dumps({"name": name}))
    words = pa.table({"run": [runs[0]["run"]], "hops": ["a"], "receptions": [1]})
    pq.write_table(words, root / "text-hops" / "hops.parquet")
    (root / "cut-hops" / "hops.parquet").write_bytes(b"PAR1")


def _make_streams(root: Path) -> None:
    for name, content in {
        "empty/x.json": "",
        "broken/x.json": '{"process": 0, "past": [1], "time"',
        "words/x.json": "hello\n",
        "thin/x.json": '{"process": 0}\n',
        "texts/x.json": '{"process": "a", "past": [1], "time": 5}\n',
        "lone/x.json": '{"process": 7, "past": [1], "time": 5}\n',
        "uneven/x.json": '{"process": 0, "past": [1], "time": 5}\n'
        '{"process": 0, "past": [1, 2], "time": 6}\n',
        "stamped/x.json": '{"process": 0, "past": [1], "stamp": 5}\n',
        "mixed/x.json": "{}",
        "mixed/y.parquet": "",
        "other/x.csv": "a,b\n",
        "parquet/x.parquet": "hello",
        "nested/x.json": "[" * 100_000,
        "below/x.json": '{"process": 0, "time": 5}\n',
        "below/more/y.json": '{"process": 0, "time": 5}\n',
        "hollow/x.parquet": "",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    (root / "none").mkdir()
