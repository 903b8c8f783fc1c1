"""The mobility of a scenario: from a generator or from a file."""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_type_hints

from beforehand.errors import InputError
from beforehand.files import refuse_device
from beforehand.mobility.formats.gtfs.blocks import check_blocks
from beforehand.mobility.formats.gtfs.calendar import parse_day
from beforehand.mobility.formats.sumo import check_places
from beforehand.mobility.generators import buses, crowd, walkers, waypoint
from beforehand.mobility.lines import check_presence, span_us
from beforehand.mobility.positions import Positions
from beforehand.mobility.read import READERS, detect, read
from beforehand.mobility.trace import Trace
from beforehand.scenario import values
from beforehand.scenario.bounds import find_out_of_bounds
from beforehand.scenario.document import Document
from beforehand.scenario.quantities import FLAGS, names_of, read_quantities

Make = Callable[..., Positions | Trace]

GENERATORS: dict[str, Make] = {
    "buses": buses.generate,
    "walkers": walkers.generate,
    "waypoint": waypoint.generate,
    "crowd": crowd.generate,
}


CHECKS: dict[str, Callable[[Any], object]] = {
    "presence": check_presence,
    "day": parse_day,
    "blocks": check_blocks,
    "places": check_places,
    **{name: partial(span_us, name) for name in FLAGS.values()},
}
"""Checks of reader options; each raises an error if the value is wrong."""

KEYS = ("generator", "input", "format", "range")
"""The keys of `[mobility]`; all others belong to the generator or to the reader."""


@dataclass(frozen=True)
class Source:
    """Where mobility comes from: either `generator` or `path` is set."""

    generator: str | None
    path: Path | None
    format: str | None
    range_m: float | None
    """The radio range in metres, required if the source gives positions."""
    options: Mapping[str, Any]
    """The options of the generator or the reader."""

    @property
    def has_places(self) -> bool:
        """Return whether the source gives positions, from which contacts must be computed."""
        return get_type_hints(self.make())["return"] is Positions

    def load(self, seed: int) -> Positions | Trace:
        """Generate with `seed`, or read the file, which ignores `seed`."""
        if self.generator is not None:
            return GENERATORS[self.generator](seed, **self.options)
        assert self.path is not None
        return read(self.path, self.format, **self.options)

    def seeds(self, seeds: tuple[int, ...]) -> tuple[int, ...]:
        """Return the seeds that give different mobility: a file needs only one."""
        return seeds if self.generator is not None else seeds[:1]

    def identity(self) -> dict[str, Any]:
        """Return what the content depends on, besides the seed. The location does not count."""
        digest = digest_of_input(self.path) if self.path is not None else None
        return {
            "generator": self.generator,
            "input": digest,
            "format": self.format,
            "options": dict(self.options),
        }

    def problems(self) -> Iterator[tuple[str, InputError]]:
        """Yield (key, error) for every wrong option, without loading anything."""
        make = self.make()
        wrong = list(_wrong_options(make, self.options))
        if self.generator is None and not wrong:
            wrong += _wrong_reader_options(self.options)
        yield from wrong
        if self.generator is not None and not wrong:
            parameters = inspect.signature(make).parameters.values()
            defaults = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
            yield from find_out_of_bounds(self.generator, self.options, defaults)
        if self.has_places and self.range_m is None:
            hint = 'add `range = "200m"`'
            yield "range", InputError("places need a range to make contacts", hint=hint)
        if not self.has_places and self.range_m is not None:
            yield "range", InputError("these are contacts already", hint="leave `range` out")

    def make(self) -> Make:
        """Return the generator or the reader."""
        if self.generator is not None:
            return GENERATORS[self.generator]
        assert self.path is not None
        if not self.path.exists():
            hint = "a path is relative to the folder of the scenario"
            raise InputError(f"no such file or folder: {self.path}", hint=hint)
        columns = self.options.get("columns")
        columns = columns if isinstance(columns, str) else None
        name = detect(self.path, columns) if self.format is None else self.format
        if name not in READERS:
            known = ", ".join(f"`{known}`" for known in READERS)
            raise InputError(f"no such format: `{name}`", hint=f"the formats are {known}")
        return READERS[name]


def read_source(document: Document) -> Source | None:
    """Return the source in `[mobility]`; None if the table is wrong."""
    before = len(document.problems)
    section = document.table("mobility", None)
    chosen = [key for key in ("generator", "input") if key in section]
    if len(chosen) != 1:
        problem = "name the source of the contacts: either `generator` or `input`"
        document.add(InputError(problem), ("mobility",))
        return None
    options = {k: v for k, v in section.items() if k not in KEYS}
    range_m = document.value(section, ("mobility", "range"), values.distance, None)
    if chosen == ["generator"]:
        choices = values.one_of(*GENERATORS)
        generator = document.value(section, ("mobility", "generator"), choices, "")
        source = Source(generator, None, None, range_m, options)
        if "format" in section:
            error = InputError("`format` is for an `input`")
            document.add(error, ("mobility", "format"))
    else:
        written = document.value(section, ("mobility", "input"), path_of(document.path.parent), "")
        format = document.value(section, ("mobility", "format"), values.text, None)
        source = Source(None, written or None, format, range_m, options)
    if len(document.problems) > before:
        return None
    try:
        found, wrong = read_quantities(source.make(), options)
    except InputError as error:
        is_format = source.format is not None and source.format not in READERS
        document.add(error, ("mobility", "format" if is_format else "input"))
        return None
    source = replace(source, options=found)
    written_as = {name: key for key, name in names_of(found).items() if key in options}
    for key, found_wrong in [*wrong, *source.problems()]:
        document.add(found_wrong, ("mobility", key if key in options else written_as.get(key, key)))
    return source


def path_of(folder: Path) -> values.Parse:
    """Return a parser of paths relative to `folder`; it rejects devices, which never end."""

    def parse(value: object) -> Path:
        written = values.text(value)
        if "\0" in written:
            raise InputError("no path: there is a zero byte in it", hint="write the name of a file")
        path = Path(os.path.realpath(folder / written))
        refuse_device(path)
        return path

    return parse


def digest_of_input(path: Path) -> str:
    """Return the SHA-256 of the content of a file or a folder, independent of its location."""
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(path)}\n".encode())
        with file.open("rb") as content:
            digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()


def _wrong_options(make: Make, options: Mapping[str, Any]) -> Iterator[tuple[str, InputError]]:
    parameters = inspect.signature(make).parameters
    hints = get_type_hints(make)
    known = [p.name for p in parameters.values() if p.kind is p.KEYWORD_ONLY]
    for key, value in options.items():
        if key not in known:
            listed = ", ".join(f"`{name}`" for name in known)
            hint = f"its parameters are {listed}" if known else "it has no parameters"
            yield key, InputError(f"no such parameter: `{key}`", hint=hint)
        elif not _fits(value, hints[key]):
            default = parameters[key].default
            hint = f"the default is `{default}`" if default is not None else "write it in quotes"
            yield key, InputError(f"`{key}`: not what it takes: `{value}`", hint=hint)


def _wrong_reader_options(options: Mapping[str, Any]) -> Iterator[tuple[str, InputError]]:
    """Yield the errors that the reader would raise when it is called, perhaps hours later."""
    for key in [key for key in CHECKS if key in options]:
        try:
            CHECKS[key](options[key])
        except (InputError, ValueError) as error:
            shown = error if isinstance(error, InputError) else InputError(str(error))
            yield key, InputError(shown.problem, hint=shown.hint)


def _fits(value: object, kind: Any) -> bool:
    if isinstance(kind, UnionType):  # an optional parameter
        kind = next(part for part in kind.__args__ if part is not NoneType)
    if kind is bool:
        return isinstance(value, bool)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, str)
