"""A generator of random numbers that always draws the least: the states of a core stay small, and
do not differ in what was drawn before."""

from __future__ import annotations

import random


class Still(random.Random):
    """Takes the place of `random.Random` in a core that is explored."""

    def __reduce__(self) -> tuple[type[Still], tuple[()]]:
        return Still, ()

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        """Return the least number of the range."""
        return 0 if stop is None else start

    def randint(self, a: int, b: int) -> int:
        """Return the least number of the range."""
        return a

    def shuffle(self, x: object) -> None:
        """Leave everything where it is."""
