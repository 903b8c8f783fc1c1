"""Protocol cores, their contract, and the drivers that run them.

A core is pure: it has no clock, no socket and no randomness of its own. docs/core.md is the
contract.
"""

from __future__ import annotations

from beforehand.lazy import importer

TYPE_CHECKING = False
"""Replaces `typing.TYPE_CHECKING`, which takes long to import."""
if TYPE_CHECKING:
    from beforehand.protocols.contract.base import (
        EVERYBODY,
        Broadcaster,
        Core,
        Counters,
        Linked,
        Message,
        MessageId,
        MessageStatus,
        NodeId,
        Timer,
    )
    from beforehand.protocols.contract.codec import Codec
    from beforehand.protocols.contract.driver import BroadcasterDriver, Driver, Port
    from beforehand.protocols.contract.needs import Link, Needs
    from beforehand.protocols.contract.outbox import Outbox
    from beforehand.protocols.contract.proof import Proofs
    from beforehand.protocols.contract.tables import Store, Table
    from beforehand.protocols.epidemic.epidemic import Epidemic
    from beforehand.protocols.epidemic.options import Options
    from beforehand.protocols.observer.observer import (
        Dial,
        Observer,
        Stamped,
        cbd,
        dapw,
        dpc1,
        dpc2,
    )
    from beforehand.protocols.observer.timestamp import (
        Guarantees,
        LogicalClock,
        Stamp,
        StampClock,
        StampCodec,
    )
    from beforehand.protocols.orders.barrier import Barrier
    from beforehand.protocols.orders.order import Lifetimes, Order
    from beforehand.protocols.orders.unordered import Unordered
    from beforehand.protocols.orders.vector import Vector
    from beforehand.protocols.vcube.node import VCube

__all__ = [
    "EVERYBODY",
    "Barrier",
    "Broadcaster",
    "BroadcasterDriver",
    "Codec",
    "Core",
    "Counters",
    "Dial",
    "Driver",
    "Epidemic",
    "Guarantees",
    "Lifetimes",
    "Link",
    "Linked",
    "LogicalClock",
    "Message",
    "MessageId",
    "MessageStatus",
    "Needs",
    "NodeId",
    "Observer",
    "Options",
    "Order",
    "Outbox",
    "Port",
    "Proofs",
    "Stamp",
    "StampClock",
    "StampCodec",
    "Stamped",
    "Store",
    "Table",
    "Timer",
    "Unordered",
    "VCube",
    "Vector",
    "cbd",
    "dapw",
    "dpc1",
    "dpc2",
]

_MODULES = {
    "StampCodec": "protocols.observer.timestamp",
    "Stamp": "protocols.observer.timestamp",
    "LogicalClock": "protocols.observer.timestamp",
    "Barrier": "protocols.orders.barrier",
    "Broadcaster": "protocols.contract.base",
    "BroadcasterDriver": "protocols.contract.driver",
    "Codec": "protocols.contract.codec",
    "Core": "protocols.contract.base",
    "Counters": "protocols.contract.base",
    "Dial": "protocols.observer.observer",
    "Driver": "protocols.contract.driver",
    "EVERYBODY": "protocols.contract.base",
    "Epidemic": "protocols.epidemic.epidemic",
    "Guarantees": "protocols.observer.timestamp",
    "Lifetimes": "protocols.orders.order",
    "Link": "protocols.contract.needs",
    "Linked": "protocols.contract.base",
    "Message": "protocols.contract.base",
    "MessageId": "protocols.contract.base",
    "MessageStatus": "protocols.contract.base",
    "Needs": "protocols.contract.needs",
    "NodeId": "protocols.contract.base",
    "Observer": "protocols.observer.observer",
    "Options": "protocols.epidemic.options",
    "Order": "protocols.orders.order",
    "Outbox": "protocols.contract.outbox",
    "Port": "protocols.contract.driver",
    "Proofs": "protocols.contract.proof",
    "StampClock": "protocols.observer.timestamp",
    "Stamped": "protocols.observer.observer",
    "Store": "protocols.contract.tables",
    "Table": "protocols.contract.tables",
    "Timer": "protocols.contract.base",
    "Unordered": "protocols.orders.unordered",
    "VCube": "protocols.vcube.node",
    "Vector": "protocols.orders.vector",
    "cbd": "protocols.observer.observer",
    "dapw": "protocols.observer.observer",
    "dpc1": "protocols.observer.observer",
    "dpc2": "protocols.observer.observer",
}

__getattr__ = importer("beforehand.protocols", globals(), _MODULES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
