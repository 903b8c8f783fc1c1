"""Count sent frames and bytes, by network and purpose."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from beforehand.protocols.mobile.sizes import Size, size_of

KINDS = ("application", "repetition", "ack", "handoff", "delete")
"""The purpose of a frame. *handoff*: everything that makes, moves or ends a registration, and the
messages with which a host catches up."""
APPLICATION, REPETITION, ACK, HANDOFF, DELETE = range(len(KINDS))
NETWORKS = ("radio", "wire")
RADIO, WIRE = range(len(NETWORKS))
COUNTED = ("frames", "control_bytes", "payload_bytes")
OUTCOMES = ("received", "collided", "deaf")
"""The outcome of a frame at an intended receiver."""

_TAGS = {
    **dict.fromkeys(("say", "cast", "relay", "segment"), APPLICATION),
    **dict.fromkeys(("host_ack", "station_ack", "ack", "bundle"), ACK),
    "delete": DELETE,
}
"""The purpose by a frame's tag without the name of its system. All others are handoffs."""


def _kind_of(frame: type[Any]) -> int:
    tag = str(frame.__struct_config__.tag)
    return _TAGS.get(tag.removeprefix("ck_").removeprefix("tcp_"), HANDOFF)


class Tally:
    """Counts frames, control bytes and payload bytes. Headers are not included."""

    def __init__(self, nodes: int) -> None:
        self._kinds: dict[type[Any], int] = {}
        self._counts = [[[0, 0, 0] for _ in KINDS] for _ in NETWORKS]
        self._sent_before: list[set[Any]] = [
            set() for _ in range(nodes)
        ]  # by node: message and target

    def count(self, network: int, node: int, target: int | None, frame: Any) -> tuple[int, Size]:
        """Count a frame, and return its purpose and its size."""
        kind = self._kinds.get(type(frame))
        if kind is None:
            kind = self._kinds[type(frame)] = _kind_of(type(frame))
        if kind == APPLICATION:
            kind = self._look_up(node, target, frame)
        elif kind == ACK and not getattr(frame, "receipts", True):
            kind = DELETE  # a bundle of both is named after the acknowledgements
        size = size_of(frame)
        counts = self._counts[network][kind]
        counts[0] += 1
        counts[1] += size.control_bytes
        counts[2] += size.payload_bytes
        return kind, size

    def _look_up(self, node: int, target: int | None, frame: Any) -> int:
        """Return the purpose of a frame with messages.

        A frame is a repetition if the node sent all its messages to this target before. A frame
        that may have several messages and has none is an acknowledgement."""
        several = getattr(frame, "messages", None)
        messages = (frame.message,) if several is None else several
        if not messages:
            return ACK
        sent, before = self._sent_before[node], len(self._sent_before[node])
        sent.update((message.id, target) for message in messages)
        return APPLICATION if len(sent) > before else REPETITION

    def read(self) -> NDArray[np.int64]:
        """Return the counts so far, by (network, kind, quantity)."""
        return np.array(self._counts, np.int64)
