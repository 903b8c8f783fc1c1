"""The wires between stations: reliable, first in first out, each direction on its own."""

from __future__ import annotations

from beforehand.sim.cells.spec import Wiring


class Wires:
    """When a frame arrives that is sent now. One after the other: bits take time, then the way."""

    def __init__(self, wiring: Wiring, edges: tuple[tuple[int, int], ...]) -> None:
        self._wiring = wiring
        self._free_us = {pair: 0 for a, b in edges for pair in ((a, b), (b, a))}

    def arrive_us(self, now_us: int, source: int, target: int, size_bytes: int) -> int:
        """size_bytes: with all headers. A wire that is not there is a KeyError."""
        wiring = self._wiring
        airtime_us = -(-8_000_000 * size_bytes // wiring.bits_per_s)
        free_us = max(now_us, self._free_us[source, target]) + airtime_us
        self._free_us[source, target] = free_us
        return free_us + wiring.delay_us
