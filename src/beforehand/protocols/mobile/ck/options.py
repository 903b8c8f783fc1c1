"""Choices about CK that MOB leaves open. All hosts and stations must have the same."""

from __future__ import annotations

from typing import Literal

import msgspec


class CkOptions(msgspec.Struct, frozen=True):
    needs: Literal["host", "station"] = "host"
    """The causes of a message: those that its host had delivered, or all that its station had.
    MOB section 5.1 has vectors of stations and does not say which messages they count."""
    ack_us: int = 0
    """0: a host acknowledges each message at once. Else it sends the vector of what it has
    delivered, at most that often."""
    acks_always: bool = False
    """Whether a connected host sends that vector even if it has heard nothing new."""
