"""One durable core of a VCube, driven by hand."""

from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.contract.tables import Store
from beforehand.protocols.vcube.frames import Answer, Packet, VCubeMessage
from beforehand.protocols.vcube.node import VCube

KEEP_US = 100


class Bench:
    """One durable core, its store, and the effects of its last step."""

    def __init__(self, node, nodes, **options):
        options = {"keep_us": KEEP_US, "durable": True, **options}
        self.make = lambda: VCube(node, nodes, **options)
        self.core, self.store, self.out = self.make(), Store(), Outbox()

    def step(self, name, now_us, *args):
        self.out.clear()
        result = getattr(self.core, name)(now_us, *args, self.out)
        self.store.save(self.out.saves)
        return result

    def broadcast(self, now_us=0, payload=b""):
        self.step("on_broadcast", now_us, payload)
        return self.out.deliveries[0]

    def hear(self, frame, source=1, now_us=0):
        self.step("on_message", now_us, source, frame)
        return self.frames()

    def answer(self, gone, source=1, now_us=0):
        """An answer of a peer that the core has asked."""
        self.core._state.awaited.add(source)
        return self.hear(Answer(gone), source, now_us)

    def receive(self, *messages, height=0, source=1, now_us=0):
        self.hear(Packet(height, messages), source, now_us)
        return self.sent()

    def link(self, peer, up, now_us=0):
        self.step("on_link", now_us, peer, up)
        return self.frames()

    def restart(self, now_us=0):
        self.core = self.make()
        self.step("restore", now_us, self.store.load(self.core.tables))

    def frames(self):
        """Return the sent frames other than packets."""
        return [(to, frame) for to, frame in self.out.sends if not isinstance(frame, Packet)]

    def sent(self):
        """Return height and ids of each packet by target."""
        found = {}
        for to, frame in self.out.sends:
            if isinstance(frame, Packet):
                item = (frame.height, *(message.id for message in frame.messages))
                found.setdefault(to, []).append(item)
        return found

    def delivered(self):
        return [message.id for message in self.out.deliveries]

    def lost(self):
        assert all(kind == "drop" for kind, _ in self.out.losses)
        return [id for _, id in self.out.losses]


def message(origin, seq, *past, payload=b""):
    return VCubeMessage((origin, seq), tuple(sorted(past)), payload)
