"""Cores of the opportunistic layer, wired together in memory."""

import random

from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.epidemic.epidemic import Epidemic
from beforehand.protocols.orders.unordered import Unordered


def make(node, options=None, order=None, **extra):
    return Epidemic(node, order or Unordered(node), random.Random(1), options, **extra)


class Net:
    """Perfect links between cores: frames in the order sent, one at a time."""

    def __init__(self, *cores):
        self.cores = {core.node: core for core in cores}
        self.now_us = 0
        self.frames = []
        self.history = []
        self.delivered = []

    def give(self, node, name, *args):
        out = Outbox()
        getattr(self.cores[node], name)(self.now_us, *args, out)
        self.frames += [(node, peer, frame) for peer, frame in out.sends]
        self.delivered += [(node, message.id) for message in out.deliveries]
        return out

    def link(self, a, b, *, up=True):
        if not up:
            self.frames = [f for f in self.frames if {f[0], f[1]} != {a, b}]
        self.give(a, "on_link", b, up)
        self.give(b, "on_link", a, up)

    def settle(self):
        while self.frames:
            source, target, frame = self.frames.pop(0)
            self.history.append((source, target, frame))
            self.give(target, "on_message", source, frame)

    def sent(self, kind):
        return [frame for _, _, frame in self.history if type(frame) is kind]
