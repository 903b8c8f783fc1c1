"""The few events of a run that explain a failure, as lines that a person can follow."""

from __future__ import annotations

from collections.abc import Sequence

from beforehand.check.oracle import Row, Violation
from beforehand.core.base import MessageId, NodeId


def causal_chain(rows: Sequence[Row], cause: MessageId, effect: MessageId) -> list[int]:
    """Row numbers that lead from the broadcast of `cause` to that of `effect`, hop by hop.

    Each hop is a node that broadcast or delivered one message and then broadcast the next.
    """
    spoken = {message: at for at, (_, event, message) in enumerate(rows) if event == "broadcast"}
    reached: dict[MessageId, tuple[MessageId, int] | None] = {cause: None}
    knows: dict[NodeId, tuple[MessageId, int]] = {}  # node -> what links it to the cause, and where
    for at, (node, event, message) in enumerate(rows):
        if event == "broadcast" and node in knows and message not in reached:
            reached[message] = knows[node]
        if message in reached and node not in knows:
            knows[node] = (message, at)
        if event == "broadcast" and message == effect:
            break
    chain: list[int] = []
    link: tuple[MessageId, int] | None = (effect, spoken[effect])
    while link is not None:
        message, at = link
        chain += [at, spoken[message]]
        link = reached.get(message)
    return sorted(set(chain))


def tell_violation(rows: Sequence[Row], violation: Violation) -> str:
    """Why a delivery was wrong: the chain of broadcasts, then the two deliveries."""
    chosen = {violation.row}
    if violation.after is not None:
        chosen.update(causal_chain(rows, violation.message, violation.after))
        chosen.add(_find(rows, violation.node, "deliver", violation.after))
    else:
        chosen.update(at for at, row in enumerate(rows) if row[2] == violation.message)
    return "\n".join([f"{violation}:", *(_line(rows, at) for at in sorted(chosen))])


def tell_loss(rows: Sequence[Row], node: NodeId, message: MessageId) -> str:
    """What became of a message that one node should have delivered."""
    lines = [f"node {node} never delivered {message}:"]
    lines += [_line(rows, at) for at, row in enumerate(rows) if row[2] == message]
    return "\n".join(lines)


def _find(rows: Sequence[Row], node: NodeId, event: str, message: MessageId) -> int:
    return next(at for at, row in enumerate(rows) if row == (node, event, message))


def _line(rows: Sequence[Row], at: int) -> str:
    node, event, message = rows[at]
    return f"  {at:>6}  node {node} {event}s {message[0]}:{message[1]}"
