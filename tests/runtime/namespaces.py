"""Network segments that a test makes for itself: namespaces, and bridges between them."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from functools import cache

from tests.waiting import SECONDS_MAX

_numbers = itertools.count()


def ip(*words: object) -> None:
    done = subprocess.run(
        ["ip", *map(str, words)], capture_output=True, text=True, timeout=SECONDS_MAX
    )
    assert done.returncode == 0, f"ip {' '.join(map(str, words))}: {done.stderr}"


@cache
def why_not() -> str:
    """Why no namespaces can be made here; empty if they can."""
    if shutil.which("ip") is None:
        return "there is no `ip` command"
    if os.geteuid() != 0:
        return "only root makes network namespaces"
    name = f"bfh{os.getpid()}"
    done = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if done.returncode != 0:
        return f"network namespaces are not permitted: {done.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", name], capture_output=True)
    return ""


class Segments:
    """Bridges in a namespace of their own; nodes are namespaces with plugs in them."""

    def __init__(self, *segments: str) -> None:
        self._prefix = f"bfh{os.getpid()}x{next(_numbers)}"
        self._segments = segments
        self._made: list[str] = []
        self._plugs: dict[tuple[str, str], str] = {}

    def __enter__(self) -> Segments:
        try:
            lan = self._add("lan")
            for segment in self._segments:
                self._in(lan, "link", "add", segment, "type", "bridge", "mcast_snooping", 0)
                self._in(lan, "link", "set", segment, "up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name in self._made:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=SECONDS_MAX)

    def add(self, node: str) -> None:
        name = self._add(node)
        self._in(name, "link", "set", "lo", "up")

    def plug(self, node: str, plug: str, segment: str, address: str) -> None:
        """Give a node an interface in a segment."""
        outer = f"p{len(self._plugs)}"
        self._plugs[node, plug] = outer
        name, lan = f"{self._prefix}{node}", f"{self._prefix}lan"
        self._in(name, "link", "add", plug, "type", "veth", "peer", "name", outer, "netns", lan)
        self._in(name, "address", "add", address, "dev", plug)
        self._in(name, "link", "set", plug, "up")
        self._in(name, "route", "replace", "224.0.0.0/4", "dev", plug)
        self._in(lan, "link", "set", outer, "master", segment)
        self._in(lan, "link", "set", outer, "up")

    def move(self, node: str, plug: str, segment: str) -> None:
        """Into another segment, as somebody who takes a cable from one socket to the next."""
        outer = self._plugs[node, plug]
        self._in(f"{self._prefix}lan", "link", "set", outer, "master", segment)

    def command(self, node: str) -> list[str]:
        """What runs a program there."""
        return ["ip", "netns", "exec", f"{self._prefix}{node}"]

    def _add(self, node: str) -> str:
        name = f"{self._prefix}{node}"
        ip("netns", "add", name)
        self._made.append(name)
        return name

    def _in(self, name: str, *words: object) -> None:
        ip("-n", name, *words)
