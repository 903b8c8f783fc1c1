"""The effects of one step of a core, as data that the driver carries out."""

from __future__ import annotations

from typing import Generic, Literal

import msgspec

from beforehand.protocols.contract.base import FrameT, Message, MessageId, NodeId, Timer

LossKind = Literal["expire", "drop", "miss", "skip"]
"""*miss*: a cause that the node gave up, because no peer holds it. *skip*: (node, floor), the stamp
up to which the node then gave up everything that it had not delivered."""
CutReason = Literal["slow", "stalled"]
"""Why a node ends a link: the peer requests more than it takes in, or owes messages and sends
nothing."""


class Outbox(msgspec.Struct, Generic[FrameT]):
    """The effects of one input. The caller owns the outbox and drains it before the next input.

    Drain order: saves, sends, deliveries, timers. State that must survive a crash is saved before
    any effect that depends on it leaves the node. The driver keeps the order within each list. The
    saves of one step are one transaction: all of them, or none.
    """

    saves: list[tuple[str, object, object]] = []
    """(table, key, value); a value of None deletes the row. Empty unless the core is durable."""
    sends: list[tuple[NodeId | None, FrameT]] = []
    """(peer, frame) for one peer, (EVERYBODY, frame) for one transmission in the cell."""
    deliveries: list[Message] = []
    """Messages to deliver to the application, in this order."""
    timers: list[tuple[Timer, int | None]] = []
    """(timer, due_us) replaces the timer of that key; (timer, CANCEL) cancels it."""
    receives: list[Message] = []
    """Messages that the node received for the first time in this step. The driver only reports
    them."""
    losses: list[tuple[LossKind, MessageId]] = []
    """(kind, id) of messages that the node will not deliver, or not without receiving them again.
    The driver only reports them."""

    floors: list[MessageId] = []
    """(node, floor) of a skip. The driver reports it as a loss after the deliveries, because those
    of the same step may lie at or below the floor."""

    cuts: list[tuple[NodeId, CutReason]] = []
    """(peer, reason): end the link to this peer. Only from cores with flow control."""

    def clear(self) -> None:
        self.saves.clear()
        self.sends.clear()
        self.deliveries.clear()
        self.timers.clear()
        self.receives.clear()
        self.losses.clear()
        self.floors.clear()
        self.cuts.clear()
