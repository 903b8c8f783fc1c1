"""Read JSON and remember where each record begins, so that an event can name its line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from beforehand.errors import InputError
from beforehand.logs.source import Source

AT = "\0at"
"""The key under which a record has the offset of its first character."""
CONTAINERS = frozenset(
    (
        *("resourceSpans", "batches", "scopeSpans", "instrumentationLibrarySpans", "spans"),
        *("data", "reports", "trace", "result", "txns", "traces", "links", "nodes", "events"),
        *("records", "rows", "messages"),
    )
)
"""Keys whose records are located, besides those of the document itself."""
BLANK = re.compile(r"[\s,\x1e]*")
DECODER: Any = json.JSONDecoder()
_scan: Callable[[str, int], tuple[Any, int]] = DECODER.scan_once
DEPTH_MAX = 12


def documents(source: Source) -> list[Any]:
    """Return the JSON documents of a file: one, or several behind one another."""
    text = source.text
    found: list[Any] = []
    at = _skip(text, 0)
    try:
        while at < len(text):
            value, at = _value(text, at, 0)
            found.append(value)
            at = _skip(text, at)
    except (StopIteration, ValueError, IndexError) as error:
        line = source.line_at(min(at, len(text)))
        raise InputError(
            f"broken JSON behind line {line:,}",
            where=source.name,
            hint="check whether the file is complete",
        ) from error
    except RecursionError as error:
        raise InputError("JSON that is nested too deep", where=source.name) from error
    return found


def _skip(text: str, at: int) -> int:
    match = BLANK.match(text, at)
    assert match
    return match.end()


def _value(text: str, at: int, depth: int) -> tuple[Any, int]:
    """Parse one value; objects and arrays of containers step by step, all others at once."""
    if depth < DEPTH_MAX and text[at] == "{":
        return _object(text, at, depth)
    if depth < DEPTH_MAX and text[at] == "[":
        return _array(text, at, depth)
    value, end = _scan(text, at)
    return value, end


def _object(text: str, start: int, depth: int) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {AT: start}
    at = _skip(text, start + 1)
    while text[at] != "}":
        key, at = _scan(text, at)
        if not isinstance(key, str):
            raise ValueError("a key is no text")
        at = _skip(text, at)
        if text[at] != ":":
            raise ValueError("no colon behind a key")
        at = _skip(text, at + 1)
        if key in CONTAINERS and text[at] in "{[":
            found[key], at = _value(text, at, depth + 1)
        else:
            found[key], at = _scan(text, at)
        at = _skip(text, at)
    return found, at + 1


def _array(text: str, start: int, depth: int) -> tuple[list[Any], int]:
    found: list[Any] = []
    at = _skip(text, start + 1)
    while text[at] != "]":
        value, at = _value(text, at, depth + 1)
        found.append(value)
        at = _skip(text, at)
    return found, at + 1
