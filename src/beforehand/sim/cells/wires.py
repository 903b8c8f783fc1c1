"""The wires between stations: reliable and FIFO, each direction independently."""

from __future__ import annotations

from beforehand.sim.cells.spec import Wiring


class Wires:
    """Computes arrival times. Frames on a wire are serialised, then delayed."""

    def __init__(self, wiring: Wiring, edges: tuple[tuple[int, int], ...]) -> None:
        self._wiring = wiring
        self._free_us = {pair: 0 for a, b in edges for pair in ((a, b), (b, a))}

    def arrive_us(self, now_us: int, source: int, target: int, size_bytes: int) -> int:
        """Return when a frame that is sent now arrives.

        size_bytes: with all headers. A wire that does not exist raises a KeyError."""
        wiring = self._wiring
        airtime_us = -(-8_000_000 * size_bytes // wiring.bits_per_s)
        free_us = max(now_us, self._free_us[source, target]) + airtime_us
        self._free_us[source, target] = free_us
        return free_us + wiring.delay_us
