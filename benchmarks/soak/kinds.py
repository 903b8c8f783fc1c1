"""The kinds of nodes that can be soaked: how one is made, and how far it has come."""

from __future__ import annotations

import mmap
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from beforehand.runtime.group import Group
from beforehand.runtime.keys import new_group
from beforehand.runtime.limits import Limits
from beforehand.runtime.overlay import Overlay
from soak.draw import NodeScript

GROUP = "soak"
KEY_FILE = "soak.key"
MEMBERS_FILE = "soak.toml"
ALIVE_US = 300_000_000
"""What lives longer than this lives to the end of the seed."""
LIMITS = Limits(
    heartbeat_seconds=0.25,
    silence_seconds=1.0,
    handshake_seconds=1.0,
    backoff_min_seconds=0.05,
    backoff_max_seconds=0.4,
)


@dataclass(frozen=True)
class Place:
    """Where a node lives."""

    folder: Path
    kind: str
    addresses: tuple[str, ...]
    """Of all nodes."""
    beginning: mmap.mmap
    """Shared by all: when the script begins, on the monotonic clock."""

    @property
    def began(self) -> float:
        """0 if it has not: nothing is said until then."""
        (began,) = struct.unpack("d", self.beginning[:8])
        return float(began)

    def begin(self) -> float:
        self.beginning[:8] = struct.pack("d", time.monotonic())
        return self.began


@dataclass(frozen=True)
class Kind:
    """One kind of node."""

    make: Callable[[NodeScript, Place, dict[str, Any]], Any]
    progress: Callable[[Any, int], tuple[object, int]]
    """Given a node and its clock: what it has, the same for all who have the same, and how many
    wait."""
    has_lifetimes: bool


def prepare(folder: Path, addresses: tuple[str, ...], names: tuple[str, ...]) -> None:
    """What all nodes need before the first one starts."""
    new_group(GROUP).write(folder / KEY_FILE)
    lines = [f'group = "{GROUP}"']
    for name, address in zip(names, addresses, strict=True):
        lines += ["[[member]]", f'name = "{name}"', f'address = "{address}"']
    (folder / MEMBERS_FILE).write_text("\n".join(lines))


def _options(script: NodeScript, place: Place) -> dict[str, Any]:
    return {
        "name": script.name,
        "store": place.folder / f"{script.name}.db",
        "key": place.folder / KEY_FILE,
        "durable": script.durable,
        "inbox": script.inbox,
        "limits": LIMITS,
    }


def _make_group(script: NodeScript, place: Place, more: dict[str, Any]) -> Group:
    return Group(
        GROUP,
        lifetime="20m",
        listen=place.addresses[script.at],
        peers=[place.addresses[peer] for peer in script.peers],
        discover=False,
        **_options(script, place),
        **more,
    )


def _make_overlay(script: NodeScript, place: Place, more: dict[str, Any]) -> Overlay:
    return Overlay(place.folder / MEMBERS_FILE, **_options(script, place), **more)


def _group_progress(group: Group, now_us: int) -> tuple[object, int]:
    alive_us = time.time_ns() // 1000 + ALIVE_US
    held = group._core().holds(now_us)
    return sorted((str(origin), seq) for origin, seq in held if seq > alive_us), len(group.pending)


def _overlay_progress(overlay: Overlay, now_us: int) -> tuple[object, int]:
    core = overlay._opened().node.driver.core
    clock: list[int] = core._core._clock  # type: ignore[attr-defined]
    return list(clock), core.gauges(now_us)["pending"]


KINDS = {
    "group": Kind(_make_group, _group_progress, has_lifetimes=True),
    "overlay": Kind(_make_overlay, _overlay_progress, has_lifetimes=False),
}
