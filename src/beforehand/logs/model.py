"""The one model of every log: events at nodes, and the source from which causality is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Causality = Literal["clocks", "parents", "messages", "none"]
"""The source of causality: vector clocks, ids of direct causes, messages that events name, or no
source (only times or a request id, which group events and never order them)."""

BROADCAST, DELIVER, SEND, RECEIVE, LOCAL = "broadcast", "deliver", "send", "receive", "local"
KINDS = (BROADCAST, DELIVER, SEND, RECEIVE, LOCAL)


@dataclass(slots=True)
class Event:
    """One event at one node, and the line that reports it."""

    node: str
    kind: str
    file: str
    line: int
    id: str = ""
    message: str = ""
    """The id of the message that is sent, received, broadcast or delivered; empty if none is."""
    parents: tuple[str, ...] = ()
    """The ids of the direct causes."""
    clock: Mapping[str, int] | None = None
    position: int | None = None
    """The position among the events of the node; None if the log gives none."""
    time_ns: int | None = None
    """Physical time. It is shown and compared with causality; it never orders events."""
    text: str = ""

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass
class Read:
    """The observations of one read of one session: the ids of messages, with repetitions."""

    event: Event
    shown: tuple[str, ...]


@dataclass
class Run:
    """One execution of a system."""

    name: str
    causality: Causality
    events: list[Event] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    is_sequential: bool = True
    """Whether the events of one node form a sequence. Spans of one service do not."""
    is_known: bool = True
    """Whether the order of the events of one node is known if they have no positions: the order of
    lines within one file."""
    is_total: bool = False
    """Whether the positions order all events of the run, and not only those of each node."""
    doubts: list[str] = field(default_factory=list)
    """Reasons why the verdict cannot be `valid`."""
    notes: list[str] = field(default_factory=list)
    """Facts about the log that do not change the verdict."""


@dataclass
class Reading:
    """The meaning found in one or several files of one format."""

    format: str
    why: str
    """The mark in the content by which the format was recognised, or the option that named it."""
    runs: list[Run]
    files: list[str] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    """How many lines or records were skipped, by reason."""
    assumed: list[str] = field(default_factory=list)
    """Assumptions of the reader, made because the log does not say."""
