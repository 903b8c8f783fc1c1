"""Hostile arguments and files lead to an exact exit code and an error without a traceback."""

from __future__ import annotations

import gzip
import io
from types import SimpleNamespace

import pytest

from beforehand.cli import main
from tests.commands.zoo import CONTACTS, make_zoo

OBSERVE = "--epsilon 5ms --delta 10ms"
TUNE = f"{OBSERVE} --tune --budget 1%"
DAYS = "106751991d"

DAMAGED = {
    "no-runs": "no runs to report",
    "no-bytes": "`runs` has no column bytes",
    "text-bytes": "column `bytes` of `runs` is string, not numbers",
    "null-deliveries": "empty fields in the column `deliveries`",
    "null-protocol": "empty fields in the column `protocol`",
    "nan-delay": "what is no number in the column `delay_us_avg`",
}
"""Finished runs with one thing wrong."""

# Words between spaces; {zoo} is a folder of hostile files, {new} an empty one.
CASES: dict[str, tuple[tuple[str, int, str], ...]] = {
    "": (
        ("", 2, "required: COMMAND"),
        ("verfy x", 2, "did you mean `verify`?"),
        ("VERIFY x", 2, "no such command: `VERIFY`"),
        ("--no-such-flag verify x", 2, "--no-such-flag"),
        ("42", 2, "no such command: `42`"),
        ("doctor --jason", 2, "no such option: `--jason`"),
        ("doctor --jso=1", 2, "ignored explicit argument"),
        ("doctor twice", 2, "unknown argument: `twice`"),
    ),
    "verify": (
        ("", 2, "required: events"),
        ("{zoo}/logs/sound --explan", 2, "did you mean `--explain`?"),
        ("{zoo}/logs/sound --promise fifo", 2, "no such choice for --promise: `fifo`"),
        ("{zoo}/logs/sound --promise", 2, "expected one argument"),
        ("{zoo}/logs/sound {zoo}/logs/late", 2, "logs/late"),
        ("-", 2, "cannot read it"),
        ("{zoo}/none", 2, "no such file or folder"),
        ("{zoo}/dangling", 2, "no such file or folder"),
        ("{zoo}/loop", 2, "loop"),
        ("{zoo}/folder", 2, "no `events.parquet` in the folder"),
        ("{zoo}/to-device", 2, "not a regular file"),
        ("/dev/zero", 2, "not a regular file"),
        ("{zoo}/" + "x" * 300, 2, "File name too long"),
        ("{zoo}/empty", 2, "an empty file"),
        *((f"{{zoo}}/{n}", 2, "no known format of a log") for n in ("binary", "zeros", "contacts")),
        ("{zoo}/zip", 2, "cannot read it"),
        ("{zoo}/logs/truncated", 2, "not a Parquet file, or a broken one"),
        ("{zoo}/logs/no-end", 2, "not a Parquet file, or a broken one"),
        ("{zoo}/logs/mark", 2, "not a Parquet file, or a broken one"),
        ("{zoo}/logs/marks", 2, "not a Parquet file, or a broken one"),
        ("{zoo}/logs/marks-and-length", 2, "not a Parquet file, or a broken one"),
        ("{zoo}/logs/scribbled", 2, "not a Parquet file, or a broken one"),
        ("{zoo}/logs/scribbled-end", 2, "not a Parquet file, or a broken one"),
        *(
            (f"{{zoo}}/logs/{name}", 2, "several Parquet files, one behind the other")
            for name in ("behind-another", "before-another", "behind-another.gz")
        ),
        ("{zoo}/logs/other-speaker", 3, "1 broadcasts are by another node than their origin"),
        ("{zoo}/logs/views", 1, "verdict: invalid"),
        ("{zoo}/logs/below-seq", 1, "verdict: invalid"),
        ("{zoo}/logs/half-parts", 2, "part-1.parquet"),
        ("{zoo}/logs/other-parts", 2, "column `node` is string, not whole numbers"),
        ("{zoo}/logs/mixed-parts", 2, "do not have the same columns"),
        ("{zoo}/logs/sound.gz", 0, "verdict: valid"),
        ("{zoo}/logs/late.gz", 1, "verdict: invalid"),
        *(
            (f"{{zoo}}/logs/{name}", 1, "verdict: invalid")
            for name in (
                *("packed-part", "part-below", "part-in-capitals", "part-without-end"),
                *("beside-a-run", "packed-run"),
            )
        ),
        ("{zoo}/logs/part-by-link", 1, "verdict: invalid"),
        ("{zoo}/logs/part-nowhere", 2, "not a regular file"),
        ("{zoo}/logs/part-pipe", 2, "not a regular file"),
        ("{zoo}/logs/two-promises", 3, "its files have different promises: `causal`, `none`"),
        ("{zoo}/logs/two-counts", 3, "the same number of events: 10, 12"),
        ("{zoo}/logs/half-babble", 3, "the metadata of the file cannot be read"),
        ("{zoo}/logs/half.gz", 2, "cannot read it"),
        ("{zoo}/logs/text.gz", 2, "no known format of a log"),
        ("{zoo}/logs/wrong.gz", 2, "cannot read it"),
        ("{zoo}/logs/sound", 0, "verdict: valid"),
        ("{zoo}/logs/kept", 0, "verdict: valid"),
        ("{zoo}/logs/unsigned", 0, "verdict: valid"),
        ("{zoo}/logs/loose", 0, "no order was promised"),
        ("{zoo}/logs/loose --promise causal", 1, "verdict: invalid"),
        ("{zoo}/logs/late --promise none", 0, "no order"),
        ("{zoo}/logs/late", 1, "verdict: invalid"),
        ("{zoo}/logs/late --json", 1, '"stories_not_shown": 1'),
        ("{zoo}/logs/late --explain", 1, "which causally follows it"),
        ("{zoo}/logs/late-banana", 1, "verdict: invalid"),
        ("{zoo}/logs/twice", 1, "verdict: invalid"),
        ("{zoo}/logs/twice --promise none", 1, "verdict: invalid"),
        ("{zoo}/logs/nowhere", 1, "verdict: invalid"),
        ("{zoo}/logs/two-runs", 1, "verdict: invalid"),
        ("{zoo}/logs/no-rows", 3, "there are no events in the log"),
        ("{zoo}/logs/no-rows --json", 3, '"verdict": "unknown"'),
        ("{zoo}/logs/hole", 3, "1 steps are missing"),
        ("{zoo}/logs/far-apart", 3, "steps are missing"),
        ("{zoo}/logs/silent", 3, "nothing was delivered"),
        ("{zoo}/logs/two-halves", 3, "mute: unknown: nothing was delivered"),
        ("{zoo}/logs/capital", 3, "1 events are of no known kind: `Deliver` 1"),
        ("{zoo}/logs/banana", 3, "`banana` 1"),
        ("{zoo}/logs/no-kind", 3, "of no known kind: `` 1"),
        ("{zoo}/logs/cut", 3, "2 steps are missing"),
        ("{zoo}/logs/grown", 3, "10 events where there were 3"),
        ("{zoo}/logs/fifo", 3, "it promises `fifo`"),
        ("{zoo}/logs/babble", 3, "cannot be read"),
        ("{zoo}/logs/other-about", 3, "cannot be read"),
        ("{zoo}/logs/shrunk", 3, "in its manifest"),
        ("{zoo}/logs/broken-manifest", 3, "not a manifest"),
        *(
            (
                f"{{zoo}}/out/only-old-{name}",
                3,
                f"data/{name}/new: unknown: its event log is missing",
            )
            for name in ("events", "overlay")
        ),
        ("{zoo}/logs/unlisted", 3, "part-0.parquet: not in its manifest"),
        ("{zoo}/logs/said-twice", 2, "1:70 is broadcast twice"),
        ("{zoo}/logs/same-step", 2, "step 2 of run `r` is there twice"),
        ("{zoo}/logs/below-zero", 2, "step -3 of run `r` is below 0"),
        ("{zoo}/logs/beyond", 2, "beyond 64 bits"),
        ("{zoo}/logs/lists", 2, "not text"),
        ("{zoo}/logs/bytes", 2, "not text"),
        ("{zoo}/logs/no-columns", 2, "no column `run`"),
        *(
            (f"{{zoo}}/logs/{how}-{name}", 2, f"column `{name}`")
            for how, names in (
                ("without", "run step t_us node kind origin seq"),
                ("null", "run step t_us node kind origin seq"),
                ("text", "step t_us node origin seq"),
                ("float", "step t_us node origin seq"),
            )
            for name in names.split()
        ),
    ),
    "simulate": (
        ("", 2, "--example"),
        ("{zoo}/contacts --example", 2, "--example"),
        ("{zoo}/none", 2, "no such file or folder"),
        ("{zoo}/loop", 2, "loop"),
        ("{zoo}/folder", 2, "folder"),
        ("/dev/zero", 2, "a device"),
        ("{zoo}/to-device", 2, "a device"),
        *((f"{{zoo}}/{name}", 2, name) for name in ("empty", "binary", "zeros", "latin", "utf16")),
        *((f"{{zoo}}/{name}", 2, name) for name in ("comments", "blank", "zip", "half-zip")),
        *((f"{{zoo}}/{name}", 2, name) for name in ("backwards", "negative", "not-a-time")),
        *((f"{{zoo}}/{name}", 2, name) for name in ("endless", "too-late")),
        ("{zoo}/long-line", 2, "error"),
        ("{zoo}/logs/sound", 2, "sound"),
        ("{zoo}/contacts --protocol casual", 2, "did you mean `causal`?"),
        ("{zoo}/contacts --protocl causal", 2, "did you mean `--protocol`?"),
        ("{zoo}/contacts --protocol delta", 2, "`delta` needs a lifetime"),
        ("{zoo}/contacts --lifetime 5m", 2, "has no message lifetimes"),
        *(
            (f"{{zoo}}/contacts --protocol delta --lifetime {text}", 2, fragment)
            for text, fragment in (
                ("0s", "longer than zero"),
                ("5", "not a duration"),
                ("-5s", "expected one argument"),
                ("5parsecs", "not a duration"),
                ("0.1us", "microseconds"),
                ("1e3s", "not a duration"),
                ("infs", "not a duration"),
                ("9" * 30 + "s", "not a duration"),
                ("999999999999d", "too long"),
                (DAYS, "too large"),
            )
        ),
        *(
            (f"{{zoo}}/contacts --seed {text}", 2, "--seed")
            for text in ("-1", "x", "1.5", "9" * 30)
        ),
        ("{zoo}/contacts --seed " + "9" * 5000, 2, "--seed"),
        ("{zoo}/contacts --period 0s", 2, "longer than zero"),
        ("{zoo}/contacts --period 1us", 2, "a broadcast every 1us makes"),
        (f"{{zoo}}/contacts --first {DAYS}", 2, "too large"),
        (f"{{zoo}}/contacts --latency {DAYS}", 2, "too large"),
        (f"{{zoo}}/contacts --skew {DAYS}", 2, "too large"),
        ("{zoo}/contacts --payload 999999999GB", 2, "too large"),
        ("{zoo}/contacts --payload " + "9" * 5000, 2, "not a size"),
        ("{zoo}/contacts --payload ten", 2, "not a size"),
        ("{zoo}/contacts --bandwidth 0B/s", 2, "nothing would ever arrive"),
        ("{zoo}/contacts --bandwidth fast", 2, "not a bandwidth"),
        ("{zoo}/contacts --loss 0.1", 2, "need a retry time"),
        ("{zoo}/contacts --loss nan --retry 1s", 2, "not a share"),
        ("{zoo}/contacts --loss 1 --retry 1s", 2, "not a share"),
        ("{zoo}/contacts --retry 0s", 2, "longer than zero"),
        ("{zoo}/contacts --retry 1us --loss 1%", 2, "shorter than any answer takes"),
        ("{zoo}/contacts --capacity 0", 2, "from 1 on"),
        ("{zoo}/contacts --capacity [[", 2, "from 1 on"),
        ("{zoo}/contacts --capacity " + "[" * 5000, 2, "from 1 on"),
        ("{zoo}/walk", 2, "--range"),
        ("{zoo}/walk --range 99999999999999999999km", 2, "too far"),
        ("{zoo}/walk --range -5m", 2, "expected one argument"),
        ("{zoo}/contacts --events {zoo}/none/x", 2, "no such folder"),
        ("{zoo}/contacts --events {zoo}/contacts/x", 2, "no such folder"),
        ("{zoo}/contacts --events {zoo}/folder", 2, "a folder, where a file is to be written"),
        ("{zoo}/contacts --events /", 2, "a folder, where a file is to be written"),
        ("{zoo}/contacts --events /dev/full", 2, "not a regular file"),
        ("{zoo}/contacts --events {zoo}/to-device", 2, "not a regular file"),
        ("{zoo}/contacts --events {new}/" + "x" * 250, 2, "File name too long"),
        ("{zoo}/contacts --events /proc/x", 2, "/proc"),
        ("{zoo}/alone", 0, "–"),
        ("{zoo}/uni --json", 0, '"violations"'),
        ("{zoo}/dirty --strict", 2, "dirty:2"),
        ("{zoo}/dirty --strict", 2, "dirty:3"),
        ("{zoo}/contacts --loss 200% --retry 1s", 2, "not a share"),
        ("{zoo}/contacts --payload 1e5", 2, "not a size"),
        ("{zoo}/contacts --capacity 1.5", 2, "from 1 on"),
        ("{zoo}/contacts --slot 0s", 2, "longer than zero"),
        ("{zoo}/contacts --gap 5s", 2, "has no effect for format `contacts`"),
        ("{zoo}/contacts --events - --json", 2, "both would go to stdout"),
        ("{zoo}/contacts --events {zoo}/contacts", 2, "would replace the input"),
        ("--example --strict", 2, "--strict cannot apply"),
        ("- --protocol delta --lifetime 5m", 2, "<stdin>"),
    ),
    "contacts": (
        ("", 2, "required: input"),
        ("{zoo}/none", 2, "no such file or folder"),
        ("/dev/zero", 2, "a device"),
        ("{zoo}/folder", 2, "folder"),
        *((f"{{zoo}}/{name}", 2, name) for name in ("empty", "binary", "zeros", "latin", "zip")),
        *((f"{{zoo}}/{name}", 2, name) for name in ("comments", "blank", "backwards", "too-late")),
        ("{zoo}/uni", 0, "contacts"),
        ("{zoo}/uni --strict", 0, "contacts"),
        *((f"{{zoo}}/{name}.gz", 2, "broken gzip") for name in ("cut", "trailed")),
        ("{zoo}/packed-twice.gz", 2, "not UTF-8 text"),
        ("{zoo}/lasts-less", 2, "a time before zero"),
        ("{zoo}/unclosed", 2, "1 fields under a header of 4"),
        *((f"{{zoo}}/{name}", 2, "format is unknown") for name in ("hexes", "underscores")),
        ("{zoo}/utf16-bare", 2, "format is unknown"),
        ("{zoo}/nan-walk", 2, "more than one format"),
        *(
            (f"{{zoo}}/{name} --range 100m", 2, fragment)
            for name, fragment in {
                "nan-place": "nan-place:2",
                "far-place": "a place more than",
                "far-time": "far-time:3",
                "seen-once": "no node is present at any time",
                "swapped": "latitude and longitude may be swapped",
                "pole": "too wide an area",
                "nan-ns2": "not a finite number",
                "crawl-ns2": "it arrives after",
                "before-ns2": "a time before zero",
                "far-one": "far-one:2",
            }.items()
        ),
        ("{zoo}/dirty --strict", 2, "`merged`"),
        ("-", 2, "<stdin>"),
        ("{zoo}/contacts --out - --json", 2, "both would go to stdout"),
        ("{zoo}/contacts --out -", 0, '"c","d",500,1200,contact'),
        ("{zoo}/contacts --out {zoo}/contacts", 2, "would replace the input"),
        ("{zoo}/contacts --format tarot", 2, "no such format: `tarot`"),
        ("{zoo}/contacts --format gtfs", 2, "contacts"),
        ("{zoo}/walk", 2, "--range 200m"),
        ("{zoo}/walk --range 200", 2, "not a distance"),
        ("{zoo}/walk --range 1e9m", 2, "not a distance"),
        ("{zoo}/walk --range 0m", 2, "longer than zero"),
        ("{zoo}/walk --range 99999999999999999999km", 2, "too far"),
        ("{zoo}/contacts --out {zoo}/none/x", 2, "no such folder"),
        ("{zoo}/contacts --out {zoo}/folder", 2, "a folder, where a file is to be written"),
        ("{zoo}/contacts --out /dev/full", 2, "not a regular file"),
        ("{zoo}/contacts --out {zoo}/to-device", 2, "not a regular file"),
    ),
    "run": (
        ("", 0, "city-bus"),
        ("{zoo}/toml/none.toml", 2, "no such scenario"),
        ("{zoo}/toml/sound.toml --dry-run --master local[0]", 2, "not a Spark master"),
        ("{zoo}/toml/sound.toml --dry-run --master yarnn", 2, "not a Spark master"),
        ("{zoo}/toml/sound.toml --dry-run --remote http://x", 2, "not a Connect server"),
        (
            "{zoo}/toml/sound.toml --dry-run --master yarn --remote sc://x",
            2,
            "both a master and a Connect server",
        ),
        ("{zoo}/toml/sond.toml", 2, "sound.toml`?"),
        ("{zoo}/toml/folder.toml", 2, "no such scenario"),
        ("/dev/zero", 2, "no such scenario"),
        ("{zoo}/binary", 2, "not UTF-8 text"),
        *(
            (f"{{zoo}}/toml/{name}.toml --out {{new}}/o", 2, fragment)
            for name, fragment in {
                "binary": "not UTF-8 text",
                "latin": "not UTF-8 text",
                "empty": "name the source of the contacts",
                "broken": "not TOML",
                "no-value": "not TOML",
                "twice": "not TOML",
                "deep": "not TOML",
                "number": "not TOML",
                "spaces": "not TOML",
                "no-table": "`mobility` is no table",
                "moon": "no such world: `moon`",
                "drft": "did you mean `drift`?",
                "path-world": "no such world",
                "bad-name": "not a plain name",
                "protocol": "casual",
                "key": "did you mean `lifetimes`?",
                "no-protocols": "protocols",
                "no-mobility": "mobility",
                "no-input": "nowhere.txt",
                "null-input": "null-input.toml:2",
                "device": "a device",
                "nan": "not what it takes",
                "generator": "waypoints",
                "no-unit": "a number without a unit",
                "no-range": "longer than zero",
                "far": "too far",
                "seeds": "from 1 on",
                "many-seeds": "too large",
                "no-lifetime": "lifetime",
                "loss": "need a retry time",
                "nan-loss": "not a share",
                "size": "too large",
                "digits": "not a size",
                "long-life": "too long",
                "latency": "not a duration",
                "paper": "did you mean `opp-buses`?",
                "presence": "no such presence: `maybe`",
                "no-slot": "no-slot.toml:3",
                "less-slot": "not a duration: `-20s`",
                "bare-slot": "a number without a unit",
                "nan-slot": "not what it takes",
                "strict": "not what it takes: `yes`",
                "back-hours": "not a duration: `-1h`",
                "many-hours": "out of bounds",
                "date": "a number without a unit",
                "input-table": "not a text",
                "watched": "not a text: `[1]`",
                "often": "a shorter interval than allowed: `1us`",
                "payload": "not a size: `-5`",
                "overlay": "too large: `1000000`",
                "nan-law": "not times from 0",
                "fat": "too large",
                "drift": "too large",
                "cells": "not a number: `nan`",
                "five": "no such table: `bar`",
            }.items()
        ),
        *(
            (f"{{zoo}}/toml/sound.toml --out {{new}}/o {more}", 2, fragment)
            for more, fragment in (
                ("--seeds 0", "--seeds"),
                ("--seeds -1", "--seeds"),
                ("--seeds many", "--seeds"),
                ("--seeds 9000000000", "--seeds"),
                ("--set x", "not a setting: `x`"),
                ("--set sweep.seeds", "not a setting"),
                ("--set sweep.seeds=x", "seeds"),
                ("--set sweep.sedes=1", "did you mean `seeds`?"),
                ("--set nothing.at=all", "no such table: `nothing`"),
                ("--set a.b.c=1", "not a setting"),
                ("--set network.loss=" + "[" * 5000, "not a share"),
                ("--set protocols.name=none", "protocols"),
                ("--dryrun", "did you mean `--dry-run`?"),
            )
        ),
        ("{zoo}/toml/sound.toml --out {zoo}/contacts", 2, "not a folder"),
        ("{zoo}/toml/sound.toml --out {zoo}/contacts/deep", 2, "not a folder"),
        ("{zoo}/toml/sound.toml --out /dev/null", 2, "not a folder"),
        ("{zoo}/toml/sound.toml --out {new}/o --dry-run", 0, "to do"),
        ("{zoo}/toml/sound.toml --out {new}/o --dry-run --json", 0, '"wanted": 1'),
    ),
    "status": (
        ("", 2, "required: directory"),
        ("{zoo}/none", 2, "no `plan.json` here"),
        ("{zoo}/folder", 2, "no `plan.json` here"),
        ("{zoo}/contacts", 2, "plan.json"),
        ("{zoo}/out/folders", 2, "plan.json"),
        *((f"{{zoo}}/out/{name}", 2, "not a plan") for name in ("not-json", "list", "number")),
        *((f"{{zoo}}/out/{name}", 2, "not a plan") for name in ("deep", "nameless", "word")),
        ("{zoo}/out/latin", 2, "not a plan"),
        ("{zoo}/out/moon", 2, "no such world: `moon`"),
        ("{zoo}/out/unfinished", 3, "events"),
        ("{zoo}/out/no-stages", 3, "wanted"),
        ("{zoo}/out/no-work", 3, "events"),
        ("{zoo}/out/damaged", 3, "damaged: data/events/a/manifest.json: not a manifest"),
        ("{zoo}/out/shrunk", 3, "events.parquet: 4 bytes, but 9 in its manifest"),
        ("{zoo}/out/shrunk --json", 3, "4 bytes, but 9 in its manifest"),
        ("{zoo}/out/changed", 3, "of the length in its manifest, but with other bytes"),
        ("{zoo}/out/old", 3, "of an earlier version, without a digest of `events.parquet`"),
        ("{zoo}/out/odd", 3, "not a manifest"),
    ),
    "report": (
        ("", 2, "required: directory"),
        ("{zoo}/none", 2, "no scenario.json here"),
        ("{zoo}/folder", 2, "no scenario.json here"),
        ("{zoo}/contacts", 2, "not a folder"),
        ("{zoo}/out/folders", 2, "scenario.json"),
        ("{zoo}/out/latin", 2, "not UTF-8 text"),
        *((f"{{zoo}}/out/{name}", 2, "not JSON") for name in ("not-json", "deep")),
        *((f"{{zoo}}/out/{name}", 2, "not what `run` writes") for name in ("list", "nameless")),
        *((f"{{zoo}}/out/{name}", 2, "not what `run` writes") for name in ("number", "word")),
        ("{zoo}/out/moon", 2, "no such world: `moon`"),
        ("{zoo}/out/unfinished", 2, "runs.parquet"),
        ("{zoo}/out/unfinished --json", 2, "runs.parquet"),
        *((f"{{zoo}}/out/{name}", 2, fragment) for name, fragment in DAMAGED.items()),
        ("{zoo}/out/text-hops", 2, "column `hops` of `hops` is string, not numbers"),
        ("{zoo}/out/cut-hops", 2, "hops.parquet"),
    ),
    "diff": (
        ("", 2, "required: first, second"),
        ("{zoo}/out/whole", 2, "required: second"),
        ("{zoo}/out/whole {zoo}/out/whole {zoo}/out/whole", 2, "unknown argument"),
        ("{zoo}/out/whole {zoo}/out/whole", 0, "causal"),
        ("{zoo}/out/whole {zoo}/out/whole --json", 0, '"apart": false'),
        ("{zoo}/out/whole {zoo}/none", 2, "no scenario.json here"),
        ("{zoo}/out/whole {zoo}/contacts", 2, "no scenario.json here"),
        ("{zoo}/out/whole {zoo}/out/unfinished", 2, "runs.parquet"),
        ("{zoo}/out/not-json {zoo}/out/whole", 2, "not JSON"),
        ("{zoo}/out/latin {zoo}/out/whole", 2, "not UTF-8 text"),
        ("{zoo}/out/moon {zoo}/out/moon", 2, "no such world: `moon`"),
        ("{zoo}/out/moon {zoo}/out/whole", 2, "two worlds"),
        ("- -", 2, "no scenario.json here"),
        *(
            (
                f"{{zoo}}/out/{name} {{zoo}}/out/whole",
                2,
                "no finished run in this folder" if name == "no-runs" else fragment,
            )
            for name, fragment in DAMAGED.items()
        ),
    ),
    "completion": (
        ("", 2, "required: shell"),
        ("powershell", 2, "no such choice for shell: `powershell`"),
        ("bsh", 2, "did you mean `bash`?"),
        ("bash fish", 2, "unknown argument: `fish`"),
        *((shell, 0, "--dry-run") for shell in ("bash", "zsh")),
        ("fish", 0, "dry-run"),
    ),
    "fuzz": (
        ("--protocol gossip", 2, "unknown protocol `gossip`"),
        ("--protocol casual", 2, "did you mean `causal`?"),
        *((f"--seeds {text}", 2, "--seeds") for text in ("0", "-5", "x", "1.5", "9" * 30)),
        *((f"--workers {text}", 2, "--workers") for text in ("0", "-1", "x", "9999999")),
        *((f"--start {text}", 2, "--start") for text in ("-1", "x", "9" * 30)),
        *((f"--replay {text}", 2, "--replay") for text in ("-1", "x", "1e5", "9" * 30)),
        ("--replay", 2, "expected one argument"),
        ("--replay 5 --protocol nope", 2, "unknown protocol `nope`"),
        *((f"--replay 5 --{more} 3", 2, f"--{more}") for more in ("seeds", "start", "workers")),
        (f"--replay {2**63 - 1} --protocol causal", 0, "passed"),
        ("--replay 3 --protocol vcube --json", 0, '"story"'),
    ),
    "observe": (
        ("", 2, "required"),
        ("{zoo}/stream/thin", 2, "required"),
        (f"{{zoo}}/stream/thin {OBSERVE}", 2, "no folder for the output"),
        (f"{{zoo}}/none {OBSERVE} --out {{new}}/o", 2, "no such file or folder"),
        (f"{{zoo}}/contacts {OBSERVE} --out {{new}}/o", 2, "unknown kind of files"),
        (f"{{zoo}}/stream/below {OBSERVE} --out {{new}}/o", 2, "`more/y.json` would not be read"),
        (f"{{zoo}}/stream/hollow {OBSERVE} --out {{new}}/o", 2, "an empty file is no Parquet"),
        (
            f"{{zoo}}/stream/thin/x.json {OBSERVE} --out {{new}}/o --checkpoint {{new}}/c",
            2,
            "one file does not grow",
        ),
        (f"{{zoo}}/stream/thin {OBSERVE} --out /proc/x", 2, "cannot write it"),
        (f"{{zoo}}/stream/none {OBSERVE} --out {{new}}/o", 2, "no file in it yet"),
        (f"{{zoo}}/stream/mixed {OBSERVE} --out {{new}}/o", 2, "unknown kind of files"),
        (f"{{zoo}}/stream/other {OBSERVE} --out {{new}}/o", 2, "unknown kind of files"),
        (f"{{zoo}}/stream/thin {OBSERVE} --out {{zoo}}/contacts", 2, "not a folder"),
        (f"{{zoo}}/stream/thin {OBSERVE} --out {{zoo}}", 2, "lies in"),
        (f"{{zoo}}/stream/thin {OBSERVE} --out {{new}}/o --checkpoint {{zoo}}/walk", 2, "a folder"),
        *(
            (f"{{zoo}}/stream/thin {OBSERVE} --out {{new}}/o {more}", 2, fragment)
            for more, fragment in (
                ("--order cbt", "did you mean `cbd`?"),
                ("--wait 60", "not a share"),
                ("--wait 101%", "not a share of the wait"),
                ("--wait 0.5%", "not a share of the wait"),
                ("--wait -5%", "expected one argument"),
                ("--elements -1", "--elements"),
                ("--elements 99999999999", "--elements"),
                ("--tick 0s", "longer than zero"),
                ("--clock sun", "no such choice for --clock"),
                ("--clock wall", "no wall clock"),
                ("--once", "are for streams"),
                ("--budget 1%", "a budget is for `--tune`"),
                ("--checkpoint {new}/c --once --idle 5s", "does not wait"),
                ("--checkpoint {new}/c --every 0s", "longer than zero"),
                ("--checkpoint {new}/c --files-per-batch 0", "--files-per-batch"),
                ("--epsilon 5", "not a duration"),
                ("--delta 0s", "longer than zero"),
                ("--delta 367d", "a wait of this length is not useful"),
                ("--epsilon 99999999d", "a wait of this length is not useful"),
            )
        ),
        (f"{{zoo}}/stream/thin {OBSERVE} --tune", 2, "without a budget"),
        (f"{{zoo}}/stream/thin {TUNE} --out {{new}}/o", 2, "writes nothing"),
        (f"{{zoo}}/stream/thin {OBSERVE} --tune --budget 500%", 2, "not a share of the messages"),
        *(
            (f"{{zoo}}/stream/{name} {TUNE}", 2, fragment)
            for name, fragment in {
                "empty": "stream/empty",
                "broken": "the sample cannot be read",
                "words": "the sample cannot be read",
                "nested": "the sample cannot be read",
                "parquet": "the sample cannot be read",
                "thin": "needs the column",
                "texts": "not an integer",
                "lone": "not one integer for each process",
                "uneven": "not one integer for each process",
                "stamped": "not a struct",
            }.items()
        ),
    ),
}
ROWS = [
    (" ".join(filter(None, (command, rest))), code, fragment)
    for command, rows in CASES.items()
    for rest, code, fragment in rows
]


@pytest.fixture(scope="module")
def zoo(tmp_path_factory):
    return make_zoo(tmp_path_factory.mktemp("zoo"))


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    packed = gzip.compress(CONTACTS.encode())[:-9]  # of what comes in, the end is missing
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(packed)))

    def refuse(*_, **__):
        raise AssertionError("Spark is started for what should be refused before")

    monkeypatch.setattr("beforehand.spark.session.open_session", refuse)


@pytest.mark.parametrize(
    ("line", "code", "fragment"), ROWS, ids=[f"{line[:70]} -> {code}" for line, code, _ in ROWS]
)
def test_a_hostile_input_is_answered(zoo, tmp_path, capsys, line, code, fragment):
    before = sorted(zoo.iterdir())
    got = main([word.format(zoo=zoo, new=tmp_path) for word in line.split()])
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err
    assert "internal error" not in shown.err, shown.err
    assert got == code, shown
    assert fragment in shown.out + shown.err
    if code == 2:
        assert shown.out == ""
        assert shown.err.startswith("error: ")
    assert list(tmp_path.iterdir()) == []
    assert sorted(zoo.iterdir()) == before


def test_enough_cases_are_generated():
    assert len(ROWS) >= 400
