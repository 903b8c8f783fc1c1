"""Nodes that are down longer than the retention time, partitions, crashes in the middle of a step.

One seed draws a network and its faults. The oracle judges every delivery. After all faults are
healed, every node has delivered, or counted as missed, every message that some node delivered.
"""

import heapq
import random

import pytest

from beforehand.check.rules.oracle import Oracle
from beforehand.errors import LocalError
from beforehand.protocols.contract.driver import BroadcasterDriver
from beforehand.protocols.contract.tables import Store
from beforehand.protocols.vcube.node import VCube

KEEP_US = 100_000
TROUBLES_US = 2_000_000
END_US = 6 * TROUBLES_US
SEEDS = 300


class Net:
    """Reliable links that lose the frames in transit when they break, and a late failure detector
    that reports every break to both ends."""

    def __init__(self, seed, make_core=VCube):
        self.rng = rng = random.Random(seed)
        self.nodes = rng.choice((2, 3, 4, 5, 7, 8))
        self.is_fifo = rng.random() < 0.5
        self.delay_us = rng.choice((1_000, 10_000))
        self.notice_us = rng.choice((KEEP_US // 4, KEEP_US // 4, 3 * KEEP_US))
        options = {
            "aggregates": rng.random() < 0.8,
            "root": rng.choice((None, None, 0)),
            "keep_us": KEEP_US,
            "mtu_bytes": rng.choice((60, 1500)),
            "durable": True,
        }
        self.now_us, self.ticket, self.agenda = 0, 0, []
        self.oracle, self.losses, self.steps = Oracle(), [], 0
        self.side = [0] * self.nodes
        self.breaks = {}  # pair -> how often it broke
        self.told_us = {}  # (node, peer) -> the last word of the detector: words keep their order
        self.sent_us = {}
        self.skew_us = [0] * self.nodes
        self.make_driver = lambda node: BroadcasterDriver(
            lambda: make_core(node, self.nodes, **options), self, store=Store()
        )
        self.drivers = [self.make_driver(node) for node in range(self.nodes)]
        self.lives = [1] * self.nodes
        self.forgetful = None
        self._draw_troubles()

    def _draw_troubles(self):
        rng = self.rng
        for _ in range(rng.randint(5, 60)):
            self.at(rng.randrange(TROUBLES_US), self._speak, rng.randrange(self.nodes))
        for _ in range(rng.randint(0, 3)):
            start_us = rng.randrange(TROUBLES_US)
            sides = [rng.randrange(2) for _ in range(self.nodes)]
            self.at(start_us, self._part, sides)
            self.at(start_us + rng.randrange(10 * KEEP_US), self._part, [0] * self.nodes)
        for _ in range(rng.randint(0, 4)):
            self.at(rng.randrange(TROUBLES_US), self._light, rng.randrange(self.nodes))
        for _ in range(rng.randint(0, 2)):
            self.at(rng.randrange(TROUBLES_US), self._set_back, rng.randrange(self.nodes))
        self.at(2 * TROUBLES_US, self._end_troubles)
        if self.notice_us > KEEP_US:
            # Longer than messages are kept: nobody is there who could know of what got lost, until
            # something comes that depends on it.
            for node in range(self.nodes):
                self.at(3 * TROUBLES_US, self._speak, node)

    def at(self, t_us, act, *args):
        self.ticket += 1
        heapq.heappush(self.agenda, (t_us, self.ticket, act, args))

    def run(self):
        while self.agenda and self.agenda[0][0] < END_US:
            self.now_us, _, act, args = heapq.heappop(self.agenda)
            act(*args)
        return self

    def clock(self, node):
        return 10**9 + self.now_us - self.skew_us[node]

    def reaches(self, a, b):
        up = self.drivers[a].is_up and self.drivers[b].is_up
        return up and self.side[a] == self.side[b]

    # ---- what happens ---------------------------------------------------------------------------

    def _speak(self, node):
        if self.drivers[node].is_up and node != self.forgetful:
            self._step(node, "on_broadcast", b"")

    def _light(self, node):
        """The node crashes in the middle of its next step."""
        if self.drivers[node].is_up:
            self.drivers[node].crash_after = self.rng.randrange(6)

    def _end_troubles(self):
        for driver in self.drivers:
            driver.crash_after = None
        self._part([0] * self.nodes)

    def _set_back(self, node):
        self.skew_us[node] += self.rng.choice((1_000, 10 * KEEP_US, 10**8))

    def _step(self, node, name, *args):
        driver = self.drivers[node]
        getattr(driver, name)(self.clock(node), *args)
        self.steps += 1
        if not driver.is_up:
            self._hear_breaks([(node, peer) for peer in range(self.nodes) if peer != node])
            self.at(self.now_us + self.rng.randrange(8 * KEEP_US), self._restart, node)

    def _restart(self, node):
        self.lives[node] += 1
        if node == self.forgetful:
            self.drivers[node] = self.make_driver(node)
        else:
            self.drivers[node].restart(self.clock(node))
        for peer in range(self.nodes):
            if peer != node:
                if self.reaches(node, peer):
                    self._tell(peer, node, True)
                self._tell(node, peer, self.reaches(node, peer))

    def _part(self, sides):
        pairs = [(a, b) for a in range(self.nodes) for b in range(a)]
        before = {pair: self.reaches(*pair) for pair in pairs}
        self.side = sides
        self._hear_breaks([pair for pair in pairs if before[pair] and not self.reaches(*pair)])
        for a, b in pairs:
            if self.reaches(a, b) and not before[a, b]:
                self._tell(a, b, True)
                self._tell(b, a, True)

    def _hear_breaks(self, pairs):
        for a, b in pairs:
            key = min(a, b), max(a, b)
            self.breaks[key] = self.breaks.get(key, 0) + 1
            self._tell(a, b, False)
            self._tell(b, a, False)

    def _tell(self, node, peer, is_up):
        due_us = self.now_us + self.rng.randrange(self.notice_us)
        due_us = max(due_us, self.told_us.get((node, peer), 0))
        self.told_us[node, peer] = due_us
        self.at(due_us, self._hear, node, self.lives[node], peer, is_up)

    def _hear(self, node, life, peer, is_up):
        if self.drivers[node].is_up and self.lives[node] == life:
            self._step(node, "on_link", peer, is_up)

    def _arrive(self, source, target, breaks, frame):
        key = min(source, target), max(source, target)
        if self.reaches(source, target) and self.breaks.get(key, 0) == breaks:
            self._step(target, "on_message", source, frame)

    def _wake(self, node, life, timer, due_us, ticket):
        driver = self.drivers[node]
        if self.lives[node] != life or not driver.is_awaited(timer, ticket):
            return
        if self.clock(node) < due_us:  # it was set back meanwhile
            late_us = due_us - self.clock(node)
            self.at(self.now_us + late_us, self._wake, node, life, timer, due_us, ticket)
        else:
            self._step(node, "on_timer", timer, ticket)

    # ---- the port of the drivers ----------------------------------------------------------------

    def send(self, node, sends):
        for target, frame in sends:
            key = min(node, target), max(node, target)
            due_us = self.now_us + self.rng.randrange(self.delay_us)
            if self.is_fifo:
                due_us = self.sent_us[node, target] = max(
                    due_us, self.sent_us.get((node, target), 0)
                )
            self.at(due_us, self._arrive, node, target, self.breaks.get(key, 0), frame)

    def deliver(self, node, messages):
        # A node that lost its state counts as another node.
        name = f"{node}, life {self.lives[node]}" if node == self.forgetful else node
        for message in messages:
            self.oracle.see(name, "deliver", message.id)

    def wake(self, node, timer, due_us, ticket):
        at_us = self.now_us + due_us - self.clock(node)
        self.at(at_us, self._wake, node, self.lives[node], timer, due_us, ticket)

    def broadcasted(self, node, message, deliveries):
        self.oracle.see(node, "broadcast", message)

    def received(self, node, messages):
        pass

    def lost(self, node, losses):
        self.losses += [(node, id) for _, id in losses]

    # ---- the verdict ----------------------------------------------------------------------------

    def problems(self):
        found = [str(violation) for violation in self.oracle.violations]
        by_name = self.oracle.delivered.items()
        everything = {id for name, ids in by_name if name != self.forgetful for id in ids}
        for node, driver in enumerate(self.drivers):
            assert driver.is_up
            fates = {id: driver.core.explain(id) for id in sorted(everything)}
            found += [
                f"node {node}: {id} is {fate}"
                for id, fate in fates.items()
                if fate.state not in ("delivered", "missed")
            ]
            found += [
                f"node {node} says that it missed {id}, and delivered it"
                for id in self.oracle.delivered.get(node, ())
                if node != self.forgetful and fates[id].state == "missed"
            ]
        return found


def play(seed, make_core=VCube):
    return Net(seed, make_core).run()


@pytest.mark.parametrize("first", range(0, SEEDS, 50))
def test_a_returning_node_continues(first):
    for seed in range(first, first + 50):
        assert play(seed).problems() == [], f"seed {seed}"


@pytest.mark.parametrize("first", range(0, 100, 50))
def test_a_node_without_state_disturbs_no_peer_and_is_reported(first):
    told = 0
    for seed in range(first, first + 50):
        net = Net(seed)
        net.at(TROUBLES_US // 2, setattr, net, "forgetful", 0)
        net.at(TROUBLES_US // 2, net._light, 0)
        for _ in range(5):
            net.at(TROUBLES_US, net._speak, net.nodes - 1)
        assert net.run().problems() == [], f"seed {seed}"
        known = any(driver.core.explain((0, 1)).state == "delivered" for driver in net.drivers[1:])
        if net.lives[0] > 1 and known:
            with pytest.raises(LocalError, match="does not remember"):
                net.drivers[0].on_broadcast(net.clock(0), b"")
            told += 1
    assert told > 20
