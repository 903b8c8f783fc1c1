"""A member on encrypted TCP links, each end with its own key: the base of `Group` and `Overlay`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from beforehand.errors import InputError
from beforehand.protocols.contract.base import Broadcaster, Counters, FrameT
from beforehand.protocols.contract.codec import Codec
from beforehand.runtime.config import MemberConfig
from beforehand.runtime.crypto.identity import BLOCKED, identity
from beforehand.runtime.crypto.key_ring import KeyRing
from beforehand.runtime.crypto.keys import GroupKey, read_public
from beforehand.runtime.crypto.trust import Trust, TrustCounters
from beforehand.runtime.member import Member, Parts
from beforehand.runtime.node import NodeCounters
from beforehand.runtime.queues.held_frames import HeldFrames
from beforehand.runtime.queues.inbox import Inbox
from beforehand.runtime.storage.group_commit import GroupCommit
from beforehand.runtime.storage.store import DiskStore
from beforehand.runtime.transport.address import Address
from beforehand.runtime.transport.disconnects import Disconnect, LinkCounters
from beforehand.runtime.transport.mesh import Mesh
from beforehand.runtime.transport.peer_info import PeerInfo
from beforehand.runtime.transport.rotation import SecretInfo


class MemberCounters(msgspec.Struct, frozen=True):
    """Counters of a member since its start."""

    messages: Counters
    links: LinkCounters
    trust: TrustCounters
    node: NodeCounters
    transactions: int
    """Committed transactions."""


class MeshMember(Member[FrameT, Mesh]):
    """A member whose network is a `Mesh`."""

    _make_mesh: Callable[..., Mesh] = Mesh
    """Creates the network; tests substitute another one."""
    codec: Codec[Any]
    make_held_frames: Callable[[], HeldFrames[Any]]

    def __init__(
        self,
        config: MemberConfig,
        *,
        listen: Sequence[Address],
        peers: Sequence[Address],
        discover: bool,
    ) -> None:
        super().__init__(config)
        self._listen, self._peers, self._discover = listen, peers, discover
        self._trust: Trust | None = None

    @abstractmethod
    def _core_maker(self, trust: Trust) -> Callable[[], Broadcaster[FrameT]]:
        """Return a function that creates the core, at the start and after a crash."""

    def _join(
        self, key: GroupKey, disk: DiskStore, group_commit: GroupCommit
    ) -> Parts[FrameT, Mesh]:
        member, trust = identity(self.name, disk, group_commit)
        self._trust = trust
        recorder = self._record(disk, group_commit)
        make_core = self._core_maker(trust)
        node = self._make_node(make_core, self.codec, self.make_held_frames, group_commit, recorder)

        def on_link(peer: str, is_up: bool) -> None:
            if is_up and recorder is not None:
                recorder.met(peer)
            node.on_link(peer, is_up)

        mesh = self._make_mesh(
            self.name,
            member,
            KeyRing(key, self._clock_us, self._config.key),
            trust,
            listen=self._listen,
            peers=self._peers,
            discover=self._discover,
            limits=self._config.limits,
            on_link=on_link,
            on_frame=node.on_frame,
            on_room=node.on_room,
        )
        reading = Inbox(inbox=self._config.inbox, on_open=node.open)
        return Parts(group_commit, node, mesh, reading, recorder)

    @property
    def peers(self) -> list[PeerInfo]:
        """The links that are up."""
        return self._opened().network.peers()

    @property
    def key(self) -> str:
        """This member's public key, in hexadecimal."""
        return self._trusted().own_public.hex()

    def key_of(self, name: str) -> str | None:
        """Return the public key that a name is bound to, in hexadecimal; None for a new name."""
        public = self._trusted().key_of(name)
        return None if public is None else public.hex()

    @property
    def blocked(self) -> list[str]:
        """The public keys of which this member accepts nothing, in hexadecimal, sorted."""
        return sorted(public.hex() for public in self._trusted().blocked)

    async def block(self, key: str) -> None:
        """Accept no link and no message of a public key any more, also after a restart.

        Messages of others that follow a message of this key, which this member has not delivered,
        wait for it until it expires. Other members decide for themselves; to remove a member from
        the group, rotate its secret.

        Return once that is durable. Raise `InputError` unless the key is 64 hexadecimal digits, and
        is not this member's own.
        """
        trust, public = self._trusted(), read_public(key)
        if public == trust.own_public:
            raise InputError("a member cannot block its own key")
        trust.blocked.add(public)
        parts = self._opened()
        parts.network.cut_blocked()
        parts.group_commit.save([(BLOCKED.name, public, self._clock_us())])
        await parts.group_commit.settled()

    async def unblock(self, key: str) -> None:
        """Accept links and messages of a public key again; return once that is durable."""
        trust, public = self._trusted(), read_public(key)
        trust.blocked.discard(public)
        parts = self._opened()
        parts.group_commit.save([(BLOCKED.name, public, None)])
        await parts.group_commit.settled()

    def _trusted(self) -> Trust:
        self._opened()
        assert self._trust is not None, "can't happen: it is made with the other parts"
        return self._trust

    @property
    def secrets(self) -> tuple[SecretInfo, ...]:
        """The group's secrets that this member knows, the newest first, and when they end."""
        return self._opened().network.rotation.show()

    @property
    def addresses(self) -> list[Address]:
        """The addresses on which this member listens."""
        return self._opened().network.addresses()

    @property
    def disconnects(self) -> list[Disconnect]:
        """The most recent connections that were refused or broke, newest last, with the reason."""
        return self._opened().network.disconnects()

    @property
    def counters(self) -> MemberCounters:
        """Counters since the start; also available after the end."""
        parts = self._parts or self._opened()
        assert self._trust is not None, "can't happen: it is made with the other parts"
        return MemberCounters(
            messages=parts.node.driver.core.counters,
            links=parts.network.counters,
            trust=self._trust.counters,
            node=parts.node.counters,
            transactions=parts.group_commit.transactions,
        )
