"""The network of one seed: a namespace per node, and a faulty switch between them.

Each namespace has one TAP device. The switch, in this process, reads every Ethernet frame and may
drop, delay, duplicate or reorder it; a partition drops it. `tc netem` does the same. Here the
faults are drawn from the seed, change during a run, and need no kernel module.

Namespaces have no names and devices are not persistent: the kernel removes them when their last
process has ended, in whatever way.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import os
import random
import select
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from soak.draw import PERFECT

CLONE_NEWNET = 0x40000000
TUNSETIFF, TUNSETCARRIER = 0x400454CA, 0x400454E2
IFF_TAP, IFF_NO_PI, IFF_UP_RUNNING = 0x0002, 0x1000, 0x41
SIOCSIFFLAGS, SIOCSIFADDR, SIOCSIFNETMASK, SIOCGIFHWADDR = 0x8914, 0x8916, 0x891C, 0x8927
DEVICE = b"tap0"
PACKET_BYTES_MAX = 2048
PACKETS_PER_TURN = 64
ARP = b"\x08\x06"

_libc = ctypes.CDLL(None, use_errno=True)


class NotPermitted(Exception):
    """This process may not create network namespaces, or the system has none."""


class Port:
    """One namespace and its cable."""

    def __init__(self, address: str) -> None:
        self.address = address
        own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        try:
            if _libc.unshare(CLONE_NEWNET):
                raise NotPermitted(os.strerror(ctypes.get_errno()))
            try:
                self.namespace = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
                self.tap, self.mac = _make_tap(address)
            finally:
                _enter(own)
        except OSError as error:
            raise NotPermitted(str(error)) from error
        finally:
            os.close(own)

    def plug(self, is_in: bool) -> None:
        """Plug or unplug the cable; the node's kernel notices, as with a real one."""
        fcntl.ioctl(self.tap, TUNSETCARRIER, struct.pack("i", is_in))

    def enter(self) -> None:
        """Move this process into the namespace."""
        _enter(self.namespace)

    def close(self) -> None:
        os.close(self.tap)
        os.close(self.namespace)


class Switch:
    """All ports, and all other file descriptors that this process waits for."""

    def __init__(self, ports: list[Port], seed: int) -> None:
        self.quality = PERFECT
        self.packets = self.lost = self.doubled = self.overtaken = 0
        self._ports = ports
        self._by_mac = {port.mac: at for at, port in enumerate(ports)}
        self._side = [0] * len(ports)
        self._is_in = [True] * len(ports)
        self._rng = random.Random(f"packets {seed}")
        self._late: list[tuple[float, int, int, bytes]] = []
        self._last_due: dict[tuple[int, int], float] = {}
        self._ticket = 0
        self._poll = select.epoll()
        self._callbacks: dict[int, Callable[[], None]] = {}
        for at, port in enumerate(ports):
            self.watch(port.tap, lambda at=at: self._read(at))  # type: ignore[misc]

    def watch(self, fd: int, callback: Callable[[], None]) -> None:
        self._callbacks[fd] = callback
        self._poll.register(fd, select.EPOLLIN)

    def forget(self, fd: int) -> None:
        del self._callbacks[fd]
        self._poll.unregister(fd)

    def part(self, sides: list[int]) -> None:
        """Partition the network: only nodes of the same side receive each other's packets."""
        self._side = sides or [0] * len(self._ports)

    def plug(self, at: int, is_in: bool) -> None:
        if self._ports:
            self._is_in[at] = is_in
            self._ports[at].plug(is_in)

    def turn(self, until: float) -> None:
        """Carry packets until that time on the monotonic clock."""
        while (now := time.monotonic()) < until:
            while self._late and self._late[0][0] <= now:
                _, _, target, packet = heapq.heappop(self._late)
                self._write(target, packet)
            wake = min(until, self._late[0][0] if self._late else until)
            for fd, _ in self._poll.poll(max(0.0, wake - now)):
                if fd in self._callbacks:
                    self._callbacks[fd]()

    def close(self) -> None:
        self._poll.close()
        for port in self._ports:
            port.close()

    def _read(self, source: int) -> None:
        tap = self._ports[source].tap
        for _ in range(PACKETS_PER_TURN):
            try:
                packet = os.read(tap, PACKET_BYTES_MAX)
            except OSError:  # no more packets, or the cable is unplugged
                return
            if packet[0] & 1:
                targets = [at for at in range(len(self._ports)) if at != source]
            else:
                found = self._by_mac.get(packet[:6])
                targets = [] if found is None else [found]
            for target in targets:
                self._carry(source, target, packet)

    def _carry(self, source: int, target: int, packet: bytes) -> None:
        self.packets += 1
        is_parted = self._side[source] != self._side[target]
        if is_parted or not (self._is_in[source] and self._is_in[target]):
            self.lost += 1
            return
        quality, draw = self.quality, self._rng.random
        # Never drop ARP: a lost ARP request blocks all other traffic for 1 s.
        if draw() < quality.loss and packet[12:14] != ARP:
            self.lost += 1
            return
        now = time.monotonic()
        due = now + quality.delay_s + draw() * quality.jitter_s
        pair = (source, target)
        if draw() < quality.reorder:
            self.overtaken += 1
            due = now
        else:
            due = self._last_due[pair] = max(due, self._last_due.get(pair, 0.0))
        copies = 1
        if draw() < quality.duplicate:
            self.doubled += 1
            copies = 2
        for _ in range(copies):
            if due <= now:
                self._write(target, packet)
            else:
                self._ticket += 1
                heapq.heappush(self._late, (due, self._ticket, target, packet))

    def _write(self, target: int, packet: bytes) -> None:
        with suppress(OSError):  # the queue is full, or the cable is unplugged
            os.write(self._ports[target].tap, packet)


@contextmanager
def switched(
    count: int, seed: int, *, is_loopback: bool = False
) -> Iterator[tuple[Switch, list[Port]]]:
    """Yield a switch with this many namespaces; without any if not permitted or not wanted."""
    ports: list[Port] = []
    try:
        wanted = 0 if is_loopback else count
        ports.extend(Port(f"10.77.0.{at + 1}") for at in range(wanted))
    except NotPermitted:
        for port in ports:
            port.close()
        ports = []
    switch = Switch(ports, seed)
    try:
        yield switch, ports
    finally:
        switch.close()


def _enter(namespace: int) -> None:
    if _libc.setns(namespace, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "cannot enter a network namespace")


def _make_tap(address: str) -> tuple[int, bytes]:
    """Return a TAP device in the current namespace, up and with its address."""
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    try:
        fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", DEVICE, IFF_TAP | IFF_NO_PI))
        # IPv6 would spend a second on duplicate address detection.
        Path("/proc/sys/net/ipv6/conf/tap0/disable_ipv6").write_text("1")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            for request, value in ((SIOCSIFADDR, address), (SIOCSIFNETMASK, "255.255.255.0")):
                place = struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(value))
                fcntl.ioctl(control, request, struct.pack("16s16s8x", DEVICE, place))
            for device in (b"lo", DEVICE):
                flags = struct.pack("16sH22x", device, IFF_UP_RUNNING)
                fcntl.ioctl(control, SIOCSIFFLAGS, flags)
            found = fcntl.ioctl(control, SIOCGIFHWADDR, struct.pack("16s24x", DEVICE))
    except BaseException:
        os.close(tap)
        raise
    return tap, found[18:24]
