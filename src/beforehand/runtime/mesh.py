"""The links of one node: who is there, frames in and out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from beforehand.runtime.address import Address
from beforehand.runtime.keys import GroupKey, MemberKey
from beforehand.runtime.limits import DEFAULTS, Limits
from beforehand.runtime.refusals import Ending, LinkCounters
from beforehand.runtime.trust import Trust


class PeerInfo(msgspec.Struct, frozen=True):
    """One link, as it is now."""

    name: str
    address: Address
    """The other end of the connection."""
    is_dialed: bool
    """By us."""
    since_us: int
    """When the link came up, on the system's clock."""
    bytes_in: int
    bytes_out: int
    frames_in: int
    frames_out: int
    queued_bytes: int


class Mesh:
    """All in one event loop: call it there; callbacks come from there.

    on_link(name, is_up): strictly alternating for each name, beginning with True.
    on_frame(name, frame): only between up and down.
    on_room(name): its queue had grown beyond half, and has drained to half again.
    """

    def __init__(
        self,
        name: str,
        member: MemberKey,
        key: GroupKey,
        trust: Trust,
        *,
        listen: Sequence[Address],
        peers: Sequence[Address] = (),
        discover: bool,
        limits: Limits = DEFAULTS,
        on_link: Callable[[str, bool], None],
        on_frame: Callable[[str, bytes], None],
        on_room: Callable[[str], None] | None = None,
        interfaces: Sequence[str] = (),
    ) -> None:
        """interfaces: IP addresses of those on which to discover; all of them if none is named."""
        self.counters = LinkCounters()

    async def start(self) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError

    def send(self, peer: str, frames: Sequence[bytes]) -> None:
        """Queue them, in order; nothing for a peer that is gone. Never blocks.

        A full queue costs the link: `on_link(peer, False)` may be called from within.
        """
        raise NotImplementedError

    def room(self, peer: str) -> int:
        """Bytes that `send` would take now without cutting the link; 0 for a peer that is gone."""
        raise NotImplementedError

    def pause(self, peer: str) -> None:
        """Stop reading from it: no `on_frame` from it until `resume`, and TCP slows it down."""
        raise NotImplementedError

    def resume(self, peer: str) -> None:
        raise NotImplementedError

    def cut(self, peer: str, problem: str) -> None:
        """End the link, because of what a frame held; it may come again after a while."""
        raise NotImplementedError

    def peers(self) -> list[PeerInfo]:
        raise NotImplementedError

    def addresses(self) -> list[Address]:
        """Where it really listens."""
        raise NotImplementedError

    def endings(self) -> list[Ending]:
        """The last few connections that were refused or broke, newest last."""
        raise NotImplementedError
