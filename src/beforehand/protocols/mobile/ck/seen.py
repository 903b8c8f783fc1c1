"""Which messages a host has delivered or acknowledged, of each site."""

from __future__ import annotations

from collections.abc import Iterable
from operator import le

from beforehand.protocols.mobile.ck.frames import Id, Vector


class Seen:
    """A count for each site, and what lies beyond a gap."""

    def __init__(self, counts: Iterable[int], extra: Iterable[Id] = ()) -> None:
        self._counts = list(counts)
        self._extra = dict.fromkeys(extra)

    def __contains__(self, id: Id) -> bool:
        return id[1] <= self._counts[id[0]] or id in self._extra

    def add(self, id: Id) -> list[Id]:
        """Those that count now: all of their site up to there is there."""
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
        """One that does not count yet, of those that these counts stand for."""
        if not all(map(le, needs, self._counts)):
            for site, need in enumerate(needs):
                if need > self._counts[site]:
                    return site, need
        return None

    @property
    def counts(self) -> Vector:
        """Up to here, all of each site is there."""
        return tuple(self._counts)

    @property
    def extra(self) -> tuple[Id, ...]:
        return tuple(self._extra)

    def last(self) -> Vector:
        """The last one of each site. What lies in a gap was initiated before it, so to wait for
        that too may take longer, and never for ever."""
        last = list(self._counts)
        for site, number in self._extra:
            last[site] = max(last[site], number)
        return tuple(last)
