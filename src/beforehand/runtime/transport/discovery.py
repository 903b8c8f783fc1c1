"""Discovery of members on the local network by multicast DNS.

A node announces a random nonce and two tags of it. A tag is keyed with a secret of the group. So
members recognise each other. While the group changes to a new secret there is a tag for each of the
two; otherwise the second is random. So other programs do not learn which group it is, which members
are present, that it is the same node as the day before, or that a rotation is under way.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress

import ifaddr
from zeroconf import Error as ZeroconfError
from zeroconf import IPVersion, ServiceStateChange, Zeroconf
from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

from beforehand.runtime.crypto.handshake import derive
from beforehand.runtime.crypto.key_ring import KeyRing
from beforehand.runtime.crypto.keys import GroupKey, GroupSecret
from beforehand.runtime.transport.address import Address

SERVICE = "_beforehand._tcp.local."
NONCE_BYTES = 8
TAG_BYTES = 8
TAGS = 2
LOOPBACK = "127.0.0.1"
RESOLVE_MS = 3000
ADDRESSES_MAX = 8
"""Addresses of one announced node that are dialed."""
RESOLVING_MAX = 64
"""Concurrent lookups of announced members. Beyond that, a member is looked up at its next
announcement."""


def instance_name(key: GroupKey, nonce: bytes, now_us: int) -> str:
    """Return the service instance name for a nonce; it fits into one DNS label."""
    tags = [_tag(key, secret, nonce) for secret in key.live(now_us)[:TAGS]]
    tags += [secrets.token_hex(TAG_BYTES) for _ in range(TAGS - len(tags))]
    return f"{nonce.hex()}-{''.join(tags)}"


def secret_of(key: GroupKey, instance: str) -> GroupSecret | None:
    """Return the secret of the group that the announcing node holds, the newest of several."""
    nonce, _, tags = instance.partition("-")
    if len(nonce) != 2 * NONCE_BYTES or len(tags) != TAGS * 2 * TAG_BYTES or not instance.isascii():
        return None
    try:
        content = bytes.fromhex(nonce)
    except ValueError:
        return None
    seen = [tags[: 2 * TAG_BYTES], tags[2 * TAG_BYTES :]]
    for secret in (key.newest, *key.older):
        expected = _tag(key, secret, content)
        if any(hmac.compare_digest(expected, tag) for tag in seen):
            return secret
    return None


def _tag(key: GroupKey, secret: GroupSecret, nonce: bytes) -> str:
    return derive(secret.secret, b"discovery", key.name.encode(), nonce)[:TAG_BYTES].hex()


def local_hosts(interfaces: Sequence[str]) -> list[str]:
    """Return this machine's IP addresses.

    With `interfaces`, return those of them that exist. Otherwise return all but loopback addresses.
    On a machine without any network return loopback only, so that members on it find each other.
    """
    ips = [ip.ip for adapter in ifaddr.get_adapters() for ip in adapter.ips]
    there = sorted(ip if isinstance(ip, str) else ip[0] for ip in ips)
    if interfaces:
        return [host for host in there if host in interfaces]
    return [host for host in there if not _is_loopback(host)] or [h for h in there if h == LOOPBACK]


def dialable(hosts: Sequence[str]) -> list[str]:
    """Return the addresses that can be dialed: a link-local one needs its interface scope."""
    return [host for host in hosts if "%" in host or not _is_unscoped(host)]


def _is_unscoped(host: str) -> bool:
    found = ipaddress.ip_address(host)
    return found.version == 6 and found.is_link_local


def _is_loopback(host: str) -> bool:
    return ipaddress.ip_address(host).is_loopback


class Discovery:
    """Announces this node's addresses and reports those of other members."""

    def __init__(
        self,
        ring: KeyRing,
        interfaces: Sequence[str],
        *,
        look_again_seconds: float,
        on_found: Callable[[Address, str], None],
        on_gone: Callable[[Address], None],
        on_late: Callable[[], None],
        on_failure: Callable[[str], None],
        on_unannounced: Callable[[str], None],
    ) -> None:
        """interfaces: local IP addresses to use; all if empty.
        look_again_seconds: how often to check whether the machine's addresses have changed.
        on_found: called with an address of a member and the id of its secret.
        on_gone: called with an address of a member.
        on_late: called for an announcement that was made with a secret that has ended.
        on_failure: called with the problem when multicast DNS fails; it is tried again.
        on_unannounced: called with the addresses if none of them is one of the network."""
        self._ring, self._interfaces, self._look_again = ring, interfaces, look_again_seconds
        self._on_found, self._on_gone, self._on_failure = on_found, on_gone, on_failure
        self._on_late, self._on_unannounced = on_late, on_unannounced
        self._renewed = asyncio.Event()
        """Set when other secrets are valid than those that were announced."""
        self._own: set[str] = set()
        self._places: dict[str, list[Address]] = {}
        self._resolving: set[asyncio.Task[None]] = set()
        self._task: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        """The task that sends the goodbye of the last network."""

    def start(self, listening: Sequence[Address]) -> None:
        """Start in the background. A machine without a network may get one later."""
        self._task = asyncio.create_task(self._run(listening))

    def renew(self) -> None:
        """Announce anew, because other secrets are valid than before."""
        self._renewed.set()

    async def close(self) -> None:
        """Stop, and withdraw the announcements."""
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self, listening: Sequence[Address]) -> None:
        while True:
            self._renewed.clear()
            try:
                if hosts := local_hosts(self._interfaces):
                    await self._stay(listening, hosts)
            # zeroconf raises RuntimeError if an interface disappears meanwhile.
            except (OSError, RuntimeError, ZeroconfError) as error:
                self._on_failure(f"multicast DNS does not work here: {error}")
            await self._wait()

    async def _wait(self) -> None:
        """Wait until it is time to look again, or the secrets have changed."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._renewed.wait(), self._look_again)

    async def _stay(self, listening: Sequence[Address], hosts: list[str]) -> None:
        """Announce and browse until the machine's addresses change."""
        has_v6 = any(":" in host for host in hosts)
        version = IPVersion.All if has_v6 else IPVersion.V4Only
        network = AsyncZeroconf(interfaces=hosts, ip_version=version)
        browser = None
        try:
            await network.zeroconf.async_wait_for_start()
            announced = [await self._announce(network, one, hosts) for one in listening]
            if announced and not any(announced):
                self._on_unannounced(", ".join(map(str, listening)))
            browser = AsyncServiceBrowser(network.zeroconf, SERVICE, handlers=[self._on_change])
            while local_hosts(self._interfaces) == hosts and not self._renewed.is_set():
                await self._wait()
        finally:
            # The goodbye takes a while. Shielded, it closes its sockets even if this task is
            # cancelled.
            self._ending = asyncio.ensure_future(self._end(network, browser))
            await asyncio.shield(self._ending)

    async def _end(self, network: AsyncZeroconf, browser: AsyncServiceBrowser | None) -> None:
        try:
            if browser:
                await browser.async_cancel()
            for task in self._resolving:
                task.cancel()
            await asyncio.gather(*self._resolving, return_exceptions=True)
            await network.async_unregister_all_services()
        finally:  # also if the network is gone
            await network.async_close()
            self._leave()

    def _leave(self) -> None:
        """Report all found addresses as gone: they may be unreachable from the next network."""
        self._own.clear()
        while self._places:
            for address in self._places.popitem()[1]:
                self._on_gone(address)

    async def _announce(self, network: AsyncZeroconf, address: Address, hosts: list[str]) -> bool:
        """Announce an address; return whether other machines can reach it."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        instance = instance_name(self._ring.key, nonce, self._ring.now_us())
        reachable = _reachable(address.host, hosts)
        if reachable:
            self._own.add(instance)
            info = AsyncServiceInfo(
                SERVICE,
                f"{instance}.{SERVICE}",
                port=address.port,
                server=f"{nonce.hex()}.local.",  # do not reveal the machine's name
                parsed_addresses=reachable,
            )
            # The name is random and therefore unique, so the probing for conflicts can be skipped.
            await network.async_register_service(info, cooperating_responders=True)
        return bool(reachable)

    def _on_change(
        self,
        zeroconf: Zeroconf,
        service_type: str,
        name: str,
        state_change: ServiceStateChange,
    ) -> None:
        instance = name.removesuffix(f".{SERVICE}")
        secret = secret_of(self._ring.key, instance)
        if instance in self._own or secret is None:
            return
        if secret not in self._ring.live():
            if state_change is ServiceStateChange.Added:
                self._on_late()
            return
        if state_change is ServiceStateChange.Removed:
            for address in self._places.pop(instance, ()):
                self._on_gone(address)
        elif len(self._resolving) < RESOLVING_MAX:
            task = asyncio.get_running_loop().create_task(self._resolve(zeroconf, name, secret))
            self._resolving.add(task)
            task.add_done_callback(self._resolving.discard)

    async def _resolve(self, zeroconf: Zeroconf, name: str, secret: GroupSecret) -> None:
        instance = name.removesuffix(f".{SERVICE}")
        info = AsyncServiceInfo(SERVICE, name)
        if not await info.async_request(zeroconf, RESOLVE_MS) or not info.port:
            return
        hosts = dialable(info.parsed_scoped_addresses())[:ADDRESSES_MAX]
        found = [Address(host, info.port) for host in hosts]
        for address in set(self._places.get(instance, ())) - set(found):
            self._on_gone(address)
        self._places[instance] = found
        for address in found:
            self._on_found(address, secret.id)


def _reachable(bound: str, hosts: list[str]) -> list[str]:
    """Return the addresses at which other machines reach a socket bound to `bound`."""
    if bound in ("0.0.0.0", "::"):
        return [host for host in hosts if (":" in host) == (":" in bound)]
    return [host for host in hosts if host == bound.partition("%")[0]]
