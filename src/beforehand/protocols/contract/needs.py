"""What a core needs of its network, kind of link by kind of link, and who gives it."""

from __future__ import annotations

from typing import Literal

import msgspec

from beforehand.errors import InputError

LinkKind = Literal["contact", "detector", "feed", "cell", "wire"]
"""What `on_link` means, and what becomes of a frame that comes without a link:

- *contact*: the two are in range. What was under way when a contact ends is lost; a frame from
  somebody who is not in contact was sent before that, and is ignored.
- *detector*: members are known and everybody can reach everybody; up and down are the word of a
  failure detector. It may be late, so a frame is taken from any member, up or down. Who was down
  may have missed anything sent to it meanwhile.
- *feed*: one way. Nobody says who is there; frames come from anybody, and nothing is sent.
- *cell*: by radio. A host is told that it is in the cell of a station, or no longer; it is in one
  cell at most. A station is not told who is there. What it sends to everybody is one transmission,
  which each host in the cell hears or misses. What was under way when a host leaves is lost.
- *wire*: between two stations. Always up: nobody is told, and frames come from any neighbour.
"""


class Link(msgspec.Struct, frozen=True):
    """The quality of one kind of link: as a core needs it, or as a network gives it."""

    fifo: bool = False
    """Frames between two neighbours arrive in the order in which they were sent."""
    reliable: bool = False
    """Nothing is lost or duplicated between two neighbours while their link is up."""


class Needs(msgspec.Struct, frozen=True):
    """What a core must have from its network, and what a network gives."""

    links: dict[LinkKind, Link]
    clocks_within_us: int | None = None
    """The clocks of any two nodes differ by no more than this. As a need, it is what the order of
    deliveries depends on, and None asks for nothing; what only delays messages is no need. As a
    gift, None promises nothing."""


def refuse_unmet(needs: Needs, given: Needs) -> None:
    """A network that does not give what a core needs is refused before anything runs."""
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
            hint="give the layer a retry time, or choose a network that gives what is needed",
        )


def _unmet(kind: LinkKind, needed: Link, given: Link | None) -> list[str]:
    if given is None:
        return [f"{kind} links, but there are none"]
    problems = []
    if needed.reliable and not given.reliable:
        problems.append("reliable links, but the network loses or duplicates frames")
    if needed.fifo and not given.fifo:
        problems.append("FIFO links, but the network lets frames overtake each other")
    return problems
