"""The random draws of a node, as the epidemic layer uses them."""

from __future__ import annotations

from collections.abc import MutableSequence
from typing import Any, Protocol


class Draws(Protocol):
    """A sequence of draws. `random.Random` is one; a simulation draws by key
    (`sim.streams.KeyedDraws`)."""

    def randrange(self, stop: int, /) -> int:
        """Return an integer of 0..stop-1."""
        ...

    def randint(self, a: int, b: int, /) -> int:
        """Return an integer of a..b."""
        ...

    def shuffle(self, x: MutableSequence[Any], /) -> None:
        """Put the items into a random order."""
        ...
