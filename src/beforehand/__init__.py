"""Causal broadcast for networks that come and go: use it, study it, prove it."""

from beforehand.core.barrier import Barrier
from beforehand.core.base import Core, Counters, Fate, Message, MessageId, NodeId
from beforehand.core.epidemic import Epidemic
from beforehand.core.needs import Needs
from beforehand.core.order import Lifetimes
from beforehand.core.outbox import Outbox
from beforehand.core.unordered import Unordered
from beforehand.core.vector import Vector
from beforehand.errors import BeforehandError, InputError, LocalError, RemoteError

__version__ = "0.1.0"

__all__ = [
    "Barrier",
    "BeforehandError",
    "Core",
    "Counters",
    "Epidemic",
    "Fate",
    "InputError",
    "Lifetimes",
    "LocalError",
    "Message",
    "MessageId",
    "Needs",
    "NodeId",
    "Outbox",
    "RemoteError",
    "Unordered",
    "Vector",
]
