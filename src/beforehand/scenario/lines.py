"""Find the line of each key in a TOML file, which the standard library's parser does not report."""

from __future__ import annotations

import re

KeyPath = tuple[str | int, ...]

LINE_COLUMNS_MAX = 400
"""Only this many characters of a line are searched: a key stands at its start."""
HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?")
KEY = re.compile(r"\s*([A-Za-z0-9_.\-\"' ]+?)\s*=")


def key_lines(text: str) -> dict[KeyPath, int]:
    """Return line numbers from 1 by path: `("network", "latency")`, `("protocols", 0, "name")`.

    Tables have an entry too. Inline tables and multi-line strings are not parsed; a key inside one
    has the line of its container.
    """
    lines: dict[KeyPath, int] = {}
    sizes: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for number, whole in enumerate(text.splitlines(), 1):
        line = whole.strip()[:LINE_COLUMNS_MAX]
        if header := HEADER.fullmatch(line):
            table = _path(header[2])
            if header[1] == "[[":
                sizes[table] = sizes.get(table, 0) + 1
                lines.setdefault(table, number)
                table = (*table, sizes[table] - 1)
            lines.setdefault(table, number)
        elif key := KEY.match(line):
            lines.setdefault((*table, *_path(key[1])), number)
    return lines


def line_of(lines: dict[KeyPath, int], path: KeyPath) -> int | None:
    """Return the line of the key, or of the nearest enclosing table that has one."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path)


def _path(dotted: str) -> KeyPath:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))
