"""The links of one node: it keeps them up, and sends and receives frames.

There is one link between two nodes. Two connections arise if both dial each other, or if one end
has lost the first connection and the other has not noticed. Then the node with the smaller name
decides, and sends KEEP on the connection that stays. That is the new one, unless the old one still
answers a ping.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from beforehand.errors import LocalError
from beforehand.runtime.crypto.handshake import (
    DialerHandshake,
    Introduction,
    ListenerHandshake,
)
from beforehand.runtime.crypto.key_ring import KeyRing
from beforehand.runtime.crypto.keys import MemberKey
from beforehand.runtime.crypto.trust import Trust
from beforehand.runtime.transport.address import Address, limit_key
from beforehand.runtime.transport.connection.handshake_stream import HandshakeStream
from beforehand.runtime.transport.connection.link import LINGER_SECONDS, Link
from beforehand.runtime.transport.connection.link_owner import LinkState
from beforehand.runtime.transport.connection.records import CLOSING
from beforehand.runtime.transport.dialer import Dialer
from beforehand.runtime.transport.disconnects import Disconnect, LinkCounters
from beforehand.runtime.transport.limits import DEFAULTS, Limits
from beforehand.runtime.transport.listener import Listener
from beforehand.runtime.transport.peer_info import PeerInfo, peer_info
from beforehand.runtime.transport.places import Places, may_drain
from beforehand.runtime.transport.rotation import Rotation

if TYPE_CHECKING:
    from beforehand.runtime.transport.discovery import Discovery

DISCONNECTS_MAX = 64
"""The most recent disconnects that are kept for `disconnects`."""
SHUNNED = ("flood", "too_large", "malformed", "unwanted")
"""A peer that lost its link for one of these reasons is refused for `backoff_max_seconds`."""


class Mesh:
    """All links of one node. Use it from one event loop, which also runs the callbacks.

    on_link(name, is_up): strictly alternating for each name, beginning with True.
    on_frame(name, frame): called only while the link is up.
    on_room(name): the send queue had exceeded half of its limit, and has drained to half again.
    """

    def __init__(
        self,
        name: str,
        member: MemberKey,
        ring: KeyRing,
        trust: Trust,
        *,
        listen: Sequence[Address],
        peers: Sequence[Address] = (),
        discover: bool,
        limits: Limits = DEFAULTS,
        on_link: Callable[[str, bool], None],
        on_frame: Callable[[str, bytes], None],
        on_room: Callable[[str], None] | None = None,
        interfaces: Sequence[str] = (),
    ) -> None:
        """interfaces: local IP addresses on which to discover; all if empty."""
        self.counters = LinkCounters()
        self.on_frame = on_frame
        self._name, self._member, self._ring, self._trust = name, member, ring, trust
        self._listen, self._peers, self._limits = listen, peers, limits
        self._on_link, self._on_room = on_link, on_room

        self._links: dict[str, Link] = {}
        self._rivals: dict[str, Link] = {}
        """New connections that wait while the old link of the same peer is pinged."""
        self._open: set[Link] = set()
        self._places = Places(limits)
        self._shunned: dict[str, float] = {}
        self._disconnects: deque[Disconnect] = deque(maxlen=DISCONNECTS_MAX)
        self.rotation = Rotation(
            ring,
            self._links,
            on_renewed=self._renew,
            on_failure=lambda problem: self._note("bad_key_file", problem, Address("", 0), ""),
        )
        self._listener = Listener(self._new_link)
        self._tick_seconds = min(limits.heartbeat_seconds, limits.handshake_seconds) / 4
        self._ticking: asyncio.TimerHandle | None = None
        self._is_running = False
        self._dialer = Dialer(name, limits, self._connect, self._links)
        self._discovery = self._make_discovery(ring, interfaces) if discover else None

    def _make_discovery(self, ring: KeyRing, interfaces: Sequence[str]) -> Discovery:
        # Imported only on demand: it takes 5 MB of memory.
        from beforehand.runtime.transport.discovery import Discovery

        return Discovery(
            ring,
            interfaces,
            look_again_seconds=self._limits.backoff_max_seconds,
            on_found=self._find,
            on_gone=self._forget,
            on_late=lambda: self.counters.count("late_members"),
            on_failure=lambda problem: self._note("no_discovery", problem, Address("", 0), ""),
            on_unannounced=self._note_unannounced,
        )

    def _note_unannounced(self, addresses: str) -> None:
        problem = (
            f"nothing is announced: this node listens at {addresses} alone, which no other machine "
            "reaches; listen at `:0`, or name this machine's address"
        )
        self._note("not_announced", problem, Address("", 0), "")

    # ---- called by the node ---------------------------------------------------------------------

    async def start(self) -> None:
        """Listen, dial and announce; raise `InputError` if it cannot listen."""
        self._is_running = True
        try:
            await self._listener.start(self._listen)
        except BaseException:
            await self.close()
            raise
        for address in self._peers:
            self._dialer.add(address)
        if self._discovery:
            self._discovery.start(self.addresses())
        self._tick()

    async def close(self) -> None:
        """Send a goodbye on all links and close them; `on_link` reports each of them down."""
        self._is_running = False
        if self._ticking:
            self._ticking.cancel()
        if self._discovery:
            await self._discovery.close()
        await self._dialer.close()
        await self._listener.close()
        for link in list(self._open):
            link.end(CLOSING, "we close")
            link.stop_draining()
        lost = [link.lost for link in self._open]
        if lost:
            await asyncio.wait(lost, timeout=LINGER_SECONDS * 2)
        await self._listener.closed()

    def send(self, peer: str, frames: Sequence[bytes]) -> None:
        """Queue frames for a peer, in order; never block. Drop them if the peer has no link.

        If its queue exceeds the limit, the link is cut, and `on_link(peer, False)` is called from
        within. Raise `LocalError` for an empty frame, or one beyond `frame_bytes_max`.
        """
        if not frames:
            return
        sizes, most = list(map(len, frames)), self._limits.frame_bytes_max
        if min(sizes) == 0 or max(sizes) > most:
            size = max(sizes) if max(sizes) > most else 0
            raise LocalError(f"a frame of {size:,} bytes", hint=f"a frame has 1 to {most:,} bytes")
        if link := self._links.get(peer):
            link.send(frames, sizes)

    def room(self, peer: str) -> int:
        """Return the bytes that `send` accepts now without cutting the link.

        Each frame counts FRAME_OVERHEAD bytes extra. Return 0 if the peer has no link.
        """
        link = self._links.get(peer)
        return self._limits.queue_bytes_max - link.queued_bytes if link else 0

    def underway(self, peer: str) -> int:
        """Return the bytes received of an incomplete record of this peer."""
        link = self._links.get(peer)
        return link.underway_bytes if link else 0

    def pause(self, peer: str) -> None:
        """Stop reading from a peer until `resume`; TCP's flow control slows it down."""
        if link := self._links.get(peer):
            link.pause()

    def resume(self, peer: str) -> None:
        if link := self._links.get(peer):
            link.resume()

    def cut(self, peer: str, problem: str) -> None:
        """Cut the link because of a frame's content; the peer is refused for a while."""
        if link := self._links.get(peer):
            link.end("unwanted", problem)

    def cut_blocked(self) -> None:
        """Cut the links of peers whose key is blocked."""
        for name, link in list(self._links.items()):
            if self._trust.key_of(name) in self._trust.blocked:
                link.end("blocked", f"`{name}` has a key that this member has blocked")

    def peers(self) -> list[PeerInfo]:
        """Return the links that are up, sorted by name."""
        links = [link for _, link in sorted(self._links.items())]
        return [peer_info(link, self._trust.key_of(link.name)) for link in links]

    def addresses(self) -> list[Address]:
        """Return the addresses in use, with the actual ports."""
        return self._listener.addresses()

    def disconnects(self) -> list[Disconnect]:
        """Return the most recent connections that were refused or broke, newest last."""
        return list(self._disconnects)

    # ---- connections ----------------------------------------------------------------------------

    async def _connect(self, address: Address) -> Link | None:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._limits.handshake_seconds):
                _, link = await loop.create_connection(
                    lambda: self._new_link(address), address.host, address.port
                )
        except (OSError, UnicodeError) as error:  # includes TimeoutError
            self._note("unreachable", f"no answer: {error or 'too slow'}", address, "")
            return None
        return link

    def _new_link(self, target: Address | None = None) -> Link:
        """Return a connection: to an address that is dialed, or one that comes in."""
        key, name, member = self._ring.key, self._name, self._member
        handshake = (
            DialerHandshake(key, name, member, self.rotation.secret_for(target))
            if target
            else ListenerHandshake(key, name, member, self._ring.now_us())
        )
        link = Link(self, HandshakeStream(handshake), self._limits)
        link.target = target
        return link

    def _renew(self) -> None:
        if self._discovery:
            self._discovery.renew()

    def _find(self, address: Address, secret_id: str) -> None:
        self.rotation.announce(address, secret_id)
        self._dialer.add(address)

    def _forget(self, address: Address) -> None:
        self.rotation.forget(address)
        if address not in self._peers:
            self._dialer.remove(address)

    def on_connected(self, link: Link) -> bool:
        self._open.add(link)
        link.place = limit_key(link.address.host)
        if link.is_dialed or not self._is_running:
            return self._is_running
        return self._places.admit(link, self._open)

    def may_drain(self) -> bool:
        return may_drain(self._open)

    def on_introduced(self, link: Link, peer: Introduction) -> None:
        if peer.name == self._name and peer.public == self._member.public:
            link.name = peer.name
            link.end("own_address", "we dialed ourselves")
        elif peer.public in self._trust.blocked:
            link.end("blocked", f"`{peer.name}` has a key that this member has blocked")
        elif not self._trust.meet(peer.name, peer.public):
            is_bound = self._trust.key_of(peer.name) is not None
            why = "is bound to another key" if is_bound else "is one name more than this node keeps"
            link.end("wrong_name", f"`{peer.name}` {why}")
        elif self._shunned.get(peer.name, 0) > asyncio.get_running_loop().time():
            link.end("shunned", f"`{peer.name}` reconnects too soon")
        else:
            link.name = peer.name
            if self._name < peer.name:
                self._decide(link)

    def on_keep(self, link: Link) -> None:
        if link.name < self._name:
            self._bring_up(link)
        else:
            link.end("malformed", "it sent KEEP, which only this end may decide")

    def on_notice(self, link: Link, ends_us: int) -> None:
        self.rotation.on_notice(link, ends_us)

    def on_pong(self, link: Link) -> None:
        if rival := self._rivals.pop(link.name, None):
            rival.end("redundant", "the older link still answers")

    def on_room(self, link: Link) -> None:
        if self._on_room:
            self._on_room(link.name)

    def on_ended(self, link: Link, kind: str, problem: str) -> None:
        if kind != CLOSING:
            self._note(kind, problem, link.address, link.name)
        if link.target:
            self.rotation.on_dialed(link.target, is_proven=bool(link.secret_id))
        if self._rivals.get(link.name) is link:
            del self._rivals[link.name]
        if self._links.get(link.name) is not link:
            return
        if kind in SHUNNED:
            self._shun(link.name)
        del self._links[link.name]
        self._on_link(link.name, False)
        if self._is_running and (rival := self._rivals.pop(link.name, None)):
            self._keep(rival)

    def on_lost(self, link: Link) -> None:
        self._open.discard(link)

    # ---- which connection is the link -----------------------------------------------------------

    def _decide(self, link: Link) -> None:
        old = self._links.get(link.name)
        if old is None:
            self._keep(link)
            return
        if rival := self._rivals.pop(link.name, None):
            rival.end("redundant", "there is a newer connection")
        self._rivals[link.name] = link
        old.ping()
        limits = self._limits
        patience = min(limits.heartbeat_seconds, limits.handshake_seconds / 2)
        asyncio.get_running_loop().call_later(patience, self._give_up_on, old, link)

    def _give_up_on(self, old: Link, rival: Link) -> None:
        if self._rivals.get(rival.name) is not rival or self._links.get(rival.name) is not old:
            return
        # We do not read from it, so a missing answer proves nothing.
        if old.is_paused:
            self.on_pong(old)
        else:
            old.end("replaced", "it does not answer, and there is a new connection")

    def _keep(self, link: Link) -> None:
        if len(self._links) < self._limits.connections_max:
            link.keep()
        self._bring_up(link)

    def _bring_up(self, link: Link) -> None:
        if old := self._links.get(link.name):
            old.end("replaced", "there is a new connection")
        if len(self._links) >= self._limits.connections_max:
            link.end("too_many_connections", "no place for another link")
            return
        self._links[link.name] = link
        self._places.remember(link.place)
        link.come_up()
        self.counters.links += 1
        self.rotation.on_up(link)
        self._on_link(link.name, True)

    # ---- timers ---------------------------------------------------------------------------------

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        now, limits = loop.time(), self._limits
        self.rotation.check()
        for link in list(self._open):
            if link.state is LinkState.ENDED:
                continue
            if link.state is not LinkState.UP:
                if now - link.began > limits.handshake_seconds:
                    link.end("slow_handshake", "it took too long to prove its identity")
            elif not link.is_paused and now - link.received_at > limits.silence_seconds:
                link.end("silent", f"nothing received for {now - link.received_at:.1f} s")
            elif now - link.sent_at > limits.heartbeat_seconds - self._tick_seconds:
                link.beat()
            if now - link.received_at > self._tick_seconds:
                link.relax()
        self._ticking = loop.call_later(self._tick_seconds, self._tick)

    def _shun(self, name: str) -> None:
        now = asyncio.get_running_loop().time()
        self._shunned = {n: until for n, until in self._shunned.items() if until > now}
        self._shunned[name] = now + self._limits.backoff_max_seconds

    def _note(self, kind: str, problem: str, address: Address, name: str) -> None:
        self.counters.count(kind)
        at_us = time.time_ns() // 1000
        self._disconnects.append(Disconnect(kind, problem, str(address), name, at_us))
