"""Doubts about the names of nodes: two spellings of one number, or names that look the same."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

from beforehand.errors import InputError
from beforehand.mobility import lines
from beforehand.mobility.tables import table

WHOLE = re.compile(r"(-?[0-9]+)\.0+")


def refuse_two_spellings(names: Sequence[str], path: Path) -> None:
    """Raise InputError if `1` and `1.0` are both names: a program wrote one node in two ways."""
    known = set(names)
    for name in names:
        match = WHOLE.fullmatch(name)
        if match is not None and match[1] in known:
            problem = f"`{match[1]}` and `{name}` are one number, written as two nodes"
            hint = "write each node in one way (a table with gaps turns whole numbers into `1.0`)"
            raise InputError(problem, where=_place(path, name), hint=hint)


def alike(names: Sequence[str]) -> Iterator[str]:
    """Yield a warning about names that look the same to a person."""
    seen: dict[str, str] = {}
    pairs = []
    for name in names:
        visible = "".join(c for c in name if unicodedata.category(c) != "Cf")
        first = seen.setdefault(unicodedata.normalize("NFKC", visible).strip().casefold(), name)
        pairs += [(first, name)] if first != name else []
    if pairs:
        more = f", and {len(pairs) - 1:,} more such pairs" if len(pairs) > 1 else ""
        yield f"`{pairs[0][0]}` and `{pairs[0][1]}` are two nodes{more}"


def _place(path: Path, name: str) -> str:
    """Return the path with the first line that has the name as a field, if it is a text file."""
    try:
        found = table.parse_table(path, lines.read_text(path))
    except InputError:
        return str(path)
    number = next((number for number, fields in found.rows if name in fields), None)
    return f"{path}:{number}" if number is not None else str(path)
