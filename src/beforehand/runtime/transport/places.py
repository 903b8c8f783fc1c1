"""Which incoming connections have a place: bounds for each address and for strangers together."""

from __future__ import annotations

from collections.abc import Iterable

from beforehand.runtime.transport.connection.link import Link
from beforehand.runtime.transport.connection.link_owner import LinkState
from beforehand.runtime.transport.limits import Limits

RESERVED_PART = 4
"""One in so many of the places for handshakes is for addresses that had a link before."""
LINKED_MAX = 1024
"""Such addresses that are remembered."""
DRAINING_MAX = 64
"""Connections of strangers that are read until they are closed. A further one is closed at once."""


class Places:
    """The places of one node for incoming connections."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._linked: dict[str, None] = {}
        """The addresses that had a link, the most recent last."""

    def remember(self, place: str) -> None:
        """Remember that an address had a link."""
        self._linked.pop(place, None)
        self._linked[place] = None
        if len(self._linked) > LINKED_MAX:
            del self._linked[next(iter(self._linked))]

    def admit(self, link: Link, everyone: Iterable[Link]) -> bool:
        """Return whether there is a place for an incoming connection; end another one for it.

        everyone: all connections, the new one among them.
        """
        come = [other for other in everyone if other.state is not LinkState.ENDED]
        come = [other for other in come if not other.is_dialed]
        if sum(other.place == link.place for other in come) > (
            self._limits.connections_per_address_max
        ):
            return False
        begun = [other for other in come if other.state < LinkState.UP]
        unknown = [other for other in begun if other.place not in self._linked]
        most = self._limits.handshakes_max
        if len(unknown) > most - most // RESERVED_PART:
            begun = unknown
        elif len(begun) <= most:
            return True
        # A member sends its hello at once. So the oldest connection without one is most likely a
        # stranger.
        waiting = [other for other in begun if other.state is LinkState.HELLO]
        if not waiting:
            return False
        oldest = min(waiting, key=lambda other: other.began)
        oldest.end("too_many_connections", "it was closed to make room for another member")
        return oldest is not link


def may_drain(everyone: Iterable[Link]) -> bool:
    """Return whether a further connection of a stranger may be read until it is closed."""
    return sum(link.is_draining for link in everyone) < DRAINING_MAX
