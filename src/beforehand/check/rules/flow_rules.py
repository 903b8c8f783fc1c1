"""The rules of flow control (`protocols.epidemic.flow_control`), checked from outside the core
after every step of a node.

Rule I3, that no announcement is lost, is judged when the net is at rest. Then peers must have
offered all messages that they hold (`check.rules.bounded`). If caches are unbounded, every message
must have arrived.
"""

from __future__ import annotations

from typing import Any

from beforehand.check.net.pacing import LateStore
from beforehand.protocols.contract.base import MessageId
from beforehand.protocols.contract.tables import RowStore
from beforehand.protocols.epidemic.frames import Request
from beforehand.protocols.epidemic.paced_epidemic import PacedEpidemic
from beforehand.protocols.epidemic.sizes import wire_bytes
from beforehand.protocols.orders.order import LONG_AGO


def broken_rule(core: PacedEpidemic, now_us: int) -> str | None:
    """Return the first rule that the state of a node breaks after a step, or None."""
    limits = core._options.flow
    assert limits is not None
    asked = [(id, peer) for peer, link in core._links.items() for id in link.requested]
    if len(asked) != len(core._requested_from) or dict(asked) != core._requested_from:
        return "I2: a message is requested from two peers, or from none"
    largest = max(map(wire_bytes, (m for _, m in core._cache.entries.values())), default=0)
    for peer, link in core._links.items():
        flow = core.flow.flows[peer]
        if flow.unanswered(link) > limits.window:
            return f"I1: {flow.unanswered(link)} messages are requested from {peer}"
        if len(flow.serve) > limits.window:
            return f"I1: {len(flow.serve)} messages wait for {peer}"
        if len(flow.offers) > limits.offers_max or len(flow.pushes) > limits.pushes_max:
            return f"{len(flow.offers)} offers and {len(flow.pushes)} pushes wait for {peer}"
        if flow.room < -(core._options.frame_bytes_max + largest + FRAME_SLACK):
            return f"I4: {-flow.room} bytes more than {peer} takes"
        may_ask = core.flow.is_open and flow.room > 0 and flow.unanswered(link) < limits.window // 2
        waiting = [id for id in flow.offers if _is_lacking(core, id, now_us)] if may_ask else []
        if waiting:
            return f"I7: {waiting} of {peer} are not requested"
    return None


FRAME_SLACK = 256
"""Slack in bytes for the last frame: its header, its ids, and an own message already evicted."""


def breach(core: PacedEpidemic, store: RowStore | None, frame: Any) -> str | None:
    """Return the rule that a node breaks by sending this frame now, or None."""
    if isinstance(frame, Request) and frame.ids and not core.flow.is_open:
        return f"I5: {sorted(frame.ids)} are requested while the program does not read"
    if not isinstance(store, LateStore) or not store.pending:
        return None
    unsaved = {key for table, key, value in store.pending if table == "message" and value}
    if early := unsaved.intersection(frame.stored_ids):
        return f"I6: a {type(frame).__name__} names {sorted(early)} before the disk has them"
    return None


def _is_lacking(core: PacedEpidemic, id: MessageId, now_us: int) -> bool:
    horizon_us = max(now_us, core._horizon_us) if core.order.expires else LONG_AGO
    is_here = id in core._cache.entries or core._evicted.has(id)
    return (
        id[1] > core.order.id_floor(horizon_us) and not is_here and id not in core._requested_from
    )
