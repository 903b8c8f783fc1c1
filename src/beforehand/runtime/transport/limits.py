"""Limits on the resources that a node spends on peers and on unauthenticated connections."""

from __future__ import annotations

import msgspec

from beforehand.errors import InputError

KIB, MIB = 1 << 10, 1 << 20


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one node. Each docstring says what happens when the limit is reached."""

    frame_bytes_max: int = MIB
    """Bytes of one frame. Sending a longer one raises `LocalError`. A peer that sends a longer one
    loses its link (`too_large`)."""
    queue_bytes_max: int = 8 * MIB
    """Bytes of frames queued for one peer. Beyond that its link is cut (`overflow`). A sender
    avoids this by asking for `room` first."""
    connections_max: int = 256
    """Links, both dialed and accepted. Further peers are refused (`too_many_connections`)."""
    connections_per_address_max: int = 64
    """Incoming connections from one address, or from one /64 of IPv6. Further ones are refused."""
    handshakes_max: int = 64
    """Incoming connections that have not finished the handshake. A further one replaces the oldest
    that has sent no hello. So strangers cannot keep members out, and their memory use is bounded.
    A quarter of the places is for addresses that had a link before."""
    handshake_seconds: float = 10.0
    """Maximum duration from connect to link-up; beyond that, `slow_handshake`."""
    heartbeat_seconds: float = 5.0
    """Time without sending after which a heartbeat is sent. Also the time that an old link has to
    answer a ping when its peer opens a new connection."""
    silence_seconds: float = 20.0
    """Time without receiving anything after which the link is cut (`silent`)."""
    frames_per_second_max: int = 50_000
    """Frames from one peer, averaged over two seconds. Beyond that the peer loses its link
    (`flood`) and is refused for `backoff_max_seconds`."""
    backoff_min_seconds: float = 0.2
    backoff_max_seconds: float = 30.0
    """The backoff between two attempts to dial an address doubles from `backoff_min_seconds` up to
    this, with jitter."""

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
