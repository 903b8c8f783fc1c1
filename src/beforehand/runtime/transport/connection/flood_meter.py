"""How many frames a peer may still send: a token bucket."""

from __future__ import annotations

FLOOD_SECONDS = 2
"""Seconds over which the rate is averaged."""


class FloodMeter:
    """The frames of one peer, of which so many per second are allowed."""

    def __init__(self, per_second: float, now: float) -> None:
        self._rate, self._most = per_second, FLOOD_SECONDS * per_second
        self._left, self._refilled = self._most, now

    def refill(self, now: float) -> None:
        """Let time pass."""
        self._left = min(self._left + (now - self._refilled) * self._rate, self._most)
        self._refilled = now

    def take(self, frames: int) -> bool:
        """Count frames; return whether they were within the limit."""
        self._left -= frames
        return self._left >= 0
