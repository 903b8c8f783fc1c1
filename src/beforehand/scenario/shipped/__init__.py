"""The scenarios that ship with the package: a user names one, or gives a file of their own."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import NamedTuple

from beforehand.errors import InputError, choose

FOLDER = Path(__file__).parent


class Shipped(NamedTuple):
    """One scenario of the package."""

    name: str
    title: str
    path: Path


def shipped() -> list[Shipped]:
    """Return all scenarios of the package, sorted by name."""
    found = []
    for path in sorted(FOLDER.glob("*.toml")):
        title = tomllib.loads(path.read_text())["scenario"]["title"]
        found.append(Shipped(path.stem, title, path))
    return found


def find_scenario(named: str | os.PathLike[str]) -> Path:
    """Return the file of a scenario: the file of that path, or the scenario of that name.

    A path with a suffix is returned whether there is a file or not: the reader tells what is wrong.
    Raise InputError if there is no scenario of that name.
    """
    path = Path(named)
    if path.suffix or path.exists():
        return path
    by_name = {one.name: one.path for one in shipped()}
    name = os.fspath(named)
    if name in by_name:
        return by_name[name]
    hint = f"{choose(name, by_name)}, or give a TOML file"
    raise InputError("there is no such scenario or file", where=name, hint=hint)
