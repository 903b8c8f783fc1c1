"""`beforehand.Overlay`: causal broadcast among known members, each reachable by each.

async with beforehand.Overlay("ring.toml", name="ann", store="ann.db", key="ring.key") as overlay:
    await overlay.broadcast(b"door 3 is open")
    async for message in overlay:
        ...

The core is a VCube: a message takes as many hops as there are digits in the number of members, and
each origin has its own tree. The heartbeats of the links are its failure detector. What was under
way when a link broke may be lost; the core hears of the link going down and coming up, and both
ends ask each other for what they lack.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from beforehand.errors import InputError
from beforehand.protocols.codecs import VCUBE
from beforehand.protocols.contract.base import MessageId, NodeId
from beforehand.protocols.contract.proof import Proofs
from beforehand.protocols.vcube.frames import CubeFrame
from beforehand.protocols.vcube.node import VCube
from beforehand.runtime.crypto.keys import GroupKey
from beforehand.runtime.crypto.trust import Trust
from beforehand.runtime.member import MakeRecorder, Parts, Pending
from beforehand.runtime.members_file import read_members
from beforehand.runtime.mesh_member import MeshMember
from beforehand.runtime.node_names import NamedCore
from beforehand.runtime.queues.held_frames import VCubeHeldFrames
from beforehand.runtime.storage.group_commit import GroupCommit
from beforehand.runtime.storage.store import DiskStore, Durability
from beforehand.runtime.transport.address import Address
from beforehand.runtime.transport.limits import Limits
from beforehand.runtime.transport.mesh import Mesh
from beforehand.units import parse_duration

PACKET_BYTES = 16 << 10
"""Messages share a frame up to this; a longer one has one of its own."""
MEMBERS = "members"


class Overlay(MeshMember[CubeFrame]):
    """One member of an overlay. See docs/sockets.md for what it promises."""

    codec = VCUBE
    make_held_frames = VCubeHeldFrames

    def __init__(
        self,
        members: str | os.PathLike[str],
        *,
        name: str,
        store: str | os.PathLike[str],
        key: str | os.PathLike[str],
        keep: str = "1h",
        listen: str | None = None,
        durable: Durability = "disk",
        inbox: bool = False,
        limits: Limits | None = None,
        clock_us: Callable[[], int] | None = None,
        log: str | os.PathLike[str] | None = None,
        make_recorder: MakeRecorder | None = None,
    ) -> None:
        """members: the file that names them all. name: which of them this is. store: a file, made
        if there is none. key: the group's. keep: how long a message is kept for those who are away;
        who is away for longer misses it. listen: instead of the address in the file. The rest is as
        for a group."""
        self._members = members_read = read_members(Path(members))
        self._number = members_read.number(name)
        own = members_read.addresses[self._number]
        super().__init__(
            members_read.group,
            name=name,
            store=store,
            key=key,
            listen=[own if listen is None else Address.parse(listen)],
            peers=[address for address in members_read.addresses if address != own],
            discover=False,
            durable=durable,
            inbox=inbox,
            limits=limits,
            clock_us=clock_us,
            log=log,
            make_recorder=make_recorder,
        )
        self._cube: VCube | None = None
        self._keep_us = parse_duration(keep, positive=True, where="keep")

    @property
    def members(self) -> tuple[str, ...]:
        """Everybody, there or not."""
        return self._members.names

    async def broadcast(self, payload: bytes | bytearray | memoryview) -> MessageId:
        """The id, when the message is on the disk: from then on it is said, whatever happens."""
        return await self._broadcast(payload)

    @property
    def pending(self) -> tuple[Pending, ...]:
        """What was received and waits, the longest waiting first."""
        self._opened()
        names = self._members.names
        waiting = [] if self._cube is None else self._cube.pending()
        return self._explained((names[int(origin)], seq) for origin, seq in waiting)

    def _join(
        self, key: GroupKey, disk: DiskStore, group_commit: GroupCommit
    ) -> Parts[CubeFrame, Mesh]:
        known = disk.note(MEMBERS)
        if known is None:
            disk.keep(MEMBERS, self._members.mark.encode())
        elif known.decode() != self._members.mark:
            problem = "the store of an overlay with other members, or in another order"
            hint = "members are numbered by their file: for other members take new stores"
            raise InputError(problem, where=str(disk.path), hint=hint)
        return super()._join(key, disk, group_commit)

    def _on_started(self, parts: Parts[CubeFrame, Mesh]) -> None:
        # A core takes everybody for up. Until there is a link, nobody is.
        for peer in self._members.names:
            if peer != self.name:
                parts.node.on_link(peer, False)

    def _all_members(self) -> Sequence[str]:
        return self._members.names

    def _core_maker(self, trust: Trust) -> Callable[[], NamedCore[CubeFrame]]:
        names = self._members.names

        def check(origin: NodeId, data: bytes, proof: bytes) -> bool:
            assert isinstance(origin, int), "can't happen: the core refuses other origins"
            return trust.check(names[origin], data, proof)

        # Numbers mean nothing among those who have another list.
        proofs = Proofs(f"{self.group} {self._members.mark}", trust.sign, check)

        def make_core() -> NamedCore[CubeFrame]:
            core = self._cube = VCube(
                self._number,
                len(names),
                keep_us=self._keep_us,
                mtu_bytes=PACKET_BYTES,
                durable=True,
                proofs=proofs,
            )
            return NamedCore(core, names)

        return make_core
