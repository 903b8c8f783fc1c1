"""VCube: many trees, with nodes that crash, restart, are absent, or are falsely suspected."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from beforehand.check.net.case import Case, Family, held_for_no_reason, never_delivered
from beforehand.check.net.net import Net
from beforehand.errors import LocalError
from beforehand.protocols.contract.base import NodeId
from beforehand.protocols.contract.needs import LinkKind
from beforehand.protocols.contract.proof import Proofs
from beforehand.protocols.vcube.frames import Packet
from beforehand.protocols.vcube.node import VCube

FOREVER_US = 1 << 60
BRIEF_US = 2_000_000
BEFORE_1970_US = 10**15


@dataclass(frozen=True)
class Setup:
    """How the nodes of a group are made."""

    aggregates: bool = True
    root: int | None = None
    keep_us: int = 0
    mtu_bytes: int = 1500
    signs: int | None = None
    """None: messages are not signed. 0: every message is signed. N > 0: every message is signed,
    and every Nth call of a signer fails."""


class Signer:
    """Signs for one node. It counts its calls and is pickled with the core, so a run replays."""

    def __init__(self, node: int, fails_every: int) -> None:
        self._node, self._fails_every, self._calls = node, fails_every, 0

    def __call__(self, data: bytes) -> bytes:
        self._calls += 1
        if self._fails_every and self._calls % self._fails_every == 0:
            raise LocalError("the signer fails")
        return _signature(self._node, data)


def _signature(node: NodeId, data: bytes) -> bytes:
    return zlib.crc32(f"{node} ".encode() + data).to_bytes(4, "big")


def _is_signature(origin: NodeId, data: bytes, proof: bytes) -> bool:
    return _signature(origin, data) == proof


class VCubeFamily(Family):
    """A message that some live node holds reaches every node. Once no node keeps it, the others
    skip it and report it as missed."""

    name = "vcube"
    kind: LinkKind = "detector"
    sights = (
        *("crashed", "cut off", "restarted", "suspected", "handed over again", "set back"),
        *("waited", "held back", "aggregated", "missed", "refused to broadcast: the signer fails"),
    )

    def draw(self, rng: random.Random) -> Case:
        nodes = rng.choice((2, 3, 4, 4, 5, 6, 8, 8, 13))
        is_calm = rng.random() < 0.2
        keep_us = 0 if is_calm else rng.choice((FOREVER_US, BRIEF_US))
        absent = rng.sample(range(nodes), rng.randrange(nodes - 1)) if rng.random() < 0.2 else []
        return Case(
            nodes,
            broadcasts=tuple(rng.choice((0, 1, 2, 4)) for _ in range(nodes)),
            options=Setup(
                aggregates=rng.random() < 0.8,
                root=rng.choice((None, None, 0)),
                keep_us=keep_us,
                mtu_bytes=rng.choice((30, 60, 1500)),
                signs=rng.choice((None, None, 0, 2, 3)),
            ),
            absent=() if is_calm else tuple(absent),
            crashes=0 if is_calm else rng.choice((0, 1, 2, nodes)),
            suspicions=0 if is_calm else rng.choice((0, 1, 3)),
            # A clock that is set forward ends short retention times at once: the skew is far beyond
            # BRIEF_US.
            settings=rng.choice((0, 8, 8) if keep_us == BRIEF_US else (0, 0, 3)),
            skew_us=60_000_000,
            ahead_us=(-BEFORE_1970_US,) * nodes if rng.random() < 0.1 else (),
            # The retention time must cover a dissemination, and the detection of failures during
            # it.
            delay_us_max=BRIEF_US // 50 if keep_us == BRIEF_US else None,
            inbox=not is_calm and rng.random() < 0.3,
        )

    def make_core(self, case: Case, node: int, make: type[VCube] = VCube) -> VCube:
        """make: another class, such as a broken one."""
        setup = case.options
        proofs = None
        if setup.signs is not None:
            proofs = Proofs("group", Signer(node, setup.signs), _is_signature)
        return make(
            node,
            case.nodes,
            aggregates=setup.aggregates,
            root=setup.root,
            keep_us=setup.keep_us,
            mtu_bytes=setup.mtu_bytes,
            durable=case.is_mortal,
            proofs=proofs,
        )

    def sent(self, net: Net, target: int, frame: Any) -> None:
        if isinstance(frame, Packet):
            net.carried.update((message.id, target) for message in frame.messages)
            if len(frame.messages) > 1:
                net.sights.add("aggregated")

    def forget_counts(self, core: Any) -> None:
        core.duplicates = core.refused = 0

    def look(self, net: Net, node: int) -> Iterator[str]:
        if net.drivers[node].core.gauges(net.local_us(node))["postponed"]:
            yield "held back"

    def problems(self, net: Net) -> Iterator[str]:
        refused = sum(driver.core.counters.refused for driver in net.drivers)
        if refused:
            yield f"{refused} frames were refused although all nodes are sound"
        yield from held_for_no_reason(net)
        if net.case.options.keep_us == BRIEF_US:
            yield from _silently_missing(net)
        else:
            yield from never_delivered(net, net.oracle.pasts)
        if net.case.is_calm:
            yield from _sent_too_often(net)


def _silently_missing(net: Net) -> Iterator[str]:
    """Yield the messages that a node neither delivered nor reports as missed.

    No node keeps a message for ever, but a node that skips one must know it."""
    for node, driver in enumerate(net.drivers):
        excused = {message.id for message in driver.cut_off}
        for id in set(net.oracle.pasts) - set(net.oracle.delivered[node]) - excused:
            status = driver.core.explain(id)
            if status.state == "missed":
                net.sights.add("missed")
            else:
                yield f"node {node} neither delivered nor missed {id}: {status}"


def _sent_too_often(net: Net) -> Iterator[str]:
    """Yield the messages that were sent too often or too rarely to a node, in a run without
    failures.

    Each message goes to each node once. In the single tree it goes to the root first, and also back
    to its origin."""
    root = net.case.options.root
    for origin, seq in net.oracle.pasts:
        for target in range(net.case.nodes):
            expected = int(target != origin)
            if root is not None and origin != root:
                expected = 1  # it goes to the root first, and comes back to its origin
            count = net.carried[(origin, seq), target]
            if count != expected:
                yield f"message {(origin, seq)} was sent {count} times to node {target}"
