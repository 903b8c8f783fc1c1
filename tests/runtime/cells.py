"""Stations and hosts on loopback for tests: each cell is a multicast address of its own."""

from __future__ import annotations

import itertools
import os
import socket

from beforehand.runtime.crypto.keys import new_group
from beforehand.runtime.host import Host
from beforehand.runtime.station import Station
from tests.runtime.overlays import QUICK, free_ports

_places = itertools.count(os.getpid() * 7)
"""Tests that run side by side do not share a cell."""


def new_cell() -> str:
    place = next(_places)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return f"239.77.{place // 250 % 250}.{place % 250 + 1}:{port}"


def write_stations(folder, *names, wires=None):
    """A chain, unless told otherwise; each cell on loopback. The cells by name."""
    wires = dict(itertools.pairwise(names)) if wires is None else wires
    cells, lines = {}, ['group = "port"']
    for name, port in zip(names, free_ports(len(names)), strict=True):
        cells[name] = new_cell()
        lines += [
            "[[station]]",
            f'name = "{name}"',
            f'address = "127.0.0.1:{port}"',
            f'cell = "{cells[name]}"',
            'interface = "127.0.0.1"',
            f"wires = {[wires[name]] if name in wires else []}",
        ]
    (folder / "port.toml").write_text("\n".join(lines))
    if not (folder / "port.key").exists():
        new_group("port").write(folder / "port.key")
    return cells


def station(folder, name, **options):
    options = {"limits": QUICK, **options}
    return Station(folder / "port.toml", name=name, key=folder / "port.key", **options)


def host(folder, name, cell, **options):
    options = {"durable": "os", "log": folder / "logs", "interface": "127.0.0.1", **options}
    options = {"store": folder / f"{name}.db", "key": folder / "port.key", **options}
    return Host("port", name=name, cell=cell, **options)
