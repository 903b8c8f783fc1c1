"""The details of a run of an overlay: its packets, and the messages that each one aggregates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from beforehand.events import RECEIVE, SEND
from beforehand.play.messages import MessageIndex
from beforehand.play.pack import Pack
from beforehand.play.run import Events, Ints, PageClock

UNKNOWN = -1


@dataclass(frozen=True)
class PacketTable:
    """The packets of a run, in the order of their sending."""

    kind: ClassVar[str] = "vcube"
    t_us: Ints
    source: Ints
    target: Ints
    """UNKNOWN if the log does not show its arrival."""
    arrived_us: Ints
    """Equal to `t_us` if the log does not show its arrival."""
    count: Ints
    """The number of messages of each packet."""
    origin: Ints
    seq: Ints
    """The messages of the packets, packet by packet."""
    nodes: int = 0

    def encode(self, pack: Pack, clock: PageClock, messages: MessageIndex) -> dict[str, Any]:
        pack.add("packet.t", clock.ms(self.t_us), delta=True)
        pack.add("packet.source", self.source)
        pack.add("packet.target", self.target)
        pack.add("packet.length", clock.lengths(self.t_us, self.arrived_us))
        pack.add("packet.count", self.count)
        pack.add("packet.message", messages.find(self.origin, self.seq))
        return {"nodes": self.nodes}

    def cut(self, begin_us: int, end_us: int, chosen: Ints) -> PacketTable:
        kept = (self.arrived_us >= begin_us) & (self.t_us < end_us) & np.isin(self.source, chosen)
        kept &= np.isin(self.target, chosen) | (self.target == UNKNOWN)
        of_message = np.repeat(kept, self.count)
        names = ("t_us", "source", "target", "arrived_us", "count")
        part = {name: getattr(self, name)[kept] for name in names}
        cut = replace(self, **part, origin=self.origin[of_message], seq=self.seq[of_message])
        late = np.minimum(cut.arrived_us, end_us - 1)
        early = np.maximum(cut.t_us, begin_us)
        return replace(cut, t_us=early, arrived_us=np.maximum(late, early))


def read_packets(events: Events, packet: Ints, nodes: int) -> tuple[Events, PacketTable]:
    """Return the events without those of packets, and the packets.

    packet: the number of the packet of each `send` and `receive` row.
    """
    sent, received = np.flatnonzero(events.kind == SEND), np.flatnonzero(events.kind == RECEIVE)
    numbers, first, of_row = np.unique(packet[sent], return_index=True, return_inverse=True)
    at = np.minimum(np.searchsorted(numbers, packet[received]), len(numbers) - 1)
    is_known = numbers[at] == packet[received]
    target = np.full(len(numbers), UNKNOWN, np.int64)
    target[at[is_known]] = events.node[received[is_known]]
    t_us = events.t_us[sent[first]]
    arrived_us = t_us.copy()
    arrived_us[at[is_known]] = events.t_us[received[is_known]]
    sent_us = np.full(len(events), -1, np.int64)
    sent_us[received[is_known]] = t_us[at[is_known]]
    order = np.lexsort((numbers, t_us))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    rows = sent[np.argsort(place[of_row], kind="stable")]
    packets = PacketTable(
        t_us=t_us[order],
        source=events.node[sent[first]][order],
        target=target[order],
        arrived_us=arrived_us[order],
        count=np.bincount(place[of_row], minlength=len(order)),
        origin=events.origin[rows],
        seq=events.seq[rows],
        nodes=nodes,
    )
    kept = np.flatnonzero(events.kind != SEND)
    return replace(events, sent_us=sent_us).take(kept), packets
