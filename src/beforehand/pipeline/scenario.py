"""A scenario file: what to run, as TOML. `docs/pipeline.md` says what may be in it.

All that is wrong with a file is told at once, with line numbers, before anything runs.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from beforehand.errors import InputError, InputErrors
from beforehand.pipeline import values
from beforehand.pipeline.source import GENERATORS, Source
from beforehand.pipeline.toml_lines import KeyPath, key_lines, line_of
from beforehand.pipeline.values import Parse
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
    if not path.is_file():
        raise InputError("no such scenario", where=str(path), hint="give the path of a TOML file")
    text = path.read_text(encoding="utf-8")
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"not TOML: {error}", where=str(path)) from error
    reader = _Reader(path, document, key_lines(text))
    for override in [*overrides, *([f"sweep.seeds={seeds}"] if seeds is not None else [])]:
        reader.override(override)
    return reader.scenario()


class _Reader:
    """Goes through a document and collects what is wrong with it."""

    def __init__(self, path: Path, document: dict[str, Any], lines: dict[KeyPath, int]) -> None:
        self.path, self.document, self.lines = path, document, lines
        self.overridden: set[KeyPath] = set()
        self.problems: list[InputError] = []

    def override(self, written: str) -> None:
        key, equals, value = written.partition("=")
        path = tuple(part.strip() for part in key.split("."))
        if not equals or len(path) != 2:
            hint = "write `--set section.key=value`, for example `--set network.announce=5s`"
            self.problems.append(InputError(f"not a setting: `{written}`", hint=hint))
            return
        self.overridden.add(path)
        section = self.document.setdefault(path[0], {})
        if isinstance(section, dict):
            section[path[1]] = _toml_value(value.strip())
        else:
            self.add(InputError(f"`{path[0]}` is no table"), path)

    def scenario(self) -> Scenario:
        for section in self.document:
            if section not in KEYS:
                self.add(InputError(f"no such table: `{section}`", hint=_known(KEYS)), (section,))
        head = self.table("scenario")
        name = self.value(head, ("scenario", "name"), values.plain_name, self.path.stem)
        title = self.value(head, ("scenario", "title"), values.text, name)
        paper = self.value(head, ("scenario", "paper"), values.text, None)
        # Other worlds have readers of their own; whoever comes here is in this one.
        self.value(head, ("scenario", "world"), values.one_of("contacts"), None)
        source = self.source()
        shared = self.fields("traffic", TRAFFIC) | self.fields("network", NETWORK)
        watch = self.table("gauges")
        period = ("gauges", "period")
        shared["gauge_us"] = self.value(watch, period, values.positive_duration, None)
        if (shared.get("loss") or shared.get("duplication")) and "retry_us" not in shared:
            hint = 'add `retry = "5s"`, so that what is not answered is repeated'
            error = InputError("links that lose or duplicate need a retry time", hint=hint)
            self.add(error, ("network",))
        specs = self.specs(shared)
        sweep = ("sweep", "seeds")
        seeds = self.value(self.table("sweep"), sweep, values.whole(1), DEFAULT_SEEDS)
        if self.problems or source is None:
            raise self.problems[0] if len(self.problems) == 1 else InputErrors(self.problems)
        every = tuple(range(1, seeds + 1))
        node = watch.get("node")
        return Scenario(name, title, paper, source, specs, every, node, self.document)

    def source(self) -> Source | None:
        """None if something is wrong with it."""
        before = len(self.problems)
        section = self.table("mobility", is_open=True)
        chosen = [key for key in ("generator", "input") if key in section]
        if len(chosen) != 1:
            problem = "say where the contacts come from: `generator` or `input`, one of the two"
            self.add(InputError(problem), ("mobility",))
            return None
        options = {k: v for k, v in section.items() if k not in KEYS["mobility"]}
        range_m = self.value(section, ("mobility", "range"), values.distance, None)
        if chosen == ["generator"]:
            choices = values.one_of(*GENERATORS)
            generator = self.value(section, ("mobility", "generator"), choices, "")
            source = Source(generator, None, None, range_m, options)
            if "format" in section:
                error = InputError("`format` is for an `input`")
                self.add(error, ("mobility", "format"))
        else:
            written = self.value(section, ("mobility", "input"), values.text, "")
            format = self.value(section, ("mobility", "format"), values.text, None)
            source = Source(None, (self.path.parent / written).resolve(), format, range_m, options)
        if len(self.problems) > before:
            return None
        for key, error in source.problems():
            self.add(error, ("mobility", key))
        return source

    def specs(self, shared: dict[str, Any]) -> tuple[Spec, ...]:
        entries = self.document.get("protocols")
        if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
            hint = 'write `[[protocols]]` and below it `name = "causal"`'
            self.add(InputError("no protocols to run", hint=hint), ("protocols",))
            return ()
        specs: list[Spec] = []
        for index, entry in enumerate(entries):
            at = ("protocols", index)
            self.unknown(entry, at, KEYS["protocols"])
            name = self.value(entry, (*at, "name"), values.one_of(*PROTOCOLS), None)
            if name is None:
                if "name" not in entry:
                    self.add(InputError("a protocol without a `name`"), at)
                continue
            literal = {
                key: self.value(entry, (*at, key), values.switch, False)
                for key in ("literal_deadlines", "literal_barriers")
            }
            if any(literal.values()) and name not in WITH_BARRIERS:
                self.add(InputError(f"`{name}` has no barriers to take literally"), at)
            for lifetime_us in self.lifetimes(entry, at, name):
                spec = Spec(name, lifetime_us=lifetime_us, **shared, **literal)
                if spec in specs:
                    self.add(InputError("the same protocol and lifetime a second time"), at)
                specs.append(spec)
        return tuple(specs)

    def lifetimes(self, entry: dict[str, Any], at: KeyPath, name: str) -> Sequence[int | None]:
        hint = 'write `lifetimes = ["20m", "10m"]`'
        path = (*at, "lifetimes")
        listed = entry.get("lifetimes", [])
        if "lifetimes" in entry and not PROTOCOLS[name].takes_lifetime:
            self.add(InputError(f"`{name}` has no message lifetimes", hint="use `delta`"), path)
        elif not isinstance(listed, list) or ("lifetimes" in entry and not listed):
            self.add(InputError(f"not a list of lifetimes: `{listed}`", hint=hint), path)
        elif not listed and name == "delta":
            self.add(InputError("`delta` needs lifetimes", hint=hint), at)
        elif not listed:
            return (None,)
        else:
            found = [self.parsed(item, path, values.positive_duration) for item in listed]
            return [us for us in found if us is not None]
        return ()

    def fields(self, section: str, keys: Mapping[str, tuple[str, Parse]]) -> dict[str, Any]:
        table = self.table(section)
        found = {}
        for key in [key for key in keys if key in table]:
            before = len(self.problems)
            field, parse = keys[key]
            value = self.parsed(table[key], (section, key), parse)
            if len(self.problems) == before:
                found[field] = value
        return found

    def table(self, name: str, *, is_open: bool = False) -> dict[str, Any]:
        """is_open: other keys may be there, which somebody else checks."""
        section = self.document.get(name, {})
        if not isinstance(section, dict):
            self.add(InputError(f"`{name}` is no table", hint=f"write `[{name}]`"), (name,))
            return {}
        if not is_open:
            self.unknown(section, (name,), KEYS[name])
        return section

    def unknown(self, table: dict[str, Any], at: KeyPath, known: Sequence[str]) -> None:
        for key in table:
            if key not in known:
                error = InputError(f"no such key: `{key}`", hint=_known(known))
                self.add(error, (*at, key))

    def value(self, table: dict[str, Any], path: KeyPath, parse: Parse, default: object) -> Any:
        key = path[-1]
        return self.parsed(table[key], path, parse) if key in table else default

    def parsed(self, value: object, path: KeyPath, parse: Parse) -> Any:
        """None where it is wrong."""
        try:
            return parse(value)
        except InputError as error:
            self.add(InputError(f"`{path[-1]}`: {error.problem}", hint=error.hint), path)
            return None

    def add(self, error: InputError, path: KeyPath) -> None:
        if path in self.overridden:
            where = f"--set {'.'.join(map(str, path))}"
        else:
            line = line_of(self.lines, path)
            where = f"{self.path}:{line}" if line else str(self.path)
        self.problems.append(InputError(error.problem, where=where, hint=error.hint))


def _toml_value(written: str) -> object:
    """As in the file; what is no TOML is a text, so that `5s` needs no quotes."""
    try:
        return tomllib.loads(f"value = {written}")["value"]
    except tomllib.TOMLDecodeError:
        return written


def _known(names: Mapping[str, object] | Sequence[str]) -> str:
    return "known are " + ", ".join(f"`{name}`" for name in names)
