"""Measure how two peers that link up find out which messages one of them lacks.

Two cores of a group hold messages of ten origins; their frames go through the codec. *marks*: they
exchange version vectors, as groups do. *ids*: each announces all ids that it holds, as in the
paper.
"""

from __future__ import annotations

import json
import platform
import random
import time
from collections import deque

from beforehand.protocols.codecs import OPPORTUNISTIC
from beforehand.protocols.contract.base import Message, NodeId
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.epidemic.epidemic import Epidemic
from beforehand.protocols.epidemic.frames import Data, Frame
from beforehand.protocols.epidemic.options import Options
from beforehand.protocols.orders.barrier import Barrier

ORIGINS = 10
LACKING = 20
HELD = (100, 1_000, 10_000, 100_000)
OPTIONS = {
    "marks": Options(transfer="oldest", push=True, digest_after=8, frame_bytes_max=65_536),
    "ids": Options(transfer="oldest", push=True, frame_bytes_max=65_536),
}


def said(count: int) -> list[Message]:
    """Return messages of which each depends on the previous one of its origin."""
    names, seqs = [f"member-{n}" for n in range(ORIGINS)], range(1, count // ORIGINS + 1)
    pasts = {(name, seq): ((name, seq - 1),) if seq > 1 else () for seq in seqs for name in names}
    return [Message(id, past, bytes(200)) for id, past in pasts.items()]


def holding(node: str, messages: list[Message], options: Options) -> Epidemic:
    core, out = Epidemic(node, Barrier(node), random.Random(1), options), Outbox[Frame]()
    core.on_link(0, "carrier", True, out)
    core.on_message(0, "carrier", Data(tuple(messages)), out)
    core.on_link(0, "carrier", False, out)
    return core


def meet(count: int, lacking: int, options: Options) -> dict[str, float]:
    messages = said(count)
    cores = {
        "ann": holding("ann", messages, options),
        "bob": holding("bob", messages[: count - lacking], options),
    }
    frames: deque[tuple[NodeId, NodeId, bytes]] = deque()
    octets = ways = 0
    began = time.process_time()
    out = Outbox[Frame]()
    for node, peer in (("ann", "bob"), ("bob", "ann")):
        cores[node].on_link(0, peer, True, out)
        frames += _taken(node, out)
    while frames:
        ways += 1
        for _ in range(len(frames)):  # all frames in flight arrive
            source, target, data = frames.popleft()
            octets += len(data)
            cores[str(target)].on_message(0, source, OPPORTUNISTIC.decode(data), out)
            frames += _taken(target, out)
    assert len(cores["bob"].holds(0)) == count, "it has what it lacked"
    return {
        "bytes": octets,
        "ways": ways,
        "cpu_ms": round(1e3 * (time.process_time() - began), 1),
    }


def _taken(node: NodeId, out: Outbox[Frame]) -> list[tuple[NodeId, NodeId, bytes]]:
    taken = [(node, peer, OPPORTUNISTIC.encode(frame)) for peer, frame in out.sends if peer]
    out.clear()
    return taken


def main() -> None:
    for count in HELD:
        for lacking in (0, LACKING):
            found = {name: meet(count, lacking, options) for name, options in OPTIONS.items()}
            case = {"held": count, "origins": ORIGINS, "lacking": lacking}
            python = platform.python_version()
            print(json.dumps({"bench": "greeting", **case, **found, "python": python}), flush=True)


if __name__ == "__main__":
    main()
