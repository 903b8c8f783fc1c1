"""A model of links: latency, bandwidth, loss, duplication and reordering."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import msgspec

from beforehand.protocols.contract.needs import Link
from beforehand.sim.streams import mix

FOREVER_US = 1 << 62


class LinkModel(msgspec.Struct, frozen=True, dict=True):
    """One frame at a time in each direction. A frame in transit when the contact ends is lost."""

    latency_us: int = 0
    bytes_per_s: int | None = None
    """None: unlimited bandwidth."""
    loss: float = 0.0
    duplication: float = 0.0
    jitter_us: int = 0
    """The largest random delay that is added to the latency of each frame. It reorders frames."""
    noise_until_us: int = FOREVER_US
    """From this instant on, no frame is lost, duplicated or delayed by jitter."""

    @cached_property
    def is_noisy(self) -> bool:
        return bool(self.loss or self.duplication or self.jitter_us)

    @property
    def given(self) -> Link:
        """Return the guarantees that a core can rely on."""
        return Link(fifo=not self.jitter_us, reliable=not (self.loss or self.duplication))


@dataclass
class Channel:
    """One direction of one contact."""

    key: int
    down_us: int
    free_us: int = 0
    frames: int = 0
    was_cut: bool = False
    """Whether the last frame without an arrival was under way when the contact ended."""

    def arrivals(self, model: LinkModel, now_us: int, size_bytes: int) -> tuple[int, ...]:
        """Return the arrival times of a frame: none, one or two."""
        start_us = now_us
        if model.bytes_per_s is not None:
            start_us = max(now_us, self.free_us)
            start_us += -(-size_bytes * 1_000_000 // model.bytes_per_s)
            self.free_us = start_us
        arrive_us = start_us + model.latency_us
        if now_us >= model.noise_until_us or not model.is_noisy:
            if arrive_us < self.down_us:
                return (arrive_us,)
            self.was_cut = True
            return ()
        self.frames += 1
        draw = mix(self.key, self.frames)
        copies: list[int] = []
        if _fraction(draw, 1) >= model.loss:
            copies.append(arrive_us + int(_fraction(draw, 2) * model.jitter_us))
        if _fraction(draw, 3) < model.duplication:
            copies.append(arrive_us + int(_fraction(draw, 4) * model.jitter_us))
        self.was_cut = bool(copies)
        return tuple(copy_us for copy_us in copies if copy_us < self.down_us)


def _fraction(draw: int, which: int) -> float:
    return (mix(draw, which) >> 11) * 2.0**-53
