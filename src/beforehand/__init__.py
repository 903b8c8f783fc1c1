"""Causal broadcast for networks that come and go: use it, study it, prove it."""

from __future__ import annotations

TYPE_CHECKING = False
"""As `typing` has it, which takes longer to import than all of this."""
if TYPE_CHECKING:
    from typing import Any

    from beforehand.core.barrier import Barrier
    from beforehand.core.base import (
        EVERYBODY,
        Core,
        Counters,
        Fate,
        Linked,
        Message,
        MessageId,
        NodeId,
        Speaker,
        Timer,
    )
    from beforehand.core.codec import Codec
    from beforehand.core.driver import Driver, Port, SpeakerDriver
    from beforehand.core.epidemic import Epidemic
    from beforehand.core.needs import Link, Needs
    from beforehand.core.observer import Dial, Observer, Stamped
    from beforehand.core.options import Options
    from beforehand.core.order import Lifetimes, Order
    from beforehand.core.outbox import Outbox
    from beforehand.core.proof import Proofs
    from beforehand.core.tables import Store, Table
    from beforehand.core.timestamp import Guarantees, StampClock
    from beforehand.core.unordered import Unordered
    from beforehand.core.vcube import VCube
    from beforehand.core.vector import Vector
    from beforehand.errors import BeforehandError, InputError, LocalError, RemoteError
    from beforehand.observe.stream import observe as observe_events
    from beforehand.pipeline.frames import simulate_runs, verify_runs
    from beforehand.runtime.blocking import BlockingGroup
    from beforehand.runtime.group import Group
    from beforehand.runtime.host import Host
    from beforehand.runtime.overlay import Overlay
    from beforehand.runtime.reading import GroupMessage
    from beforehand.sim.run import Spec, run_one
    from beforehand.verify.verdict import verify_events

__version__ = "0.1.0"

__all__ = [
    "EVERYBODY",
    "Barrier",
    "BeforehandError",
    "BlockingGroup",
    "Codec",
    "Core",
    "Counters",
    "Dial",
    "Driver",
    "Epidemic",
    "Fate",
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
    "Speaker",
    "SpeakerDriver",
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
    "EVERYBODY": "core.base",
    "Barrier": "core.barrier",
    "BeforehandError": "errors",
    "BlockingGroup": "runtime.blocking",
    "Codec": "core.codec",
    "Core": "core.base",
    "Counters": "core.base",
    "Dial": "core.observer",
    "Driver": "core.driver",
    "Epidemic": "core.epidemic",
    "Fate": "core.base",
    "Group": "runtime.group",
    "GroupMessage": "runtime.reading",
    "Guarantees": "core.timestamp",
    "Host": "runtime.host",
    "InputError": "errors",
    "Lifetimes": "core.order",
    "Link": "core.needs",
    "Linked": "core.base",
    "LocalError": "errors",
    "Message": "core.base",
    "MessageId": "core.base",
    "Needs": "core.needs",
    "NodeId": "core.base",
    "Observer": "core.observer",
    "Options": "core.options",
    "Order": "core.order",
    "Outbox": "core.outbox",
    "Overlay": "runtime.overlay",
    "Port": "core.driver",
    "Proofs": "core.proof",
    "RemoteError": "errors",
    "Speaker": "core.base",
    "SpeakerDriver": "core.driver",
    "Spec": "sim.run",
    "StampClock": "core.timestamp",
    "Stamped": "core.observer",
    "Store": "core.tables",
    "Table": "core.tables",
    "Timer": "core.base",
    "Unordered": "core.unordered",
    "VCube": "core.vcube",
    "Vector": "core.vector",
    "observe_events": "observe.stream:observe",
    "run_one": "sim.run",
    "simulate_runs": "pipeline.frames",
    "verify_events": "verify.verdict",
    "verify_runs": "pipeline.frames",
}
"""Where each is: `MODULE`, or `MODULE:NAME` where it has another name there. Imported when it is
first asked for: some need more than the cores do, and until a command can be stopped without a
traceback it should import as little as it can."""
_EXTRAS = {
    "runtime": "runtime",
    "sim": "sim",
    "verify": "sim",
    "observe": "pipeline",
    "pipeline": "pipeline",
}
"""By room: what brings its packages; the others need the base alone."""


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
