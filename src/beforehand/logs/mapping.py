"""Map the fields of a record to an event: which column is the node, which the message, and so on.

A field is a path such as `host.name` or `pkt.vc`, several joined by `/` (`topic/partition/offset`),
or a constant in quotes (`'server'`). A path that leads to an array gives all its values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from beforehand.errors import InputError, closest
from beforehand.logs.model import KINDS, Event
from beforehand.logs.times import time_of

ROLES = {
    "node": ("node", "host", "process", "pod", "podname", "service", "actor", "member"),
    "kind": ("kind", "event", "type", "action"),
    "message": ("message", "msg", "message_id", "messageid", "msg_id"),
    "id": ("id", "event_id", "eventid", "span_id", "spanid"),
    "parents": ("parents", "parent", "parent_id", "parentid", "parent_span_id", "causes", "deps"),
    "clock": ("clock", "vc", "vector_clock", "vectorclock", "vclock"),
    "position": ("position", "step", "seq_at_node", "index", "lamport"),
    "time": ("time", "timestamp", "t_us", "ts", "starttimeunixnano", "datetime"),
    "run": ("run", "execution", "run_id"),
    "text": ("text", "description", "operationname", "name", "label"),
}
"""The roles of fields, and the names by which a column is recognised, compared in lower case."""
KIND_WORDS = {
    "broadcast": ("broadcast", "publish", "bcast"),
    "deliver": ("deliver", "delivery", "delivered"),
    "send": ("send", "sent", ">", "produce"),
    "receive": ("receive", "received", "recv", "<", "consume"),
}
NONE = ("", "null", "None", "none", "nil", "NULL", "-")


@dataclass(frozen=True)
class Fields:
    """Which field of a record has which role."""

    roles: Mapping[str, str]
    kinds: Mapping[str, str] = field(default_factory=dict)
    """Kinds by the words of the log."""
    none: tuple[str, ...] = NONE
    """Values that mean that there is no parent."""
    time_form: str = ""

    def get(self, record: Mapping[str, Any], role: str) -> Any:
        path = self.roles.get(role)
        return None if path is None else value_at(record, path)

    def event(self, record: Mapping[str, Any], file: str, line: int) -> Event:
        """Return the event of a record. Raise ValueError if a field makes no sense."""
        kind = self.get(record, "kind")
        position = self.get(record, "position")
        return Event(
            node=text_of(self.get(record, "node")),
            kind=self.kind_of(kind) if "kind" in self.roles else "local",
            file=file,
            line=line,
            id=text_of(self.get(record, "id")),
            message=text_of(self.get(record, "message")),
            parents=self._parents(record),
            clock=clock_of(self.get(record, "clock")),
            position=None if position is None else _whole(position),
            time_ns=time_of(self.get(record, "time"), self.time_form),
            text=text_of(self.get(record, "text"))[:200],
        )

    def kind_of(self, value: Any) -> str:
        """Return the kind for a word of the log; an unknown word is returned as it is."""
        word = text_of(value)
        if word in self.kinds:
            return self.kinds[word]
        low = word.casefold()
        return next((kind for kind, words in KIND_WORDS.items() if low in words), low)

    def _parents(self, record: Mapping[str, Any]) -> tuple[str, ...]:
        found: list[str] = []
        for path in filter(None, self.roles.get("parents", "").split(",")):
            *scope, last = path.strip().split("/")
            if (value := value_at(record, last)) is None:
                continue
            values = value if isinstance(value, list | tuple) else _split(value)
            ahead = [text_of(value_at(record, part)) for part in scope]
            found += ["/".join([*ahead, t]) for v in values if (t := text_of(v)) not in self.none]
        return tuple(dict.fromkeys(found))


def _split(value: Any) -> Sequence[Any]:
    text = text_of(value).strip()
    if text[:1] == "[":
        try:
            parsed = json.loads(text)
        except ValueError:
            return text.strip("[]").split()
        return parsed if isinstance(parsed, list) else [parsed]
    return re.split(r"[\s,;|]+", text) if text else ()


def value_at(record: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path; None if there is none."""
    if path[:1] == "'":
        return path.strip("'")
    if path in record:
        return record[path]
    if "/" in path:
        parts = [value_at(record, part) for part in path.split("/")]
        return None if all(p is None for p in parts) else "/".join(map(text_of, parts))
    value: Any = record
    for part in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def text_of(value: Any) -> str:
    """Return a value as an id: a whole float as an integer, and an object as sorted JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, dict | list):
        return json.dumps(value, sort_keys=True, default=str)
    return str(value)


def clock_of(value: Any) -> dict[str, int] | None:
    """Return a vector clock from an object, its JSON text, or numbers with commas."""
    if value is None or value == "":
        return None
    if isinstance(value, str):
        text = value.strip().replace('\\"', '"')
        if text[:1] != "{":
            return {str(i): _whole(part) for i, part in enumerate(text.strip("[]").split(","))}
        value = json.loads(text)
    if isinstance(value, list):
        value = {str(at): entry for at, entry in enumerate(value)}
    if not isinstance(value, Mapping):
        raise ValueError("a clock is an object of counters")
    clock = {str(node): _whole(entry) for node, entry in value.items()}
    if any(entry < 0 for entry in clock.values()):
        raise ValueError("a counter of a clock is below 0")
    return clock


def _whole(value: Any) -> int:
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise ValueError(f"`{value}` is no whole number")
    return int(value)


def detected(columns: Iterable[str]) -> dict[str, str]:
    """Return the role of each column that is recognised by its name."""
    names = {_plain(name): name for name in columns}
    roles = {}
    for role, known in ROLES.items():
        if found := next((names[plain] for one in known if (plain := _plain(one)) in names), None):
            roles[role] = found
    if "origin" in names and "seq" in names and "message" not in roles:
        roles["message"] = f"{names['origin']}/{names['seq']}"
    if trace := names.get("traceid"):
        roles |= {r: f"{trace}/{roles[r]}" for r in ("id", "parents") if r in roles}
    return roles


def _plain(name: str) -> str:
    """Return a name without case, spaces and punctuation: `Message ID` is `message_id`."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def parse_map(words: Sequence[str]) -> Fields:
    """Return the fields of `--map node=host.name message=attributes.id kind=event.name`.

    `kind.send=SENT,OUT` names the words of the log that mean `send`.
    """
    fields = Fields({})
    roles: dict[str, str] = {}
    kinds: dict[str, str] = {}
    for word in words:
        role, equals, path = word.partition("=")
        base, _, kind = role.partition(".")
        if not equals or not path or base not in ROLES or (kind and base != "kind"):
            hint = closest(role, ROLES) or f"roles: {', '.join(ROLES)}; e.g. node=host.name"
            raise InputError(f"not a mapping: `{word}`", where="--map", hint=hint)
        if kind and kind not in KINDS:
            hint = closest(kind, KINDS) or f"kinds: {', '.join(KINDS)}"
            raise InputError(f"no such kind: `{kind}`", where="--map", hint=hint)
        if kind:
            kinds |= dict.fromkeys(path.split(","), kind)
        else:
            roles[role] = path
    return replace(fields, roles=roles, kinds=kinds)


def fields_of(mapping: Mapping[str, str] | Sequence[str] | None) -> Fields | None:
    """Return the fields of a mapping or of words as in `--map`; None if there are none."""
    if not mapping:
        return None
    if isinstance(mapping, Mapping):
        mapping = [f"{role}={path}" for role, path in mapping.items()]
    return parse_map(mapping)
