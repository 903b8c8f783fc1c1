"""What a node of the opportunistic network knows of another during one contact."""

from __future__ import annotations

import msgspec

from beforehand.core.base import MessageId


class Neighbour(msgspec.Struct):
    """One of those in contact."""

    theirs: set[MessageId]
    """It has these: it announced or sent them, or was sent them."""
    asked: set[MessageId]
    """Asked of it, not come yet."""
    unheard: dict[int, frozenset[MessageId]]
    """Announcements that it has not acknowledged, by number. Empty on reliable links."""
    greeted: bool = False
    """Was it told all that is here?"""
    progress_us: int = 0
    """When it last sent data, or was asked for some."""
