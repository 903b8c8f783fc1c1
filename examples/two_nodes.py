"""Two nodes on one wire in memory: all that a program must give a core.

A driver carries out what a core asks for through its `Port`. Here a port is a list of frames for
the other node; with sockets it writes to a connection and asks the loop to be woken.
"""

import random

from beforehand import Barrier, BroadcasterDriver, Epidemic


class Desk:
    """The port of both nodes: a wire, a screen, and no timers to speak of."""

    def __init__(self) -> None:
        self.wire = []
        self.screen = []

    def send(self, node, sends):
        self.wire += [(node, peer, frame) for peer, frame in sends]

    def deliver(self, node, messages):
        self.screen += [(node, message.payload.decode()) for message in messages]

    def wake(self, node, timer, due_us, ticket): ...
    def broadcasted(self, node, message, deliveries): ...
    def received(self, node, messages): ...
    def lost(self, node, losses): ...


def main() -> list[tuple[str, str]]:
    desk = Desk()
    nodes: dict[str, BroadcasterDriver] = {}
    for name in ("ann", "bob"):
        core = Epidemic(name, Barrier(name), random.Random(1))
        nodes[name] = BroadcasterDriver(lambda core=core: core, desk)
    nodes["ann"].on_link(0, "bob", True)
    nodes["bob"].on_link(0, "ann", True)
    for now_us, name, words in ((1_000, "ann", b"who is there?"), (3_000, "bob", b"bob")):
        nodes[name].on_broadcast(now_us, words)
        while desk.wire:
            source, target, frame = desk.wire.pop(0)
            nodes[target].on_message(now_us + 1_000, source, frame)
    return desk.screen


if __name__ == "__main__":
    for name, text in main():
        print(f"{name} sees: {text}")
