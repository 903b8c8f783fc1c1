"""Low size thresholds for the cores, so that small nets reach code that otherwise only large nets
do.

A core sweeps a registry when it has grown to some size: 64 origins, 1,024 evicted messages. A net
of five nodes and some dozen messages never reaches such a size, so it never exposes a fault behind
the threshold. A case with `thresholds="low"` runs with the values of `LOW` instead of the shipped
ones.

The values are constants of modules. `in_force` sets them for the duration of one run and then
restores the previous values. It sets them in their own module and in every module that imported
them by name. A case must be played inside `in_force`: `make_net` refuses a case whose thresholds
are not in force. A run is one process, so workers do not disturb each other. The choice is a field
of the case, so a replay and a shrunk run make the same one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Literal

from beforehand.protocols.epidemic import cache, peer, shares, version_vector
from beforehand.protocols.orders import order, pending, stamped, stamped_draft, stamped_message
from beforehand.protocols.vcube import retention

Thresholds = Literal["as shipped", "low"]

LOW: dict[tuple[ModuleType, str], int] = {
    (order, "PURGE_AT_MIN"): 1,
    (cache, "EVICTED_MAX"): 4,
    (version_vector, "STALE_MIN"): 2,
    (peer, "KNOWN_TO_PEER_MIN"): 2,
    (shares, "MEMBERS_MAX"): 2,
    (pending, "DEADLINES_MIN"): 1,
    (pending, "SEQS_MIN"): 1,
    (stamped, "DIGESTS_MAX"): 3,
    (stamped_message, "PAST_MAX"): 4,
    (stamped_draft, "OUTLIVING_MAX"): 1,
    (retention, "SPANS_MAX"): 2,
    (retention, "NAMED_MAX"): 2,
}
"""(module, constant) -> its low value."""

CORES = "beforehand.protocols."

_places: list[tuple[dict[str, object], str, int]] = []
_now: Thresholds = "as shipped"


def thresholds_in_force() -> Thresholds:
    return _now


@contextmanager
def in_force(thresholds: Thresholds) -> Iterator[None]:
    """Set the thresholds for the duration of the block."""
    global _now
    if thresholds == _now:
        yield
        return
    assert thresholds == "low", "a run as shipped inside of one with low thresholds"
    before = [names[name] for names, name, _ in places()]
    for names, name, low in places():
        names[name] = low
    _now = "low"
    try:
        yield
    finally:
        _now = "as shipped"
        for (names, name, _), value in zip(places(), before, strict=True):
            names[name] = value


def places() -> list[tuple[dict[str, object], str, int]]:
    """Return (globals, constant, low value) for every core module that has one of the constants."""
    if not _places:
        cores = [vars(module) for name, module in sys.modules.items() if name.startswith(CORES)]
        _places.extend(
            (names, name, low) for (_, name), low in LOW.items() for names in cores if name in names
        )
    return _places
