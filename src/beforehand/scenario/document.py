"""A scenario file while it is read: its tables, the `--set` overrides, and all its problems.

All problems are collected before any is raised. A file with five mistakes yields five errors with
line numbers and hints, before anything runs.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from beforehand.errors import InputError, InputErrors, closest
from beforehand.files import read_text
from beforehand.scenario.lines import KeyPath, key_lines, line_of
from beforehand.scenario.shipped import shipped
from beforehand.scenario.values import Parse

Table = dict[str, Any]


class Document:
    """`content` is the file with the overrides of `--set`; `problems` collects its errors."""

    def __init__(
        self, path: Path, *, seeds: int | None = None, overrides: Sequence[str] = ()
    ) -> None:
        """Parse the file and apply the overrides.

        seeds: replaces the number of seeds in the file.
        overrides: each is `section.key=value`.
        """
        if not path.is_file():
            raise InputError("no such scenario", where=str(path), hint=_likely(path))
        text = read_text(path, hint="give the path of a TOML file")
        try:
            self.content: Table = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
            hint = "give the path of a TOML file; `beforehand scenarios` lists examples"
            raise InputError(f"not TOML: {error}", where=str(path), hint=hint) from error
        self.path = path
        self.problems: list[InputError] = []
        self.moved: dict[KeyPath, KeyPath] = {}
        """Where keys are written that are not in their own table: swept keys."""
        self._lines = key_lines(text)
        self._overridden: set[KeyPath] = set()
        for written in [*overrides, *([f"sweep.seeds={seeds}"] if seeds is not None else [])]:
            self._override(written)

    def check_tables(self, known: Mapping[str, object]) -> None:
        for name in self.content:
            if name not in known:
                self.add(InputError(f"no such table: `{name}`", hint=_known(name, known)), (name,))

    def table(self, name: str, keys: Iterable[str] | None) -> Table:
        """Return a table of the file; empty if it is missing or not a table.

        keys: the allowed keys; None if the caller checks them.
        """
        section = self.content.get(name, {})
        if not isinstance(section, dict):
            self.add(InputError(f"`{name}` is no table", hint=f"write `[{name}]`"), (name,))
            return {}
        if keys is not None:
            self.check_keys(section, (name,), keys)
        return section

    def check_keys(self, table: Table, at: KeyPath, keys: Iterable[str]) -> None:
        known = tuple(keys)
        for key in table:
            if key not in known:
                error = InputError(f"no such key: `{key}`", hint=_known(key, known))
                self.add(error, (*at, key))

    def value(self, table: Table, path: KeyPath, parse: Parse, default: object) -> Any:
        key = path[-1]
        return self.parsed(table[key], path, parse) if key in table else default

    def parsed(self, value: object, path: KeyPath, parse: Parse) -> Any:
        """Return the parsed value; None if it is wrong."""
        try:
            return parse(value)
        except InputError as error:
            self.add(InputError(f"`{path[-1]}`: {error.problem}", hint=error.hint), path)
            return None

    def add(self, error: InputError, path: KeyPath) -> None:
        """Add a problem with the location of the key."""
        path = self.moved.get(path, path)
        if path in self._overridden:
            where = f"--set {'.'.join(map(str, path))}"
        else:
            line = line_of(self._lines, path)
            where = f"{self.path}:{line}" if line else str(self.path)
        self.problems.append(InputError(error.problem, where=where, hint=error.hint))

    def check(self) -> None:
        """Raise all problems found; do nothing if there are none."""
        # A value that is parsed for several options would be reported more than once.
        distinct = list({(p.problem, p.where): p for p in self.problems}.values())
        if distinct:
            raise distinct[0] if len(distinct) == 1 else InputErrors(distinct)

    def _override(self, written: str) -> None:
        key, equals, value = written.partition("=")
        path = tuple(part.strip() for part in key.split("."))
        if path[0] == "sweep" and len(path) == 3:  # a swept key: `sweep.network.capacity=[50, 100]`
            path = ("sweep", f"{path[1]}.{path[2]}")
        if not equals or len(path) != 2:
            hint = "write `--set section.key=value`, for example `--set sweep.seeds=5`"
            self.problems.append(InputError(f"not a setting: `{written}`", hint=hint))
            return
        self._overridden.add(path)
        section = self.content.setdefault(path[0], {})
        if isinstance(section, dict):
            section[path[1]] = toml_value(value.strip())
        else:
            self.add(InputError(f"`{path[0]}` is no table"), path)


def toml_value(written: str) -> object:
    """Return a value parsed as TOML, or the text itself if it is not TOML: `5s` needs no quotes."""
    try:
        return tomllib.loads(f"value = {written}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError, ValueError):
        return written


def _known(word: str, names: Iterable[str]) -> str:
    known = list(names)
    listed = ", ".join(f"`{name}`" for name in known)
    return f"{closest(word, known)} known are {listed}".strip()


def _likely(path: Path) -> str:
    """Return a hint with a scenario of a similar name, of the package or in the same folder."""
    names = {one.path.name: one.name for one in shipped()}
    names |= {n: str(file) for file in path.parent.glob("*.toml") for n in (file.name, file.stem)}
    near = difflib.get_close_matches(path.name, names, n=1)
    return f"did you mean `{names[near[0]]}`?" if near else "give the path of a TOML file"
