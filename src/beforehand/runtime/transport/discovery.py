"""Neighbours on the same network, by multicast DNS.

What is announced is a random number and a tag that only the group's secret makes of it: members
know each other, and nobody else learns which group it is, who is there, or that it is the same
node as yesterday.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import secrets
from collections.abc import Callable, Sequence

import ifaddr
from zeroconf import Error as ZeroconfError
from zeroconf import IPVersion, ServiceStateChange, Zeroconf
from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

from beforehand.runtime.crypto.handshake import derive
from beforehand.runtime.crypto.keys import GroupKey
from beforehand.runtime.transport.address import Address

SERVICE = "_beforehand._tcp.local."
NONCE_BYTES = 12
TAG_BYTES = 16
LOOPBACK = "127.0.0.1"
RESOLVE_MS = 3000
ADDRESSES_MAX = 8
"""Of one node, that are dialed."""
RESOLVING_MAX = 64
"""Members that are looked up at the same time; another is heard again with its next announcement.
"""


def instance_name(key: GroupKey, nonce: bytes) -> str:
    """Of one announcement; it fits into one label of DNS."""
    tag = derive(key.secret, b"discovery", key.name.encode(), nonce)[:TAG_BYTES]
    return f"{nonce.hex()}-{tag.hex()}"


def is_member(key: GroupKey, instance: str) -> bool:
    """Was it announced by somebody who has the secret?"""
    nonce = instance.partition("-")[0]
    if len(nonce) != 2 * NONCE_BYTES or not nonce.isascii() or not instance.isascii():
        return False
    try:
        expected = instance_name(key, bytes.fromhex(nonce))
    except ValueError:
        return False
    return hmac.compare_digest(expected, instance)


def local_hosts(interfaces: Sequence[str]) -> list[str]:
    """Our own IP addresses: those named, of those that there are; all but loopback if none is. A
    machine that is in no network has loopback alone: those who are on it find each other."""
    ips = [ip.ip for adapter in ifaddr.get_adapters() for ip in adapter.ips]
    there = sorted(ip if isinstance(ip, str) else ip[0] for ip in ips)
    if interfaces:
        return [host for host in there if host in interfaces]
    return [host for host in there if not _is_loopback(host)] or [h for h in there if h == LOOPBACK]


def dialable(hosts: Sequence[str]) -> list[str]:
    """Those that say where they are: an address of a single link does only with its interface."""
    return [host for host in hosts if "%" in host or not _is_unscoped(host)]


def _is_unscoped(host: str) -> bool:
    found = ipaddress.ip_address(host)
    return found.version == 6 and found.is_link_local


def _is_loopback(host: str) -> bool:
    return ipaddress.ip_address(host).is_loopback


class Discovery:
    """Announces where we listen, and tells where others do."""

    def __init__(
        self,
        key: GroupKey,
        interfaces: Sequence[str],
        *,
        look_again_seconds: float,
        on_found: Callable[[Address], None],
        on_gone: Callable[[Address], None],
        on_failure: Callable[[str], None],
    ) -> None:
        """look_again_seconds: how often to see whether the machine is in another network now."""
        self._key, self._interfaces, self._look_again = key, interfaces, look_again_seconds
        self._on_found, self._on_gone, self._on_failure = on_found, on_gone, on_failure
        self._own: set[str] = set()
        self._places: dict[str, list[Address]] = {}
        self._resolving: set[asyncio.Task[None]] = set()
        self._task: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        """The last goodbye."""

    def start(self, listening: Sequence[Address]) -> None:
        """Begin; a machine without a network now may have one later."""
        self._task = asyncio.create_task(self._run(listening))

    async def close(self) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self, listening: Sequence[Address]) -> None:
        while True:
            try:
                if hosts := local_hosts(self._interfaces):
                    await self._stay(listening, hosts)
            # An interface that goes away meanwhile is a RuntimeError to zeroconf.
            except (OSError, RuntimeError, ZeroconfError) as error:
                self._on_failure(f"multicast DNS does not work here: {error}")
            await asyncio.sleep(self._look_again)

    async def _stay(self, listening: Sequence[Address], hosts: list[str]) -> None:
        """Until the machine has other addresses than these."""
        has_v6 = any(":" in host for host in hosts)
        version = IPVersion.All if has_v6 else IPVersion.V4Only
        network = AsyncZeroconf(interfaces=hosts, ip_version=version)
        browser = None
        try:
            await network.zeroconf.async_wait_for_start()
            for address in listening:
                await self._announce(network, address, hosts)
            browser = AsyncServiceBrowser(network.zeroconf, SERVICE, handlers=[self._on_change])
            while local_hosts(self._interfaces) == hosts:
                await asyncio.sleep(self._look_again)
        finally:
            # To say goodbye takes a while. Who does not wait for it leaves no socket open.
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
        finally:  # whatever has become of the network
            await network.async_close()
            self._leave()

    def _leave(self) -> None:
        """Who was found here may be nowhere now."""
        self._own.clear()
        while self._places:
            for address in self._places.popitem()[1]:
                self._on_gone(address)

    async def _announce(self, network: AsyncZeroconf, address: Address, hosts: list[str]) -> None:
        nonce = secrets.token_bytes(NONCE_BYTES)
        instance = instance_name(self._key, nonce)
        reachable = _reachable(address.host, hosts)
        if reachable:
            self._own.add(instance)
            info = AsyncServiceInfo(
                SERVICE,
                f"{instance}.{SERVICE}",
                port=address.port,
                server=f"{nonce.hex()}.local.",  # not the name of the machine
                parsed_addresses=reachable,
            )
            # The name is random: nobody else has it, so nobody has to be asked for it first.
            await network.async_register_service(info, cooperating_responders=True)

    def _on_change(
        self,
        zeroconf: Zeroconf,
        service_type: str,
        name: str,
        state_change: ServiceStateChange,
    ) -> None:
        instance = name.removesuffix(f".{SERVICE}")
        if instance in self._own or not is_member(self._key, instance):
            return
        if state_change is ServiceStateChange.Removed:
            for address in self._places.pop(instance, ()):
                self._on_gone(address)
        elif len(self._resolving) < RESOLVING_MAX:
            task = asyncio.get_running_loop().create_task(self._resolve(zeroconf, name, instance))
            self._resolving.add(task)
            task.add_done_callback(self._resolving.discard)

    async def _resolve(self, zeroconf: Zeroconf, name: str, instance: str) -> None:
        info = AsyncServiceInfo(SERVICE, name)
        if not await info.async_request(zeroconf, RESOLVE_MS) or not info.port:
            return
        hosts = dialable(info.parsed_scoped_addresses())[:ADDRESSES_MAX]
        found = [Address(host, info.port) for host in hosts]
        for address in set(self._places.get(instance, ())) - set(found):
            self._on_gone(address)
        self._places[instance] = found
        for address in found:
            self._on_found(address)


def _reachable(bound: str, hosts: list[str]) -> list[str]:
    """The addresses at which somebody elsewhere finds a socket that is bound so."""
    if bound in ("0.0.0.0", "::"):
        return [host for host in hosts if (":" in host) == (":" in bound)]
    return [host for host in hosts if host == bound.partition("%")[0]]
