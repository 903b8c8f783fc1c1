"""The findings of a judge of another system's log: violations and their events, doubts, numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from beforehand.errors import InputError, visible
from beforehand.logs.model import Event, Run

SHOWN_MAX = 5


@dataclass(frozen=True)
class Finding:
    """One violation."""

    kind: str
    summary: str
    chain: Callable[[], Sequence[Event]]
    """Returns the events that prove it, from the cause to the effect."""

    def story(self, run: str) -> str:
        lines = [f"run {visible(run)}: {visible(self.summary)}"]
        return "\n".join([*lines, *(line_of(event) for event in self.chain())])


@dataclass
class Judged:
    """The result of one judge on one run."""

    findings: list[Finding] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    edges: int = 0
    messages: int = 0
    skew: int = 0
    """How many edges have an effect with an earlier physical time than its cause."""

    def add(self, kind: str, summary: str, *events: Event) -> None:
        self.findings.append(Finding(kind, summary, lambda: events))

    def counts(self) -> dict[str, int]:
        return dict(sorted(Counter(finding.kind for finding in self.findings).items()))

    def edge(self, cause: Event, effect: Event) -> None:
        """Count an edge, and its skew."""
        self.edges += 1
        if cause.time_ns is not None and effect.time_ns is not None:
            self.skew += cause.time_ns > effect.time_ns


def line_of(event: Event) -> str:
    """Return one line of a proof: the place in a file, the node and its action."""
    what = f"{event.kind} {event.message}" if event.message else event.kind
    known = [] if event.clock is None else [f"clock {dict(sorted(event.clock.items()))}"]
    known += [f"id {event.id}"] if event.id else []
    known += [event.text[:80]] if event.text else []
    head = f"  {event.where}  node {event.node}  {what}"
    return visible("  ".join([head, *known]))


def name_some(names: Sequence[str], noun: str) -> str:
    """Return a count with the first names: `3 nodes: a, b, c`."""
    shown = ", ".join(f"`{name}`" for name in names[:SHOWN_MAX])
    more = f", {len(names) - SHOWN_MAX:,} more" if len(names) > SHOWN_MAX else ""
    return f"{len(names):,} {noun}: {shown}{more}"


class Order:
    """The order of the events of each node, as far as the log gives it.

    A *sequence* is what is known to be ordered: all events of a node if they have positions, else
    its events in one file, by their lines.
    """

    def __init__(self, run: Run, events: Sequence[Event]) -> None:
        self.doubts: list[str] = []
        self.notes: list[str] = []
        nodes: dict[str, list[Event]] = {}
        for event in events:
            nodes.setdefault(event.node, []).append(event)
        self.sequences: list[list[Event]] = []
        self.nodes = sorted(nodes)
        for node in self.nodes:
            self.sequences += self._sequences(run, node, nodes[node])

    def _sequences(self, run: Run, node: str, events: list[Event]) -> Iterator[list[Event]]:
        if all(event.position is not None for event in events):
            events.sort(key=lambda event: (event.position or 0, event.file, event.line))
            for one, two in pairwise(events):
                if one.position == two.position:
                    raise InputError(
                        f"two events of `{visible(node)}` have the position {one.position}",
                        where=f"{one.where} and {two.where}",
                        hint="are there two runs in one log? give each its `run` or its own file",
                    )
            yield events
            return
        if any(event.position is not None for event in events):
            self.doubts.append(f"some events of `{node}` have no position")
        if not run.is_known:
            self.doubts.append("the order of the events of a node is not in the log")
            yield from ([event] for event in events)
            return
        files: dict[str, list[Event]] = {}
        for event in events:
            files.setdefault(event.file, []).append(event)
        if len(files) > 1:
            self.doubts.append(
                f"the events of `{node}` are in {len(files)} files without positions"
            )
        for file in sorted(files):
            yield sorted(files[file], key=lambda event: event.line)

    def pairs(self) -> Iterator[tuple[Event, Event]]:
        """Yield each event of a sequence with the next one."""
        for sequence in self.sequences:
            yield from pairwise(sequence)

    def gaps(self) -> Iterator[str]:
        """Yield a doubt about positions that are missing."""
        positions = sorted(e.position for s in self.sequences for e in s if e.position is not None)
        if not positions:
            return
        count = len(positions)
        if len(set(positions)) == count:
            missing = positions[-1] + 1 - min(positions[0], 1) - count
        else:
            ends = [[e.position for e in s if e.position is not None] for s in self.sequences]
            missing = sum(p[-1] + 1 - min(p[0], 1) - len(p) for p in ends if p)
        if 0 < missing <= count:
            yield f"{missing:,} positions are missing from the log"
        elif missing:
            self.notes.append("positions are not dense, so missing events cannot be seen")
