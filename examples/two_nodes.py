"""Two nodes on an in-memory link: all that an application must provide to run a core.

A driver executes the effects of a core through its `Port`. Here a port is a list of frames for the
other node. With sockets it writes to a connection and schedules timers on the event loop.
"""

import random

from beforehand.protocols import Barrier, BroadcasterDriver, Epidemic


class Desk:
    """The port of both nodes: an in-memory link, a list of deliveries, and no timers."""

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
