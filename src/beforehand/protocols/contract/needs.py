"""The guarantees that a core needs from its network, per kind of link, and the check for them."""

from __future__ import annotations

from typing import Literal

import msgspec

from beforehand.errors import InputError

LinkKind = Literal["contact", "detector", "feed", "cell", "wire"]
"""The meaning of `on_link`, and how a core treats a frame that arrives without a link:

- *contact*: two nodes are in range of each other. Frames in flight when a contact ends are lost.
  A frame from a node without a contact was sent before its end, so the core ignores it.
- *detector*: the members are known, and every member can reach every other. A failure detector
  reports members as up or down. Its reports may be late, so a core accepts frames from any member,
  up or down. A member that was down may have missed any frame sent to it meanwhile.
- *feed*: one-way. There is no `on_link`; frames arrive from any node, and the core sends none.
- *cell*: a radio cell. `on_link` tells a host that it entered or left the cell of a station. A host
  is in one cell at most. A station does not learn which hosts are in its cell. A frame to EVERYBODY
  is one transmission, which each host in the cell receives or misses. Frames in flight when a host
  leaves are lost.
- *wire*: a cable between two stations. It is always up, so there is no `on_link`; frames arrive
  from any adjacent station.
"""


class Link(msgspec.Struct, frozen=True):
    """The guarantees of one kind of link: those that a core needs, or that a network gives."""

    fifo: bool = False
    """Whether frames between two peers arrive in the order in which they were sent."""
    reliable: bool = False
    """Whether no frame between two peers is lost or duplicated while their link is up."""


class Needs(msgspec.Struct, frozen=True):
    """The guarantees that a core needs from its network, or those that a network gives."""

    links: dict[LinkKind, Link]
    clocks_within_us: int | None = None
    """The largest difference between the clocks of any two nodes, in µs. A core names it only if
    the order of deliveries depends on it, not if a larger difference only delays messages; None
    needs no bound. A network with None guarantees no bound."""


def refuse_unmet(needs: Needs, given: Needs) -> None:
    """Raise InputError if a network does not give what a core needs. Call it before the run."""
    problems = [
        problem
        for kind, link in needs.links.items()
        for problem in _unmet(kind, link, given.links.get(kind))
    ]
    asked_us, given_us = needs.clocks_within_us, given.clocks_within_us
    if asked_us is not None and (given_us is None or given_us > asked_us):
        apart = "nothing bounds them" if given_us is None else f"they differ by {given_us}"
        problems.append(f"clocks within {asked_us} us, but {apart}")
    if problems:
        raise InputError(
            "the protocol needs " + "; it needs ".join(problems),
            hint="give the layer a retry time, or choose a network that meets the need",
        )


def _unmet(kind: LinkKind, needed: Link, given: Link | None) -> list[str]:
    if given is None:
        return [f"{kind} links, but there are none"]
    problems = []
    if needed.reliable and not given.reliable:
        problems.append("reliable links, but the network loses or duplicates frames")
    if needed.fifo and not given.fifo:
        problems.append("FIFO links, but the network reorders frames")
    return problems
