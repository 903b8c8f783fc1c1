"""The events that a diagram draws, in an order that follows causality, and their columns."""

from __future__ import annotations

from dataclasses import dataclass

STEPS_MAX, NODES_MAX = 40, 12
"""A diagram with more events or nodes does not fit on a page of paper."""
NAME_MAX = 40
VIOLATION, PROOF = "violation", "proof"


def brief(words: str, most: int = NAME_MAX) -> str:
    """Return words without their middle if they are long: the end of a message is its number."""
    return words if len(words) <= most else f"{words[: most - 5]}…{words[-4:]}"


@dataclass(frozen=True)
class Step:
    """One event at one node."""

    node: str
    kind: str
    message: str = ""
    note: str = ""
    """The time of the event, or its place in a file."""
    mark: str = ""
    """VIOLATION, PROOF, or empty."""

    @property
    def words(self) -> str:
        return f"{self.kind} {self.message}".strip()


@dataclass(frozen=True)
class Arrow:
    """A message on its way from one step to another: indices into `Story.steps`."""

    cause: int
    effect: int
    is_hop: bool = True
    """Whether the cause is at the peer that sent it. If not, the log does not name that peer, or
    the diagram leaves it out, and the cause is the broadcast."""


@dataclass(frozen=True)
class Story:
    """A diagram: its steps follow causality, but for arrows that point backwards."""

    title: str
    summary: str
    """One sentence: what the diagram is about."""
    nodes: tuple[str, ...]
    steps: tuple[Step, ...]
    arrows: tuple[Arrow, ...]
    waits: tuple[tuple[int, int], ...] = ()
    """The reception and the delivery of each message that waited at a node."""
    notes: tuple[str, ...] = ()
    """The numbers of what is left out, and the facts that the log lacks."""

    def is_backward(self, arrow: Arrow) -> bool:
        """Return whether an effect comes before its cause: a violation in every order."""
        return arrow.cause >= arrow.effect

    def columns(self) -> list[int]:
        """Return a column per step: right of the causes, and right of the node's earlier steps."""
        causes: dict[int, list[int]] = {}
        for arrow in self.arrows:
            if not self.is_backward(arrow):
                causes.setdefault(arrow.effect, []).append(arrow.cause)
        last: dict[str, int] = {}
        columns: list[int] = []
        for at, step in enumerate(self.steps):
            before = [last.get(step.node, -1), *(columns[cause] for cause in causes.get(at, ()))]
            columns.append(max(before) + 1)
            last[step.node] = columns[at]
        return columns
