"""Read EDN, the data format of Clojure: enough for histories, with the line of each map."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from beforehand.errors import InputError
from beforehand.logs.source import Source

AT = "\0at"
TOKEN = re.compile(
    r'[\s,]+|;[^\n]*|(?P<text>"(?:[^"\\]|\\.)*")|(?P<open>#\{|[{\[(])|(?P<close>[}\])])'
    r"|(?P<drop>#_)|(?P<tag>#[A-Za-z][\w.\-/]*)|(?P<char>\\\w+|\\.)|(?P<atom>[^\s,;\"{}\[\]()]+)",
    re.DOTALL,
)
WORDS = {"nil": None, "true": True, "false": False}
CLOSES = {"{": "}", "[": "]", "(": ")", "#{": "}"}
DEPTH_MAX = 200


def values(source: Source) -> Iterator[Any]:
    """Yield the values of a file. A map is a dict with its offset under `AT`; keywords are text
    with their colon."""
    stack: list[tuple[str, int, list[Any]]] = []
    dropped: list[int] = []
    text, at = source.text, 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise _broken(source, at)
        begin, at = at, match.end()
        kind = match.lastgroup
        if kind in (None, "tag"):
            continue
        if kind == "drop":
            dropped.append(len(stack))
            continue
        if kind == "open":
            stack.append((match["open"], begin, []))
            if len(stack) > DEPTH_MAX:
                raise _broken(source, begin)
            continue
        if kind == "close":
            if not stack or CLOSES[stack[-1][0]] != match["close"]:
                raise _broken(source, begin)
            value = _collection(*stack.pop())
        else:
            value = _atom(match[0], kind or "")
        if dropped and dropped[-1] == len(stack):
            dropped.pop()
        elif stack:
            stack[-1][2].append(value)
        else:
            yield value
    if stack:
        raise _broken(source, stack[-1][1])


def _broken(source: Source, at: int) -> InputError:
    where = f"{source.name}:{source.line_at(at)}"
    return InputError("broken EDN", where=where, hint="check whether the file is complete")


def _collection(opened: str, at: int, items: list[Any]) -> Any:
    if opened != "{":
        return items
    pairs = zip(items[::2], items[1::2], strict=False)
    return {AT: at, **{key if isinstance(key, str) else repr(key): value for key, value in pairs}}


def _atom(text: str, kind: str) -> Any:
    if kind == "text":
        return text[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    if text in WORDS:
        return WORDS[text]
    try:
        return int(text.rstrip("NM"))
    except ValueError:
        return text
