"""What nodes with bounded caches promise, although no message needs to reach everybody.

A message may be evicted everywhere before a node has seen it, so nobody can say which messages must
arrive. But a node must be offered what its peers hold. At rest, for every link that is up and both
of its ends: the peer holds no message that is alive on every clock, is neither held nor delivered
at the node, and was not dropped there since this link came up. If there is one, the peer never
offered it, or the node never asked for it, or the answer never came: each of these is a fault.

A message that the node dropped during the contact is excused: the peer has no reason to offer it
again, and messages would go round and round between two full caches.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from beforehand.check.net.case import had, honest
from beforehand.protocols.contract.base import MessageId

if TYPE_CHECKING:
    from beforehand.check.net.net import Net


def never_offered(net: Net, alive: Collection[MessageId]) -> Iterator[str]:
    """For cores that forward from a cache (`holds`). alive: on every clock of the net."""
    cores: list[Any] = [driver.core for driver in net.drivers]
    held = [core.holds(net.local_us(node)) for node, core in enumerate(cores)]
    for pair in sorted(net.contacts):
        for node, peer in (pair, pair[::-1]):
            if node not in honest(net):
                continue
            dropped = {id for at, by, id in net.dropped if (at, by) == (node, peer)}
            has = held[node] | had(net, node) | dropped
            if lacking := held[peer].intersection(alive) - has:
                yield f"node {node} lacks {sorted(lacking, key=str)}, which its peer {peer} holds"
