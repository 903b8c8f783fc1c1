"""The delivery orders, by their names on the command line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from beforehand.errors import InputError, choose
from beforehand.protocols.contract.base import NodeId
from beforehand.protocols.orders.barrier import Barrier
from beforehand.protocols.orders.order import Lifetimes, Order
from beforehand.protocols.orders.unordered import Unordered
from beforehand.protocols.orders.vector import Vector


@dataclass(frozen=True)
class Protocol:
    """An entry of the table of protocols."""

    summary: str
    takes_lifetime: bool
    is_causal: bool
    make: Callable[..., Order]

    @property
    def promise(self) -> str:
        """Return the promise that `verify` checks, as an event log names it."""
        return "causal" if self.is_causal else "none"


PROTOCOLS: dict[str, Protocol] = {
    "causal": Protocol("causal barriers, no lifetimes (OPP IV)", False, True, Barrier),
    "delta": Protocol("causal barriers with message lifetimes (OPP V)", True, True, Barrier),
    "vector": Protocol("vector clocks, the yardstick", False, True, Vector),
    "none": Protocol("no order: deliver what arrives", True, False, Unordered),
}


def make_order(protocol: str, node: NodeId, lifetimes: Lifetimes | None, **options: Any) -> Order:
    """Return the order of one node. `check_protocol` must have accepted the combination."""
    chosen = PROTOCOLS[protocol]
    if chosen.takes_lifetime:
        return chosen.make(node, lifetimes, **options)
    return chosen.make(node, **options)


def check_protocol(protocol: str, lifetime_us: int | None) -> None:
    """Refuse an unknown protocol, a lifetime that it does not take, or a missing lifetime."""
    if protocol not in PROTOCOLS:
        raise InputError(f"unknown protocol `{protocol}`", hint=choose(protocol, PROTOCOLS))
    if lifetime_us is not None and not PROTOCOLS[protocol].takes_lifetime:
        raise InputError(
            f"`{protocol}` has no message lifetimes",
            hint="leave the lifetime out, or choose `delta` or `none`",
        )
    if lifetime_us is None and protocol == "delta":
        raise InputError("`delta` needs a lifetime", hint="pass `--lifetime 20m`, or use `causal`")
