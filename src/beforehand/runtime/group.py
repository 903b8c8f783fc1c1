"""`beforehand.Group`: causal broadcast among those who hold a key, without a server.

async with beforehand.Group("harbour", name="ann", store="ann.db", key="harbour.key",
                            lifetime="20m") as group:
    await group.broadcast(b"fog at pier 4")
    async for message in group:
        ...
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence

from beforehand.errors import InputError
from beforehand.protocols.codecs import OPPORTUNISTIC
from beforehand.protocols.contract.base import MessageId
from beforehand.protocols.contract.proof import Proofs
from beforehand.protocols.epidemic.epidemic import Epidemic
from beforehand.protocols.epidemic.frames import Frame
from beforehand.protocols.epidemic.paced_epidemic import PacedEpidemic, group_core
from beforehand.protocols.epidemic.sizes import MESSAGE_BYTES_MAX, OBJECT_BYTES
from beforehand.protocols.orders.barrier import Barrier
from beforehand.protocols.orders.order import Lifetimes
from beforehand.runtime.crypto.trust import Trust
from beforehand.runtime.member import MakeRecorder, Parts, Pending
from beforehand.runtime.mesh_member import MeshMember
from beforehand.runtime.paced_node import PacedNode
from beforehand.runtime.queues.held_frames import HeldFrames
from beforehand.runtime.storage.store import Durability
from beforehand.runtime.transport.address import parse_all
from beforehand.runtime.transport.limits import Limits
from beforehand.runtime.transport.mesh import Mesh
from beforehand.units import format_duration, parse_duration

LONGEST_US = 30 * 86_400_000_000
"""Of all groups, so that members may choose lifetimes of their own."""
SKEW_US = 60_000_000
"""By which the clocks of two members may differ without delaying messages. Order does not depend on
it."""
CAPACITY = 200_000
CAPACITY_BYTES = 256 << 20


class Group(MeshMember[Frame]):
    """One member of a group. See docs/group.md for what it promises."""

    codec = OPPORTUNISTIC
    node_type = PacedNode
    make_held_frames = HeldFrames

    def __init__(
        self,
        group: str,
        *,
        name: str,
        store: str | os.PathLike[str],
        key: str | os.PathLike[str],
        lifetime: str,
        listen: str | Sequence[str] = ":0",
        peers: str | Sequence[str] = (),
        discover: bool = True,
        durable: Durability = "disk",
        inbox: bool = False,
        capacity: int = CAPACITY,
        capacity_bytes: int = CAPACITY_BYTES,
        limits: Limits | None = None,
        clock_us: Callable[[], int] | None = None,
        log: str | os.PathLike[str] | None = None,
        make_recorder: MakeRecorder | None = None,
    ) -> None:
        """name: of this member, for as long as its store lives. store: a file, made if there is
        none. key: the group's. lifetime: of messages, unless they say otherwise. listen, peers:
        `host:port`. discover: find neighbours by multicast DNS. durable, inbox, capacity: see
        docs/group.md. log: a folder, where it writes down what happens, for `beforehand verify`.
        make_recorder: of somebody else who is told every event."""
        least = MESSAGE_BYTES_MAX + OBJECT_BYTES
        if capacity < 1 or capacity_bytes < least:
            hint = f"hold one at least, which may take {least:,} bytes with its causes"
            raise InputError("no room for messages", hint=hint)
        super().__init__(
            group,
            name=name,
            store=store,
            key=key,
            listen=parse_all(listen),
            peers=parse_all(peers),
            discover=discover,
            durable=durable,
            inbox=inbox,
            limits=limits,
            clock_us=clock_us,
            log=log,
            make_recorder=make_recorder,
        )
        self._lifetimes = Lifetimes(read_lifetime(lifetime), LONGEST_US, SKEW_US)
        self._capacity, self._capacity_bytes = capacity, capacity_bytes

    def _core_maker(self, trust: Trust) -> Callable[[], PacedEpidemic]:
        proofs = Proofs(self.group, trust.sign, trust.check, trust.sign_all, trust.check_all)
        return lambda: group_core(
            self.name,
            self._lifetimes,
            random.Random(),
            capacity=self._capacity,
            capacity_bytes=self._capacity_bytes,
            proofs=proofs,
        )

    async def broadcast(
        self, payload: bytes | bytearray | memoryview, *, lifetime: str | None = None
    ) -> MessageId:
        """The id, when the message is on the disk: from then on it is said, whatever happens. Who
        is cancelled while waiting has most likely said it. InputError if the clock was so far
        ahead that nobody would take it, or if others have messages of ours that our store has
        not."""
        lifetime_us = self._lifetimes.default_us if lifetime is None else read_lifetime(lifetime)
        core = self._core()
        order = core.order
        assert isinstance(order, Barrier), "can't happen: that is what was made"
        if order.forgotten is not None and self._durable == "disk":
            raise self._older_store((self.name, order.forgotten))
        earliest_us = max(core.passed_us() + lifetime_us, core.order.last_seq() + 1)
        if earliest_us > self._lifetimes.latest_us(self._clock_us()):
            raise self._out_of_time(earliest_us - lifetime_us)
        return await self._broadcast(payload, lifetime_us)

    @property
    def clock_behind_us(self) -> int:
        """By how much the clock is behind what it was before. What was given up by then stays so:
        of others, only what lives longer than that is delivered until the clock has caught up."""
        return max(0, self._core().passed_us() - self._clock_us())

    def _on_started(self, parts: Parts[Frame, Mesh]) -> None:
        core = parts.node.driver.core
        assert isinstance(core, Epidemic), "can't happen: that is what was made"
        if core.passed_us() > self._lifetimes.latest_us(self._clock_us()):
            raise self._out_of_time(core.passed_us())

    def _out_of_time(self, before_us: int) -> InputError:
        """The clock was ahead by more than any message lives."""
        behind = format_duration(before_us - self._clock_us())
        problem = f"the clock is {behind} behind what it was: nobody would hear this member"
        hint = "set the clock; if it was wrong before, take another store and another name"
        return InputError(problem, where=str(self._store_path), hint=hint)

    def _older_store(self, message: MessageId) -> InputError:
        """With the durability `os` it may be a loss of power, and is as told."""
        problem = f"an older copy: others have message {message} of this member, and it has not"
        hint = "bring the newer store back, or take another store and another name"
        return InputError(problem, where=str(self._store_path), hint=hint)

    @property
    def pending(self) -> tuple[Pending, ...]:
        """What was received and waits, the longest waiting first."""
        return self._explained(self._core().order.pending())

    @property
    def held(self) -> int:
        """How many messages it holds for others."""
        return len(self._core().holds(self._clock_us()))

    def _core(self) -> Epidemic:
        core = self._opened().node.driver.core
        assert isinstance(core, Epidemic), "can't happen: that is what was made"
        return core


def read_lifetime(text: str) -> int:
    lifetime_us = parse_duration(text, positive=True, where="lifetime")
    if lifetime_us > LONGEST_US:
        raise InputError(f"too long a lifetime: `{text}`", hint="a message lives 30 days at most")
    return lifetime_us
