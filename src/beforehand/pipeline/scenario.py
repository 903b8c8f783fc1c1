"""A scenario file: what to run, as TOML. `docs/pipeline.md` says what may be in it.

All that is wrong with a file is told at once, with line numbers, before anything runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from beforehand.errors import InputError
from beforehand.scenario import values
from beforehand.scenario.document import Document, Table
from beforehand.scenario.lines import KeyPath
from beforehand.scenario.source import GENERATORS, Source
from beforehand.scenario.values import Parse
from beforehand.sim.protocols import PROTOCOLS
from beforehand.sim.run import Spec

# key -> the field of `Spec` that it sets, and how it is written
TRAFFIC: dict[str, tuple[str, Parse]] = {
    "first": ("first_us", values.duration),
    "period": ("period_us", values.positive_duration),
    "payload": ("payload_bytes", values.size),
}
NETWORK: dict[str, tuple[str, Parse]] = {
    "latency": ("latency_us", values.duration),
    "bandwidth": ("bytes_per_s", values.rate),
    "loss": ("loss", values.share),
    "duplication": ("duplication", values.share),
    "jitter": ("jitter_us", values.duration),
    "skew": ("skew_us", values.duration),
    "announce": ("announce_us", values.duration),
    "retry": ("retry_us", values.positive_duration),
    "capacity": ("capacity", values.whole(1)),
    "eviction": ("eviction", values.one_of("oldest", "random")),
    "transfer": ("transfer", values.one_of("random", "oldest", "newest")),
    "frame": ("frame_bytes_max", values.size),
    "frame_messages": ("frame_messages_max", values.whole(1)),
}
KEYS: dict[str, tuple[str, ...]] = {
    "scenario": ("name", "title", "paper", "world"),
    "mobility": ("generator", "input", "format", "range"),
    "traffic": tuple(TRAFFIC),
    "network": tuple(NETWORK),
    "protocols": ("name", "lifetimes", "literal_deadlines", "literal_barriers"),
    "sweep": ("seeds",),
    "gauges": ("node", "period"),
}
WITH_BARRIERS = ("causal", "delta")
DEFAULT_SEEDS = 1


@dataclass(frozen=True)
class Scenario:
    """A scenario without a mistake."""

    name: str
    title: str
    paper: str | None
    """The key of the published figures to compare with."""
    source: Source
    specs: tuple[Spec, ...]
    """One per protocol and lifetime; their seed is yet to be set."""
    seeds: tuple[int, ...]
    gauge_node: str | int | None
    """The node whose registries are watched, by name or index; None: who is there longest."""
    document: Mapping[str, Any]
    """All that was written, `--set` included."""


def read_scenario(
    path: Path, *, seeds: int | None = None, overrides: Sequence[str] = ()
) -> Scenario:
    """The scenario of a file. seeds: instead of its own. overrides: `section.key=value`."""
    document = Document(path, seeds=seeds, overrides=overrides)
    document.check_tables(KEYS)
    head = document.table("scenario", KEYS["scenario"])
    name = document.value(head, ("scenario", "name"), values.plain_name, document.path.stem)
    title = document.value(head, ("scenario", "title"), values.text, name)
    paper = document.value(head, ("scenario", "paper"), values.text, None)
    # Other worlds have readers of their own; whoever comes here is in this one.
    document.value(head, ("scenario", "world"), values.one_of("contacts"), None)
    source = _source(document)
    shared = _fields(document, "traffic", TRAFFIC) | _fields(document, "network", NETWORK)
    watch = document.table("gauges", KEYS["gauges"])
    period = ("gauges", "period")
    shared["gauge_us"] = document.value(watch, period, values.positive_duration, None)
    if (shared.get("loss") or shared.get("duplication")) and "retry_us" not in shared:
        hint = 'add `retry = "5s"`, so that what is not answered is repeated'
        error = InputError("links that lose or duplicate need a retry time", hint=hint)
        document.add(error, ("network",))
    specs = _specs(document, shared)
    sweep = document.table("sweep", KEYS["sweep"])
    count = document.value(sweep, ("sweep", "seeds"), values.whole(1), DEFAULT_SEEDS)
    document.check()
    assert source is not None, "or something is wrong with it"
    every = tuple(range(1, count + 1))
    node = watch.get("node")
    return Scenario(name, title, paper, source, specs, every, node, document.content)


def _source(document: Document) -> Source | None:
    """None if something is wrong with it."""
    before = len(document.problems)
    section = document.table("mobility", None)
    chosen = [key for key in ("generator", "input") if key in section]
    if len(chosen) != 1:
        problem = "say where the contacts come from: `generator` or `input`, one of the two"
        document.add(InputError(problem), ("mobility",))
        return None
    options = {k: v for k, v in section.items() if k not in KEYS["mobility"]}
    range_m = document.value(section, ("mobility", "range"), values.distance, None)
    if chosen == ["generator"]:
        choices = values.one_of(*GENERATORS)
        generator = document.value(section, ("mobility", "generator"), choices, "")
        source = Source(generator, None, None, range_m, options)
        if "format" in section:
            error = InputError("`format` is for an `input`")
            document.add(error, ("mobility", "format"))
    else:
        written = document.value(section, ("mobility", "input"), values.text, "")
        format = document.value(section, ("mobility", "format"), values.text, None)
        source = Source(None, (document.path.parent / written).resolve(), format, range_m, options)
    if len(document.problems) > before:
        return None
    for key, error in source.problems():
        document.add(error, ("mobility", key))
    return source


def _specs(document: Document, shared: dict[str, Any]) -> tuple[Spec, ...]:
    entries = document.content.get("protocols")
    if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
        hint = 'write `[[protocols]]` and below it `name = "causal"`'
        document.add(InputError("no protocols to run", hint=hint), ("protocols",))
        return ()
    specs: list[Spec] = []
    for index, entry in enumerate(entries):
        at = ("protocols", index)
        document.check_keys(entry, at, KEYS["protocols"])
        name = document.value(entry, (*at, "name"), values.one_of(*PROTOCOLS), None)
        if name is None:
            if "name" not in entry:
                document.add(InputError("a protocol without a `name`"), at)
            continue
        literal = {
            key: document.value(entry, (*at, key), values.switch, False)
            for key in ("literal_deadlines", "literal_barriers")
        }
        if any(literal.values()) and name not in WITH_BARRIERS:
            document.add(InputError(f"`{name}` has no barriers to take literally"), at)
        for lifetime_us in _lifetimes(document, entry, at, name):
            spec = Spec(name, lifetime_us=lifetime_us, **shared, **literal)
            if spec in specs:
                document.add(InputError("the same protocol and lifetime a second time"), at)
            specs.append(spec)
    return tuple(specs)


def _lifetimes(document: Document, entry: Table, at: KeyPath, name: str) -> Sequence[int | None]:
    hint = 'write `lifetimes = ["20m", "10m"]`'
    path = (*at, "lifetimes")
    listed = entry.get("lifetimes", [])
    if "lifetimes" in entry and not PROTOCOLS[name].takes_lifetime:
        document.add(InputError(f"`{name}` has no message lifetimes", hint="use `delta`"), path)
    elif not isinstance(listed, list) or ("lifetimes" in entry and not listed):
        document.add(InputError(f"not a list of lifetimes: `{listed}`", hint=hint), path)
    elif not listed and name == "delta":
        document.add(InputError("`delta` needs lifetimes", hint=hint), at)
    elif not listed:
        return (None,)
    else:
        found = [document.parsed(item, path, values.positive_duration) for item in listed]
        return [us for us in found if us is not None]
    return ()


def _fields(
    document: Document, section: str, keys: Mapping[str, tuple[str, Parse]]
) -> dict[str, Any]:
    table = document.table(section, keys)
    found = {}
    for key in [key for key in keys if key in table]:
        before = len(document.problems)
        field, parse = keys[key]
        value = document.parsed(table[key], (section, key), parse)
        if len(document.problems) == before:
            found[field] = value
    return found
