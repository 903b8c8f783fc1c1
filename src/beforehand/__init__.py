"""Causal broadcast for networks that come and go: use it, study it, prove it."""

from __future__ import annotations

TYPE_CHECKING = False
"""Replaces `typing.TYPE_CHECKING`: importing `typing` takes longer than this whole module."""
if TYPE_CHECKING:
    from typing import Any

    from beforehand.errors import BeforehandError, InputError, LocalError, RemoteError
    from beforehand.observe.stream import observe as observe_events
    from beforehand.pipeline.frames import simulate_runs, verify_runs
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
    from beforehand.protocols.observer.observer import Dial, Observer, Stamped
    from beforehand.protocols.observer.timestamp import Guarantees, StampClock
    from beforehand.protocols.orders.barrier import Barrier
    from beforehand.protocols.orders.order import Lifetimes, Order
    from beforehand.protocols.orders.unordered import Unordered
    from beforehand.protocols.orders.vector import Vector
    from beforehand.protocols.vcube.node import VCube
    from beforehand.runtime.blocking import BlockingGroup
    from beforehand.runtime.group import Group
    from beforehand.runtime.host import Host
    from beforehand.runtime.overlay import Overlay
    from beforehand.runtime.queues.inbox import GroupMessage
    from beforehand.sim.contacts.run import Spec, run_one
    from beforehand.verify.verdict import verify_events

__version__ = "0.1.0"

__all__ = [
    "EVERYBODY",
    "Barrier",
    "BeforehandError",
    "BlockingGroup",
    "Broadcaster",
    "BroadcasterDriver",
    "Codec",
    "Core",
    "Counters",
    "Dial",
    "Driver",
    "Epidemic",
    "Group",
    "GroupMessage",
    "Guarantees",
    "Host",
    "InputError",
    "Lifetimes",
    "Link",
    "Linked",
    "LocalError",
    "Message",
    "MessageId",
    "MessageStatus",
    "Needs",
    "NodeId",
    "Observer",
    "Options",
    "Order",
    "Outbox",
    "Overlay",
    "Port",
    "Proofs",
    "RemoteError",
    "Spec",
    "StampClock",
    "Stamped",
    "Store",
    "Table",
    "Timer",
    "Unordered",
    "VCube",
    "Vector",
    "observe_events",
    "run_one",
    "simulate_runs",
    "verify_events",
    "verify_runs",
]

_PLACES = {
    "EVERYBODY": "protocols.contract.base",
    "Barrier": "protocols.orders.barrier",
    "BeforehandError": "errors",
    "BlockingGroup": "runtime.blocking",
    "Broadcaster": "protocols.contract.base",
    "BroadcasterDriver": "protocols.contract.driver",
    "Codec": "protocols.contract.codec",
    "Core": "protocols.contract.base",
    "Counters": "protocols.contract.base",
    "Dial": "protocols.observer.observer",
    "Driver": "protocols.contract.driver",
    "Epidemic": "protocols.epidemic.epidemic",
    "Group": "runtime.group",
    "GroupMessage": "runtime.queues.inbox",
    "Guarantees": "protocols.observer.timestamp",
    "Host": "runtime.host",
    "InputError": "errors",
    "Lifetimes": "protocols.orders.order",
    "Link": "protocols.contract.needs",
    "Linked": "protocols.contract.base",
    "LocalError": "errors",
    "Message": "protocols.contract.base",
    "MessageId": "protocols.contract.base",
    "MessageStatus": "protocols.contract.base",
    "Needs": "protocols.contract.needs",
    "NodeId": "protocols.contract.base",
    "Observer": "protocols.observer.observer",
    "Options": "protocols.epidemic.options",
    "Order": "protocols.orders.order",
    "Outbox": "protocols.contract.outbox",
    "Overlay": "runtime.overlay",
    "Port": "protocols.contract.driver",
    "Proofs": "protocols.contract.proof",
    "RemoteError": "errors",
    "Spec": "sim.contacts.run",
    "StampClock": "protocols.observer.timestamp",
    "Stamped": "protocols.observer.observer",
    "Store": "protocols.contract.tables",
    "Table": "protocols.contract.tables",
    "Timer": "protocols.contract.base",
    "Unordered": "protocols.orders.unordered",
    "VCube": "protocols.vcube.node",
    "Vector": "protocols.orders.vector",
    "observe_events": "observe.stream:observe",
    "run_one": "sim.contacts.run",
    "simulate_runs": "pipeline.frames",
    "verify_events": "verify.verdict",
    "verify_runs": "pipeline.frames",
}
"""The location of each name: `MODULE`, or `MODULE:NAME` if its name differs in that module.

`__getattr__` imports a module when a name of it is first used. Some modules need optional packages.
A command should also import little before it has installed its signal handler.
"""
_EXTRAS = {
    "runtime": "runtime",
    "sim": "sim",
    "verify": "sim",
    "observe": "pipeline",
    "pipeline": "pipeline",
}
"""The extra that installs the packages of each subpackage; other subpackages need none."""


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module `beforehand` has no attribute `{name}`")
    from importlib import import_module

    module, _, attribute = _PLACES[name].partition(":")
    try:
        found = getattr(import_module(f"beforehand.{module}"), attribute or name)
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get(module.partition(".")[0])
        if extra is None:
            raise
        problem = f"`beforehand.{name}` needs `{error.name}`: pip install 'beforehand[{extra}]'"
        raise ModuleNotFoundError(problem, name=error.name) from error
    globals()[name] = found
    return found
