"""The kinds of nodes in the soak test: how to create one, and how to read its progress."""

from __future__ import annotations

import mmap
import struct
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from beforehand.runtime.crypto.keys import new_group
from beforehand.runtime.group import Group
from beforehand.runtime.host import Host
from beforehand.runtime.overlay import Overlay
from beforehand.runtime.station import Station
from beforehand.runtime.transport.limits import Limits
from soak.draw import NodeScript

GROUP = "soak"
KEY_FILE = "soak.key"
MEMBERS_FILE = "soak.toml"
STATIONS_FILE = "stations.toml"
STATIONS = 2
CELL_PORT = 7700
ALIVE_US = 300_000_000
"""A message that lives longer than this lives to the end of the seed."""
LIMITS = Limits(
    heartbeat_seconds=0.25,
    silence_seconds=1.0,
    handshake_seconds=1.0,
    backoff_min_seconds=0.05,
    backoff_max_seconds=0.4,
)


@dataclass(frozen=True)
class Place:
    """The environment of a node."""

    folder: Path
    kind: str
    addresses: tuple[str, ...]
    """The addresses of all nodes."""
    beginning: mmap.mmap
    """Shared memory: the start time of the script on the monotonic clock."""

    @property
    def began(self) -> float:
        """The start time; 0 before the start, when no node broadcasts."""
        (began,) = struct.unpack("d", self.beginning[:8])
        return float(began)

    def begin(self) -> float:
        self.beginning[:8] = struct.pack("d", time.monotonic())
        return self.began


@dataclass(frozen=True)
class Kind:
    """One kind of node."""

    make: Callable[[NodeScript, Place, dict[str, Any]], Any]
    progress: Callable[[Any, int], tuple[list[str], int]] | None = None
    """Returns, for a node and its clock, its messages and how many wait. Nodes with the same
    messages return the same list. None: use the broadcasts and deliveries in the event log."""
    has_lifetimes: bool = False
    stations: int = 0
    """The number of stations among the nodes; they are never killed, because they store nothing."""
    is_up: Callable[[Any], bool] = lambda _: True
    """Returns whether the node takes part; a node that joins later may lack earlier messages."""
    wander: Callable[[NodeScript, Place, Any, int], Awaitable[None]] | None = None
    """Moves a host to the cell of another station."""


def prepare(folder: Path, addresses: tuple[str, ...], names: tuple[str, ...]) -> None:
    """Write the files that all nodes need before the first one starts."""
    new_group(GROUP).write(folder / KEY_FILE)
    lines = [f'group = "{GROUP}"']
    for name, address in zip(names, addresses, strict=True):
        lines += ["[[member]]", f'name = "{name}"', f'address = "{address}"']
    (folder / MEMBERS_FILE).write_text("\n".join(lines))
    lines = [f'group = "{GROUP}"']
    for at in range(STATIONS):
        host = addresses[at].partition(":")[0]
        wires = [names[at - 1]] if at else []
        lines += ["[[station]]", f'name = "{names[at]}"', f'address = "{addresses[at]}"']
        lines += [f'cell = "{cell_of(at, addresses)}"', f'interface = "{host}"', f"wires = {wires}"]
    (folder / STATIONS_FILE).write_text("\n".join(lines))


def cell_of(station: int, addresses: tuple[str, ...]) -> str:
    """Return a multicast address that no other soak test on this machine uses."""
    _, second, third, _ = addresses[station].partition(":")[0].split(".")
    return f"239.{second}.{third}.{station + 1}:{CELL_PORT}"


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


def _make_host(script: NodeScript, place: Place, more: dict[str, Any]) -> Host | Station:
    if script.at < STATIONS:
        key = place.folder / KEY_FILE
        stations = place.folder / STATIONS_FILE
        return Station(stations, name=script.name, key=key, limits=LIMITS)
    options = _options(script, place)
    del options["limits"]
    cell = cell_of(script.at % STATIONS, place.addresses)
    interface = place.addresses[script.at].partition(":")[0]
    return Host(GROUP, cell=cell, interface=interface, **options, **more)


async def _wander(script: NodeScript, place: Place, host: Host, station: int) -> None:
    interface = place.addresses[script.at].partition(":")[0]
    await host.move(cell_of(station, place.addresses), interface)


def _group_progress(group: Group, now_us: int) -> tuple[list[str], int]:
    alive_us = time.time_ns() // 1000 + ALIVE_US
    held = group._core().holds(now_us)
    return sorted(repr(id) for id in held if id[1] > alive_us), len(group.pending)


def _overlay_progress(overlay: Overlay, now_us: int) -> tuple[list[str], int]:
    core = overlay._opened().node.driver.core
    clock: list[int] = core._core._clock  # type: ignore[attr-defined]
    return list(map(str, clock)), core.gauges(now_us)["pending"]


KINDS = {
    "group": Kind(_make_group, _group_progress, has_lifetimes=True),
    "overlay": Kind(_make_overlay, _overlay_progress),
    "host": Kind(
        _make_host,
        stations=STATIONS,
        is_up=lambda node: isinstance(node, Station) or node.is_connected,
        wander=_wander,
    ),
}
