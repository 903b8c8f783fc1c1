"""`beforehand.Group`: causal broadcast among all holders of a key, without a server.

async with beforehand.Group("harbour", name="ann", store="ann.db", key="harbour.key",
                            lifetime="20m") as group:
    await group.broadcast(b"fog at pier 4")
    async for message in group:
        ...
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Unpack

from beforehand.errors import InputError
from beforehand.protocols.codecs import OPPORTUNISTIC
from beforehand.protocols.contract.base import MessageId
from beforehand.protocols.contract.proof import Proofs
from beforehand.protocols.epidemic.epidemic import MESSAGES, Epidemic
from beforehand.protocols.epidemic.frames import Frame
from beforehand.protocols.epidemic.paced_epidemic import PacedEpidemic, group_core
from beforehand.protocols.epidemic.sizes import MESSAGE_BYTES_MAX, OBJECT_BYTES
from beforehand.protocols.orders.barrier import Barrier
from beforehand.protocols.orders.order import Lifetimes
from beforehand.runtime.config import Lifetime, MemberConfig, MemberOptions
from beforehand.runtime.crypto.trust import Trust
from beforehand.runtime.member import Parts, Pending
from beforehand.runtime.mesh_member import MeshMember
from beforehand.runtime.paced_node import PacedNode
from beforehand.runtime.queues.held_frames import HeldFrames
from beforehand.runtime.transport.address import parse_all
from beforehand.runtime.transport.mesh import Mesh
from beforehand.units import format_duration, parse_duration

LONGEST_US = 30 * 86_400_000_000
"""The longest lifetime, equal in all groups, so that members may choose different lifetimes."""
SKEW_US = 60_000_000
"""Clock skew between two members up to which messages are not delayed. Causal order does not depend
on clocks."""
CAPACITY = 200_000
"""Default limit of stored messages."""
CAPACITY_BYTES = 256 << 20
"""Default limit of the bytes that stored messages take."""


class Group(MeshMember[Frame]):
    """One member of a group. See docs/group.md for its guarantees.

    Use it as an asynchronous context manager, and iterate over it to receive the messages of other
    members; its own messages are not handed over. Messages are delivered in causal order: a message
    waits for its causes until they arrive or their lifetimes end. Members store messages until
    their lifetimes end and forward them. So origin and receiver need not be online at the same time
    if a third member carries the message. Delivery is at-most-once, or at-least-once with
    `inbox=True`. Every message is signed by its origin.

    Arguments:

    - `group`: the name of the group, as in its key file.
    - `lifetime`, `listen`, `peers`, `discover`, `capacity`, `capacity_bytes`: see `GroupOptions`.
    - `options`: see `MemberOptions`; `name`, `store` and `key` are required.
    """

    codec = OPPORTUNISTIC
    node_type = PacedNode
    batched = MESSAGES
    make_held_frames = HeldFrames

    def __init__(
        self,
        group: str,
        *,
        lifetime: Lifetime,
        listen: str | Sequence[str] = ":0",
        peers: str | Sequence[str] = (),
        discover: bool = True,
        capacity: int = CAPACITY,
        capacity_bytes: int = CAPACITY_BYTES,
        **options: Unpack[MemberOptions],
    ) -> None:
        """Check the options without opening anything; raise `InputError` if one is not valid."""
        least = MESSAGE_BYTES_MAX + OBJECT_BYTES
        if capacity < 1 or capacity_bytes < least:
            hint = f"raise the limits: one message with its causes may take {least:,} bytes"
            raise InputError("no room for messages", hint=hint)
        super().__init__(
            MemberConfig(group, **options),
            listen=parse_all(listen),
            peers=parse_all(peers),
            discover=discover,
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
        self, payload: bytes | bytearray | memoryview, *, lifetime: Lifetime | None = None
    ) -> MessageId:
        """Broadcast a payload, and return the message's id once the message is durable.

        From then on the message is sent to all reachable members, if need be after a restart.
        Cancelling the call most likely does not withdraw it.

        - `payload`: at most 65,536 bytes.
        - `lifetime`: such as `5m`, a timedelta or seconds; by default that of the group object.

        Raise `LocalError` if the payload is not bytes or is too long, or if the group is not open.
        Raise `InputError` if the lifetime is not valid, if the clock is so far behind its earlier
        time that no member would accept the message, or if other members have messages of this one
        that its store lacks (not with durability `os`). Raise the failure if the disk has failed.
        """
        lifetime_us = self._lifetimes.default_us if lifetime is None else read_lifetime(lifetime)
        core = self._core()
        order = core.order
        assert isinstance(order, Barrier), "can't happen: that is what was made"
        if order.forgotten is not None and self._config.durable == "disk":
            raise self._older_store((self.name, order.forgotten))
        earliest_us = max(core.horizon_us() + lifetime_us, core.order.last_seq() + 1)
        # Peers accept stamps of up to two skews ahead (`Order.screen`). A cause with the latest
        # deadline that its stamp allows moves the stamps of its effects ahead by up to one.
        if earliest_us > self._lifetimes.latest_us(self._clock_us() + 2 * SKEW_US):
            raise self._out_of_time(earliest_us - lifetime_us)
        return await self._broadcast(payload, lifetime_us)

    @property
    def clock_behind_us(self) -> int:
        """By how many microseconds the clock is behind the latest time that it has shown.

        Messages that expired by then stay expired. Until the clock has caught up, messages of other
        members are delivered only if their deadlines are later than that time.
        """
        return max(0, self._core().horizon_us() - self._clock_us())

    def _on_started(self, parts: Parts[Frame, Mesh]) -> None:
        core = parts.node.driver.core
        assert isinstance(core, Epidemic), "can't happen: that is what was made"
        if core.horizon_us() > self._lifetimes.latest_us(self._clock_us()):
            raise self._out_of_time(core.horizon_us())

    def _out_of_time(self, before_us: int) -> InputError:
        """Return the error for a clock that was ahead by more than any message lives."""
        behind = format_duration(before_us - self._clock_us())
        problem = f"the clock was set back by {behind}: peers would refuse messages of this member"
        hint = "set the clock; if it was wrong before, take another store and another name"
        return InputError(problem, where=str(self._config.store), hint=hint)

    def _older_store(self, message: MessageId) -> InputError:
        """Return the error for a store that is an older copy.

        With durability `os` a power loss looks the same and is permitted, so the caller does not
        raise it.
        """
        problem = f"an older copy: others have message {message} of this member, and it has not"
        hint = "bring the newer store back, or take another store and another name"
        return InputError(problem, where=str(self._config.store), hint=hint)

    @property
    def pending(self) -> tuple[Pending, ...]:
        """The messages that were received and wait for delivery, the longest waiting first."""
        return self._explained(self._core().order.pending())

    @property
    def held(self) -> int:
        """The number of messages that this member stores for others."""
        return len(self._core().holds(self._clock_us()))

    def _core(self) -> Epidemic:
        core = self._opened().node.driver.core
        assert isinstance(core, Epidemic), "can't happen: that is what was made"
        return core


def read_lifetime(lifetime: Lifetime) -> int:
    """Return a lifetime in microseconds; raise `InputError` if it is not valid."""
    lifetime_us = _microseconds(lifetime)
    if lifetime_us > LONGEST_US:
        hint = "a message lives 30 days at most"
        raise InputError(f"too long a lifetime: `{lifetime}`", hint=hint)
    return lifetime_us


def _microseconds(lifetime: Lifetime) -> int:
    if isinstance(lifetime, str):
        return parse_duration(lifetime, positive=True, where="lifetime")
    if isinstance(lifetime, timedelta):
        lifetime = lifetime.total_seconds()
    is_number = isinstance(lifetime, int | float) and not isinstance(lifetime, bool)
    if not is_number or not 1e-6 <= lifetime < math.inf:
        hint = "write `20m`, or give a timedelta or seconds above 0"
        raise InputError(f"not a lifetime: `{lifetime!r}`", where="lifetime", hint=hint)
    return round(lifetime * 10**6)
