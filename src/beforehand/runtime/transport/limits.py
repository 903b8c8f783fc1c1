"""What a node is ready to spend on its neighbours, and on strangers."""

from __future__ import annotations

import msgspec

from beforehand.errors import InputError

KIB, MIB = 1 << 10, 1 << 20


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Each with what happens when it is reached."""

    frame_bytes_max: int = MIB
    """Of one frame. To send a longer one is a `LocalError`; a neighbour that does loses its link.
    """
    queue_bytes_max: int = 8 * MIB
    """Of frames that wait for one neighbour. One more, and the link is cut (`overflow`); whoever
    sends much asks for `room` first."""
    connections_max: int = 256
    """Links, ours and theirs. Another neighbour is refused (`too_many_connections`)."""
    connections_per_address_max: int = 64
    """That come from one address, or one /64 of IPv6. Another is refused."""
    handshakes_max: int = 64
    """Connections that have come in and are no links yet. Another takes the place of the oldest
    that has not greeted, so that strangers keep no member out, and take no more memory than this.
    """
    handshake_seconds: float = 10.0
    """From connecting to a link; what takes longer is refused (`slow_handshake`)."""
    heartbeat_seconds: float = 5.0
    """After so long without anything to say, something is said. Also how long an old link has to
    answer when its neighbour comes with a new one."""
    silence_seconds: float = 20.0
    """After so long without a word from a neighbour, its link is cut (`silent`)."""
    frames_per_second_max: int = 50_000
    """From one neighbour, as a mean over two seconds; beyond, it loses the link (`flood`) and may
    come again after `backoff_max_seconds`."""
    backoff_min_seconds: float = 0.2
    backoff_max_seconds: float = 30.0
    """Between two attempts to reach an address: doubled each time, within these bounds, with
    jitter."""

    def __post_init__(self) -> None:
        for field in self.__struct_fields__:
            if not getattr(self, field) > 0:
                raise InputError(f"`{field}` is not above 0: {getattr(self, field)}")
        if self.silence_seconds < 2 * self.heartbeat_seconds:
            raise InputError(
                f"silence_seconds {self.silence_seconds} is less than two heartbeats",
                hint=f"with heartbeat_seconds {self.heartbeat_seconds} give at least twice that",
            )
        if self.queue_bytes_max < self.frame_bytes_max:
            raise InputError(
                f"a frame of {self.frame_bytes_max:,} bytes does not fit into a queue of "
                f"{self.queue_bytes_max:,}",
                hint="make queue_bytes_max larger or frame_bytes_max smaller",
            )
        if self.backoff_max_seconds < self.backoff_min_seconds:
            raise InputError("backoff_max_seconds is below backoff_min_seconds")


DEFAULTS = Limits()
