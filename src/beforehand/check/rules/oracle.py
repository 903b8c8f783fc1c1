"""The oracle: the definition of causal order, written down as plainly as possible.

If broadcast(m1) happened before broadcast(m2), no node delivers m1 after m2. A node may never
deliver m1, but it must not deliver it late. No node delivers a message twice, or a message that no
node broadcast. This file knows no protocol. It sees rows (node, event, message) in the order of the
run. It is the only definition that the checkers use.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from beforehand.protocols.contract.base import MessageId, NodeId

Row = tuple[NodeId, str, MessageId]
"""(node, "broadcast", "deliver" or "learn", message). Learning of a message is not judged, but it
puts the message into the causal past of the node's later broadcasts."""


@dataclass(frozen=True)
class Violation:
    """A delivery that violates the definition."""

    kind: str
    """The kind: late, twice or unknown."""
    node: NodeId
    message: MessageId
    row: int
    """The position of the delivery among the rows."""
    after: MessageId | None = None
    """If late: a message that the node delivered earlier, although it causally follows this one."""

    def __str__(self) -> str:
        what = f"node {self.node} delivered {self.message}"
        if self.kind == "late":
            return f"{what} after {self.after}, which causally follows it (row {self.row})"
        reason = "a second time" if self.kind == "twice" else "which no node ever broadcast"
        return f"{what} {reason} (row {self.row})"


class Oracle:
    """Judges a run row by row. It keeps every causal past as a plain set, so a row costs time
    linear in the size of the past."""

    def __init__(self) -> None:
        self.pasts: dict[MessageId, frozenset[MessageId]] = {}
        """Message -> all broadcasts that happened before its own."""
        self.delivered: defaultdict[NodeId, list[MessageId]] = defaultdict(list)
        self.violations: list[Violation] = []
        self._known: defaultdict[NodeId, set[MessageId]] = defaultdict(set)
        """Node -> all broadcasts that happened before its next one."""
        self._overtaken: defaultdict[NodeId, set[MessageId]] = defaultdict(set)
        """Node -> the union of the pasts of its delivered messages. Delivering one of these is
        late."""
        self._rows = 0

    def see(self, node: NodeId, event: str, message: MessageId) -> None:
        if event == "broadcast":
            self.pasts[message] = frozenset(self._known[node])
            self._known[node].add(message)
        elif event == "deliver":
            self._judge(node, message)
            self.delivered[node].append(message)
            self._overtaken[node] |= self.pasts.get(message, frozenset())
        if event in ("deliver", "learn"):
            self._known[node] |= {message} | self.pasts.get(message, frozenset())
        self._rows += 1

    def _judge(self, node: NodeId, message: MessageId) -> None:
        before = self.delivered[node]
        if message not in self.pasts:
            self.violations.append(Violation("unknown", node, message, self._rows))
        elif message in before:
            self.violations.append(Violation("twice", node, message, self._rows))
        elif message in self._overtaken[node]:
            after = next(m for m in before if message in self.pasts.get(m, ()))
            self.violations.append(Violation("late", node, message, self._rows, after))


def judge(rows: Iterable[Row]) -> list[Violation]:
    """Return all violations in a whole run."""
    oracle = Oracle()
    for node, event, message in rows:
        oracle.see(node, event, message)
    return oracle.violations


def rows_of(columns: Mapping[str, Any], kinds: tuple[str, ...]) -> list[Row]:
    """Return the rows of an event log that is stored in columns.

    kinds: the name of each code in the `kind` column."""
    nodes, codes = columns["node"].tolist(), columns["kind"].tolist()
    ids = zip(columns["origin"].tolist(), columns["seq"].tolist(), strict=True)
    return [
        (node, kinds[code], id)
        for node, code, id in zip(nodes, codes, ids, strict=True)
        if kinds[code] in ("broadcast", "deliver")
    ]
