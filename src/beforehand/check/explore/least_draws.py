"""A random number generator that always returns the least number. So the states of a core stay
small, and do not depend on earlier draws.
"""

from __future__ import annotations

import random


class LeastDraws(random.Random):
    """Replaces `random.Random` in a core that is explored."""

    def __reduce__(self) -> tuple[type[LeastDraws], tuple[()]]:
        return LeastDraws, ()

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        """Return the least number of the range."""
        return 0 if stop is None else start

    def randint(self, a: int, b: int) -> int:
        """Return the least number of the range."""
        return a

    def shuffle(self, x: object) -> None:
        """Leave the order unchanged."""
