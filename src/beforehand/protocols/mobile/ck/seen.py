"""The set of messages, per site, that a host has delivered or acknowledged."""

from __future__ import annotations

from collections.abc import Iterable
from operator import le

from beforehand.protocols.mobile.ck.frames import Id, Vector


class Seen:
    """A count of gap-free messages for each site, and the messages beyond a gap."""

    def __init__(self, counts: Iterable[int], extra: Iterable[Id] = ()) -> None:
        self._counts = list(counts)
        self._extra = dict.fromkeys(extra)

    def __contains__(self, id: Id) -> bool:
        return id[1] <= self._counts[id[0]] or id in self._extra

    def add(self, id: Id) -> list[Id]:
        """Add a message, and return the messages that now belong to the gap-free counts."""
        site, number = id
        if number != self._counts[site] + 1:
            self._extra[id] = None
            return []
        counted = [id]
        while (after := (site, number + len(counted))) in self._extra:
            del self._extra[after]
            counted.append(after)
        self._counts[site] += len(counted)
        return counted

    def first_missing(self, needs: Vector) -> Id | None:
        """Return a message within the counts `needs` that is beyond the own counts, or None."""
        if not all(map(le, needs, self._counts)):
            for site, need in enumerate(needs):
                if need > self._counts[site]:
                    return site, need
        return None

    @property
    def counts(self) -> Vector:
        """Return, per site, the number up to which no message is missing."""
        return tuple(self._counts)

    @property
    def extra(self) -> tuple[Id, ...]:
        return tuple(self._extra)

    def last(self) -> Vector:
        """Return the number of the last message of each site, whether or not there is a gap.

        The messages in a gap were initiated before the last one. To wait for them too may take
        longer, but never for ever.
        """
        last = list(self._counts)
        for site, number in self._extra:
            last[site] = max(last[site], number)
        return tuple(last)
