"""Read `[traffic]` of a scenario: when each node broadcasts how many bytes."""

from __future__ import annotations

from typing import Any

from beforehand.errors import InputError
from beforehand.mobility.formats.message_events import read_message_events
from beforehand.scenario import values
from beforehand.scenario.document import Document
from beforehand.scenario.settings import TRAFFIC, Setting, read_settings
from beforehand.scenario.source import path_of
from beforehand.sim.contacts.traffic import Event

LAWS = ("periodic", "poisson", "uniform", "file")
FOR_FILE = ("input", "law")
"""The keys that go with traffic from a file; the file says the rest."""


def read_traffic(document: Document) -> dict[str, Any]:
    """Return the settings of `[traffic]` by field of `Spec`, and report keys that exclude each
    other."""
    path = path_of(document.path.parent)

    def events(value: object) -> tuple[Event, ...]:
        found: Any = path(value)
        rows = read_message_events(found).rows
        return tuple(Event(row.t_us, row.source, row.size_bytes) for row in rows)

    more = {
        "law": Setting("traffic.law", values.one_of(*LAWS)),
        "phase": Setting("traffic.phase", values.switch),
        "payload_law": Setting(
            "traffic.payload_law", values.one_of("fixed", "uniform", "exponential")
        ),
        "sources": Setting("traffic.sources", _sources),
        "input": Setting("traffic.events", events),
    }
    found = read_settings(document, "traffic", TRAFFIC | more)
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


def _sources(value: object) -> tuple[str, ...] | float:
    """Parse names of nodes, or the share of the nodes that broadcast."""
    if isinstance(value, list):
        names: Any = values.list_of(values.text)(value)
        return tuple(names)
    share: Any = 1.0 if value in (1, "100%") else values.share(value)
    if not share:
        raise InputError("no node would broadcast", hint="write names or a share: `0.2`, `20%`")
    return float(share)
