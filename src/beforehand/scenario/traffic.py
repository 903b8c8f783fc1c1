"""Read `[traffic]` of a scenario: when each node broadcasts how many bytes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from beforehand.errors import InputError
from beforehand.mobility.formats.message_events import read_message_events
from beforehand.scenario.document import Document
from beforehand.scenario.settings import TRAFFIC, Setting, flag_of, read_settings
from beforehand.scenario.source import path_of
from beforehand.sim.contacts.traffic import Event

FOR_FILE = ("input", "law")
"""The keys that go with traffic from a file; the file says the rest."""


def read_events(path: Path) -> tuple[Event, ...]:
    """Return the broadcasts of a file of messages."""
    rows = read_message_events(path).rows
    return tuple(Event(row.t_us, row.source, row.size_bytes) for row in rows)


def check_flags(found: Mapping[str, Any], has_file: bool) -> None:
    """Refuse flags of traffic that exclude each other. found: values by field."""
    law = found.get("traffic.law", "file" if has_file else "periodic")
    if law == "file" and not has_file:
        hint = "pass `--messages FILE`"
        raise InputError("traffic from no file", where="--law", hint=hint)
    if has_file:
        given = [name for name, s in TRAFFIC.items() if found.get(s.field, "file") != "file"]
        if given:
            where = f"--{flag_of(given[0])}"
            hint = "the file says when and what: leave one of them out"
            raise InputError("this does not go with `--messages`", where=where, hint=hint)
    if law != "periodic" and "traffic.phase" in found:
        hint = "leave it out: only periodic traffic has a phase"
        raise InputError(f"`{law}` traffic has no phase", where="--phase", hint=hint)


def read_traffic(document: Document) -> dict[str, Any]:
    """Return the settings of `[traffic]` by field of `Spec`, and report keys that exclude each
    other."""
    path = path_of(document.path.parent)

    def events(value: object) -> tuple[Event, ...]:
        found: Any = path(value)
        return read_events(found)

    own = {"input": Setting("traffic.events", events)}
    found = read_settings(document, "traffic", TRAFFIC | own)
    written = document.table("traffic", None)
    law = found.setdefault("traffic.law", "file" if "input" in written else "periodic")
    if law == "file" and "input" not in written:
        hint = 'add `input = "messages.txt"`'
        document.add(InputError("traffic from no file", hint=hint), ("traffic", "law"))
    for key in written if law == "file" else ():
        if key not in FOR_FILE:
            error = InputError(
                f"`{key}` does not go with a file", hint="the file says when and what"
            )
            document.add(error, ("traffic", key))
    if law != "file" and "input" in written:
        hint = 'write `law = "file"`, or leave `input` out'
        document.add(InputError(f"`{law}` traffic has no file", hint=hint), ("traffic", "input"))
    if law != "periodic" and "phase" in written:
        hint = "leave it out: only periodic traffic has a phase"
        document.add(InputError(f"`{law}` traffic has no phase", hint=hint), ("traffic", "phase"))
    if law == "periodic" and "phase" not in written:
        mobility = document.table("mobility", None)
        # On a generator each seed draws a new day. On a file the phases are what the seeds draw.
        found["traffic.phase"] = "input" in mobility
    return found
