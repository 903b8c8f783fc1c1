"""A network in memory for groups: frames arrive in order, links come and go as the test says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from beforehand.runtime.crypto.keys import new_group
from beforehand.runtime.group import Group
from beforehand.runtime.transport.disconnects import LinkCounters
from tests.waiting import SECONDS_MAX


class MemoryMesh:
    """One member's end of the network: what `Mesh` is on sockets."""

    def __init__(self, net, name, *, limits, on_link, on_frame, on_room, **_):
        self.net, self.name, self.limits = net, name, limits
        self.on_link, self.on_frame, self.on_room = on_link, on_frame, on_room
        self.counters = LinkCounters()
        self.cuts = []
        self.paused = set()
        self.held = {}

    async def start(self):
        self.net.meshes[self.name] = self
        self.net.connect()

    async def close(self):
        self.net.isolate(self.name)
        self.net.meshes.pop(self.name, None)

    def send(self, peer, frames):
        for frame in frames:
            self.net.carry(self.name, peer, frame)

    def room(self, peer):
        return self.limits.queue_bytes_max - self.net.queued.get((self.name, peer), 0)

    def underway(self, peer):
        return self.net.underway.get((peer, self.name), 0)

    def pause(self, peer):
        self.paused.add(peer)

    def resume(self, peer):
        self.paused.discard(peer)
        while self.held.get(peer) and peer not in self.paused:
            self.on_frame(peer, self.held[peer].pop(0))

    def cut(self, peer, problem):
        self.cuts.append((peer, problem))
        self.net.disconnect(self.name, peer)

    def take(self, peer, frame):
        if peer in self.paused or self.held.get(peer):
            self.held.setdefault(peer, []).append(frame)
        else:
            self.on_frame(peer, frame)

    def peers(self):
        return [
            other for pair in self.net.links if self.name in pair for other in pair - {self.name}
        ]

    def addresses(self):
        return []


class Net:
    """The links between members, and the frames on them."""

    def __init__(self):
        self.meshes = {}
        self.links = set()
        self.apart = set()
        self.queued = {}
        self.underway = {}
        self.most_queued = 0
        self.is_slow = set()
        self.log = []

    def make_mesh(self, name, *_, **options):
        return MemoryMesh(self, name, **options)

    def connect(self):
        """Everybody with everybody, but for those who are kept apart."""
        for a in sorted(self.meshes):
            for b in sorted(self.meshes):
                pair = frozenset((a, b))
                if a < b and pair not in self.links and pair not in self.apart:
                    self.links.add(pair)
                    self.meshes[a].on_link(b, True)
                    self.meshes[b].on_link(a, True)

    def disconnect(self, a, b):
        pair = frozenset((a, b))
        if pair in self.links:
            self.links.discard(pair)
            for one, other in ((a, b), (b, a)):
                self.queued.pop((one, other), None)
                self.meshes[one].held.pop(other, None)
                self.meshes[one].on_link(other, False)

    def isolate(self, name):
        for other in list(self.meshes):
            if other != name:
                self.disconnect(name, other)

    def part(self, a, b):
        self.apart.add(frozenset((a, b)))
        self.disconnect(a, b)

    def heal(self):
        self.apart.clear()
        self.connect()

    def carry(self, source, target, frame):
        pair = frozenset((source, target))
        if pair in self.links:
            self.log.append((source, target, frame))
            place = (source, target)
            self.queued[place] = self.queued.get(place, 0) + len(frame)
            self.most_queued = max(self.most_queued, self.queued[place])
            if place not in self.is_slow:
                asyncio.get_running_loop().call_soon(self._arrive, source, target, frame)

    def _arrive(self, source, target, frame):
        place = (source, target)
        if frozenset(place) in self.links and place in self.queued:
            was = self.queued[place]
            self.queued[place] = was - len(frame)
            self.meshes[target].take(source, frame)
            half = self.meshes[source].limits.queue_bytes_max // 2 if source in self.meshes else 0
            if was > half >= self.queued.get(place, half + 1):
                self.meshes[source].on_room(target)


def member(net, folder, name, **options):
    """A group in memory, with a store and a key in `folder`."""
    key = folder / "harbour.key"
    if not key.exists():
        new_group("harbour").write(key)

    class MemoryGroup(Group):
        make_mesh = staticmethod(net.make_mesh)

    options = {"lifetime": "20m", "durable": "os", "store": folder / f"{name}.db", **options}
    return MemoryGroup("harbour", name=name, key=key, **options)


async def take(group, count):
    """The payloads of the next messages."""
    async with asyncio.timeout(SECONDS_MAX):
        return [(await anext(group)).payload for _ in range(count)]


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(SECONDS_MAX):
        while not condition():
            await asyncio.sleep(0.005)


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded():
        async with asyncio.timeout(2 * SECONDS_MAX):
            await test()

    asyncio.run(bounded(), debug=False)
