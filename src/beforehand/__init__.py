"""Causal broadcast for networks that come and go: use it, study it, prove it."""

from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
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

_LATER = {
    "BlockingGroup": ("beforehand.runtime.blocking", "BlockingGroup"),
    "Group": ("beforehand.runtime.group", "Group"),
    "GroupMessage": ("beforehand.runtime.reading", "GroupMessage"),
    "Host": ("beforehand.runtime.host", "Host"),
    "Overlay": ("beforehand.runtime.overlay", "Overlay"),
    "Spec": ("beforehand.sim.run", "Spec"),
    "run_one": ("beforehand.sim.run", "run_one"),
    "observe_events": ("beforehand.observe.stream", "observe"),
    "simulate_runs": ("beforehand.pipeline.frames", "simulate_runs"),
    "verify_events": ("beforehand.verify.verdict", "verify_events"),
    "verify_runs": ("beforehand.pipeline.frames", "verify_runs"),
}
"""What needs more than the cores do: imported when it is first asked for."""
_EXTRAS = {"runtime": "runtime", "sim": "sim", "verify": "sim"}
"""By room: what brings its packages; `pipeline` for the others."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module `beforehand` has no attribute `{name}`")
    from importlib import import_module

    module, attribute = _LATER[name]
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get(module.split(".")[1], "pipeline")
        problem = f"`beforehand.{name}` needs `{error.name}`: pip install 'beforehand[{extra}]'"
        raise ModuleNotFoundError(problem, name=error.name) from error
