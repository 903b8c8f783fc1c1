"""The promise of nodes with bounded caches, although a message need not reach every node.

All nodes may evict a message before some node has seen it. So it is undecided which messages must
arrive. But peers must offer a node the messages that they hold. At rest, the following holds for
every link that is up, and for both of its ends. The peer holds no message that is alive on every
clock, that the node neither holds nor delivered, and that the node did not drop since this link
came up. If there is such a message, the peer never offered it, or the node never requested it, or
the answer never came. Each of these is a fault.

A message that the node dropped during the contact is excused. The peer has no reason to offer it
again, and otherwise messages would circulate between two full caches for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any

from beforehand.check.net.case import had, honest
from beforehand.protocols.contract.base import MessageId

if TYPE_CHECKING:
    from beforehand.check.net.net import Net


def never_offered(
    net: Net,
    alive: Collection[MessageId],
    is_skipped: Callable[[int, MessageId], bool] = lambda *_: False,
) -> Iterator[str]:
    """Yield the messages that a peer holds, the node lacks, and the node need not lack.

    This is for cores that forward from a cache (`holds`). alive: the messages whose deadline no
    clock of the net has reached. is_skipped: whether the node has given up the message for good."""
    cores: list[Any] = [driver.core for driver in net.drivers]
    held = [core.holds(net.local_us(node)) for node, core in enumerate(cores)]
    for pair in sorted(net.contacts):
        for node, peer in (pair, pair[::-1]):
            if node not in honest(net):
                continue
            dropped = {id for at, by, id in net.dropped if (at, by) == (node, peer)}
            has = held[node] | had(net, node) | dropped
            lacking = held[peer].intersection(alive) - has
            if lacking := {id for id in lacking if not is_skipped(node, id)}:
                yield f"node {node} lacks {sorted(lacking, key=str)}, which its peer {peer} holds"
