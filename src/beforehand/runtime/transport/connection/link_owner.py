"""The states of a connection, and what it reports to its owner."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Protocol

from beforehand.runtime.crypto.handshake import Introduction

if TYPE_CHECKING:
    from beforehand.runtime.transport.connection.link import Link


class LinkState(enum.IntEnum):
    """The state of a connection; it only increases."""

    HELLO = 0
    INTRODUCTION = 1
    DECIDING = 2
    UP = 3
    ENDED = 4


class Owner(Protocol):
    """The callbacks of a link."""

    def on_connected(self, link: Link) -> bool:
        """Return whether there is a free place for this connection."""

    def may_drain(self) -> bool:
        """Return whether there is a place for a stranger whose hello did not open."""

    def on_introduced(self, link: Link, peer: Introduction) -> None: ...
    def on_keep(self, link: Link) -> None: ...
    def on_pong(self, link: Link) -> None: ...
    def on_notice(self, link: Link, ends_us: int) -> None:
        """Called when the peer says when the secret of this link ends."""

    def on_frame(self, name: str, frame: bytes) -> None: ...
    def on_room(self, link: Link) -> None: ...
    def on_ended(self, link: Link, kind: str, problem: str) -> None:
        """Called exactly once, for any reason; only `on_lost` follows."""

    def on_lost(self, link: Link) -> None:
        """Called exactly once, as the last event: the socket is closed."""
