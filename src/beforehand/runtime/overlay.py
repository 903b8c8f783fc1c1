"""`beforehand.Overlay`: causal broadcast among known members, each of which can reach all others.

async with beforehand.Overlay("ring.toml", name="ann", store="ann.db", key="ring.key") as overlay:
    await overlay.broadcast(b"door 3 is open")
    async for message in overlay:
        ...

The core is a VCube: among n members a message takes at most ⌈log₂ n⌉ hops, and each origin has its
own spanning tree. The heartbeats of the links are the failure detector. Frames in transit when a
link breaks may be lost. The core gets link-down and link-up as inputs, and then both ends request
the messages that they lack.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Unpack

from beforehand.errors import InputError
from beforehand.protocols.codecs import VCUBE
from beforehand.protocols.contract.base import MessageId, NodeId
from beforehand.protocols.contract.proof import Proofs
from beforehand.protocols.vcube.frames import VCubeFrame
from beforehand.protocols.vcube.node import VCube
from beforehand.runtime.config import MemberConfig, MemberOptions
from beforehand.runtime.crypto.keys import GroupKey
from beforehand.runtime.crypto.trust import Trust
from beforehand.runtime.member import Parts, Pending
from beforehand.runtime.members_file import read_members
from beforehand.runtime.mesh_member import MeshMember
from beforehand.runtime.node_names import NamedCore
from beforehand.runtime.queues.held_frames import VCubeHeldFrames
from beforehand.runtime.storage.group_commit import GroupCommit
from beforehand.runtime.storage.store import DiskStore
from beforehand.runtime.transport.address import Address
from beforehand.runtime.transport.mesh import Mesh
from beforehand.units import parse_duration

PACKET_BYTES = 16 << 10
"""Messages share a frame up to this size; a longer message has a frame of its own."""
MEMBERS = "members"


class Overlay(MeshMember[VCubeFrame]):
    """One member of an overlay. See docs/sockets.md for its guarantees.

    Use it as an asynchronous context manager, and iterate over it to receive messages. Every member
    gets every message in causal order, if it is back within the time `keep`. Delivery is
    at-most-once, or at-least-once with `inbox=True`. While two members that are both up cannot
    reach each other, messages of one may not reach the other.
    """

    codec = VCUBE
    make_held_frames = VCubeHeldFrames

    def __init__(
        self,
        members: str | os.PathLike[str],
        *,
        keep: str = "1h",
        listen: str | None = None,
        **options: Unpack[MemberOptions],
    ) -> None:
        """Check the options without opening anything; raise `InputError` if one is not valid.

        - `members`: the path of the file that lists all members. Its order numbers them, so all
          members need the same file.
        - `keep`: how long messages are kept for members that are offline. A member that is offline
          for longer skips the messages that no member keeps, and counts them as `missed`.
        - `listen`: the address to listen on, instead of the one in the file.
        - `options`: see `MemberOptions`; `name` is a name of that file.
        """
        self._members = members_read = read_members(Path(members))
        config = MemberConfig(members_read.group, **options)
        self._number = members_read.number(config.name)
        own = members_read.addresses[self._number]
        super().__init__(
            config,
            listen=[own if listen is None else Address.parse(listen)],
            peers=[address for address in members_read.addresses if address != own],
            discover=False,
        )
        self._vcube: VCube | None = None
        self._keep_us = parse_duration(keep, positive=True, where="keep")

    @property
    def members(self) -> tuple[str, ...]:
        """The names of all members, online or not, in the order of the file."""
        return self._members.names

    async def broadcast(self, payload: bytes | bytearray | memoryview) -> MessageId:
        """Broadcast a payload, and return the message's id once the message is durable.

        - `payload`: at most 65,536 bytes.

        From then on the message is sent, if need be after a restart. Cancelling the call most
        likely does not withdraw it. Raise `LocalError` if the payload is not bytes or is too long,
        if the overlay is not open, or if other members have messages of this one that its store
        lacks.
        """
        return await self._broadcast(payload)

    @property
    def pending(self) -> tuple[Pending, ...]:
        """The messages that were received and wait for their causes, the longest waiting first."""
        self._opened()
        names = self._members.names
        waiting = [] if self._vcube is None else self._vcube.pending()
        return self._explained((names[int(origin)], seq) for origin, seq in waiting)

    def _join(
        self, key: GroupKey, disk: DiskStore, group_commit: GroupCommit
    ) -> Parts[VCubeFrame, Mesh]:
        known = disk.note(MEMBERS)
        if known is None:
            disk.keep(MEMBERS, self._members.mark.encode())
        elif known.decode() != self._members.mark:
            problem = "the store of an overlay with other members, or in another order"
            hint = "members are numbered by their file: for other members take new stores"
            raise InputError(problem, where=str(disk.path), hint=hint)
        return super()._join(key, disk, group_commit)

    def _on_started(self, parts: Parts[VCubeFrame, Mesh]) -> None:
        # The core assumes at first that all members are up. They are down until they have a link.
        for peer in self._members.names:
            if peer != self.name:
                parts.node.on_link(peer, False)

    def _all_members(self) -> Sequence[str]:
        return self._members.names

    def _core_maker(self, trust: Trust) -> Callable[[], NamedCore[VCubeFrame]]:
        names = self._members.names

        def check(origin: NodeId, data: bytes, proof: bytes) -> bool:
            assert isinstance(origin, int), "can't happen: the core refuses other origins"
            return trust.check(names[origin], data, proof)

        # Sign the list of members too: a member's number is meaningless to members with another
        # list.
        proofs = Proofs(f"{self.group} {self._members.mark}", trust.sign, check)

        def make_core() -> NamedCore[VCubeFrame]:
            core = self._vcube = VCube(
                self._number,
                len(names),
                keep_us=self._keep_us,
                mtu_bytes=PACKET_BYTES,
                durable=True,
                proofs=proofs,
            )
            return NamedCore(core, names)

        return make_core
