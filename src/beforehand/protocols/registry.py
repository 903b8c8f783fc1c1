"""The protocols by name, each with its facts. Commands, checkers and reports read them here.

A protocol whose clock has a chosen size has the size in its name: `plausible-32` has 32 entries. So
runs of different sizes are never taken for runs of one protocol.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from beforehand.errors import InputError, choose
from beforehand.promises import PROMISES, Promise
from beforehand.protocols.contract.base import NodeId
from beforehand.protocols.orders.barrier import Barrier
from beforehand.protocols.orders.order import Lifetimes, Order
from beforehand.protocols.orders.plausible import Plausible
from beforehand.protocols.orders.stamped import Stamped
from beforehand.protocols.orders.unordered import Unordered
from beforehand.protocols.orders.vector import Vector

World = Literal["contacts", "cells", "overlay", "drift", "sockets"]
SIZED = re.compile(r"([a-z-]+)-([1-9][0-9]*)")
SIZE_MAX = 65_535


@dataclass(frozen=True)
class Protocol:
    """The facts about one protocol. Its needs are those that its core states."""

    summary: str
    paper: str
    """The paper that defines it, with the section."""
    world: World
    """The world that simulates it. `sockets`: no world does, but its family checks it."""
    written: str = "causal"
    """Its promise, as an event log names it: a key of `PROMISES`."""
    label: str = ""
    """Its name in tables, if that is not its name on the command line."""
    former: tuple[str, ...] = ()
    """Names that it had in earlier versions."""
    make: Callable[..., Order] | None = None
    """For contacts: makes the order of one node."""
    lifetimes: Literal["no", "may", "must"] = "no"
    options: tuple[str, ...] = ()
    """The options that `make` takes besides the node and the lifetimes."""
    size: int | None = None
    """The size of its clock if the name has none; None if the clock has no chosen size."""
    size_checked: int | None = None
    """The size in the small nets of the checkers, where a larger clock would be exact."""

    @property
    def promise(self) -> Promise:
        return PROMISES[self.written]

    @property
    def takes_lifetime(self) -> bool:
        return self.lifetimes != "no"

    @property
    def is_of_the_paper(self) -> bool:
        """Return whether OPP has measured it, so that its figures can be compared."""
        return self.paper.startswith("OPP")


LITERAL = ("literal_deadlines", "literal_barriers")
"""Follow the paper to the letter, where this implementation deviates from it."""

PROTOCOLS: dict[str, Protocol] = {
    "causal": Protocol(
        *("causal barriers, no lifetimes", "OPP section IV", "contacts"),
        make=Barrier,
        options=LITERAL,
    ),
    "delta": Protocol(
        *("causal barriers with message lifetimes", "OPP section V", "contacts"),
        make=Barrier,
        lifetimes="must",
        options=LITERAL,
    ),
    "stamped": Protocol(
        "causal barriers with stamps, free lifetimes and a floor",
        *("this project, DESIGN.md", "contacts"),
        make=Stamped,
        lifetimes="must",
    ),
    "vector": Protocol(
        *("vector clocks, the yardstick", "Birman, Schiper, Stephenson 1991", "contacts"),
        make=Vector,
    ),
    "plausible": Protocol(
        "clocks of a chosen size (`plausible-32`), order with probability",
        *("Torres-Rojas, Ahamad 1999", "contacts"),
        written="probable",
        make=Plausible,
        size=8,
        size_checked=2,
    ),
    "none": Protocol(
        *("no order: deliver what arrives", "the baseline", "contacts"),
        written="none",
        label="no order",
        make=Unordered,
        lifetimes="may",
    ),
    "was": Protocol(
        "wireless stations, hosts that move", "MOB section 4", "cells", former=("mobile",)
    ),
    "was-flood": Protocol("WAS whose handoffs flood the tree", "MOB-TR section IV", "cells"),
    "ck": Protocol("vector clocks and a central discard", "MOB section 6", "cells"),
    "tcp-flooding": Protocol("flooding over TCP connections", "MOB-TR section V.A", "cells"),
    "vcube": Protocol("causal broadcast over spanning trees", "VCU section 4", "overlay"),
    "observer": Protocol(
        "small timestamps; causal after the full wait", "OBS sections 3 and 4", "drift"
    ),
    "group": Protocol("Δ-causal members with proofs and flow control", "OPP section V", "sockets"),
}
"""Each protocol by its name on the command line. A world makes its own cores, except for orders:
`protocols.mobile.systems` makes those of cells, `runtime` those of a group."""

ORDERS = {name: entry for name, entry in PROTOCOLS.items() if entry.world == "contacts"}
"""The protocols that run over contacts."""
FORMER = {former: name for name, entry in PROTOCOLS.items() for former in entry.former}
"""The present name of each former one, besides those with underscores instead of hyphens."""


class FormerName(UserWarning):
    """A protocol was named as in an earlier version."""


def present_name(written: str) -> str:
    """Return the present name of a protocol, and warn if the written one is a former one.

    written: an unknown name is returned as it is.
    """
    hyphened = written.replace("_", "-")
    name = FORMER.get(hyphened, hyphened)
    if name == written or find_protocol(name) is None:
        return written
    warnings.warn(f"`{written}` is called `{name}` now", FormerName, stacklevel=2)
    return name


def find_protocol(name: str) -> Protocol | None:
    """Return the facts of a protocol by its name, with or without a size; None if unknown."""
    if name in PROTOCOLS:
        return PROTOCOLS[name]
    sized = SIZED.fullmatch(name)
    found = PROTOCOLS.get(sized[1]) if sized else None
    if sized is None or found is None or found.size is None or int(sized[2]) > SIZE_MAX:
        return None
    return replace(found, size=int(sized[2]))


def written_promise(name: str) -> str:
    """Return what a known protocol promises, as an event log names it."""
    found = find_protocol(name.replace("_", "-"))
    assert found is not None, f"can't happen: the protocol `{name}` is in no registry"
    return found.written


def find_order(name: str) -> Protocol:
    """Return the facts of a protocol for contacts; raise InputError for an unknown name."""
    found = find_protocol(name)
    if found is not None and found.make is None:
        problem = f"`{name}` does not run over contacts, but in the world `{found.world}`"
        raise InputError(problem, hint=choose(name, ORDERS))
    if found is None or found.make is None:
        raise InputError(f"unknown protocol `{name}`", hint=choose(name, ORDERS))
    return found


def make_order(protocol: str, node: NodeId, lifetimes: Lifetimes | None, **options: Any) -> Order:
    """Return the order of one node. `check_protocol` must have accepted the combination.

    options: those that the protocol does not take are left out.
    """
    chosen = find_order(protocol)
    assert chosen.make is not None
    make = chosen.make if chosen.size is None else partial(chosen.make, entries=chosen.size)
    taken = {name: value for name, value in options.items() if name in chosen.options}
    return make(node, lifetimes, **taken) if chosen.takes_lifetime else make(node, **taken)


def check_protocol(protocol: str, lifetime_us: int | None) -> None:
    """Refuse an unknown protocol, a lifetime that it does not take, or a missing lifetime."""
    chosen = find_order(protocol)
    if lifetime_us is not None and not chosen.takes_lifetime:
        able = " or ".join(f"`{name}`" for name, entry in ORDERS.items() if entry.takes_lifetime)
        raise InputError(
            f"`{protocol}` has no message lifetimes",
            hint=f"leave the lifetime out, or choose {able}",
        )
    if lifetime_us is None and chosen.lifetimes == "must":
        hint = "pass `--lifetime 20m`, or use `causal`"
        raise InputError(f"`{protocol}` needs a lifetime", hint=hint)
