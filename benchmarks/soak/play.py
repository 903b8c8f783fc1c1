"""Play one seed: start, kill and restart processes, then heal all faults."""

from __future__ import annotations

import faulthandler
import json
import mmap
import os
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from soak.draw import PERFECT, Case, Fault, NodeScript
from soak.kinds import KINDS, Place, prepare
from soak.member import live
from soak.wires import Port, Switch, switched

PORT = 7400
HEALED_SECONDS_MAX = 120.0
"""After healing, all nodes must have all messages within this time."""
STUCK_SECONDS = 25.0
"""The default for the maximum time without progress of any node."""
ENDING_SECONDS_MAX = 30.0
STATUS_BYTES = 1 << 16
PARTS = ("links", "trust", "node", "air")
NO_REFUSALS = {"links.links", "trust.bound", "air.sent", "air.heard"}
MESSAGE_REFUSALS = ("refused", "stale", "late")


@dataclass
class Played:
    """The faults that were injected, and the failures on the way."""

    network: str = "namespaces"
    kills: int = 0
    ends: int = 0
    freezes: int = 0
    partitions: int = 0
    unplugged: int = 0
    packets: int = 0
    packets_lost: int = 0
    packets_doubled: int = 0
    packets_overtaken: int = 0
    healed_s: float = 0.0
    """The time from the last fault until all nodes had all messages."""
    refusals: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


class _Process:
    """One node, and its process while it runs."""

    def __init__(self, script: NodeScript, place: Place, port: Port | None) -> None:
        self.script, self.place, self.port = script, place, port
        self.pid = 0
        self.is_frozen = self.is_ending = False
        self.stdin = self.stdout = -1
        self.status: dict[str, Any] = {}
        self.heard = b""

    def start(self, switch: Switch) -> None:
        child_in, self.stdin = os.pipe()
        self.stdout, child_out = os.pipe()
        os.set_blocking(self.stdout, False)
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if not self.pid:
            self._become_node(child_in, child_out)
        os.close(child_in)
        os.close(child_out)
        self.status, self.heard = {}, b""
        self.is_ending = False
        switch.watch(self.stdout, self._hear)

    def signal(self, what: signal.Signals) -> None:
        os.kill(self.pid, what)

    def stop(self) -> None:
        if not self.is_ending:
            self.is_ending = True
            with suppress(BrokenPipeError):  # it has exited, but is not reaped yet
                os.write(self.stdin, b"stop\n")

    def reap(self, switch: Switch, *, wait: bool) -> int | None:
        """Return the exit code, as `waitstatus_to_exitcode`; None if the process still runs."""
        pid, status = os.waitpid(self.pid, 0 if wait else os.WNOHANG)
        if not pid:
            return None
        self._hear()
        switch.forget(self.stdout)
        os.close(self.stdout)
        os.close(self.stdin)
        self.pid, self.is_frozen = 0, False
        return os.waitstatus_to_exitcode(status)

    def _hear(self) -> None:
        try:
            self.heard += os.read(self.stdout, STATUS_BYTES)
        except BlockingIOError:
            return
        *lines, self.heard = self.heard.split(b"\n")
        if lines:
            self.status = json.loads(lines[-1])

    def _become_node(self, child_in: int, child_out: int) -> None:
        """Run the node in the child process. Never return, because no code of the parent may run
        here."""
        try:
            errors = self.place.folder / f"{self.script.name}.err"
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            for fd, target in ((child_in, 0), (child_out, 1), (os.open(errors, flags, 0o644), 2)):
                os.dup2(fd, target)
            if self.port is not None:
                self.port.enter()
            os.closerange(3, 4096)  # close the other nodes' stdin pipes
            faulthandler.register(signal.SIGUSR1)
            live(self.script, self.place)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)


def warm_up() -> None:
    """Import, once for all forked processes, the modules that a process imports later."""
    pa.array([0])  # imports pandas, if there is one


class Play:
    """The playing of one seed."""

    def __init__(
        self, case: Case, kind: str, folder: Path, switch: Switch, ports: list[Port]
    ) -> None:
        self.case, self.switch = case, switch
        self.stations = KINDS[kind].stations
        self.stuck_s = STUCK_SECONDS
        self.played = Played(network="namespaces" if ports else "loopback")
        hosts = [port.address for port in ports] or [
            f"127.{os.getpid() >> 8 & 255}.{os.getpid() & 255}.{node.at + 1}" for node in case.nodes
        ]
        addresses = tuple(f"{host}:{PORT}" for host in hosts)
        prepare(folder, addresses, tuple(node.name for node in case.nodes))
        self.place = place = Place(folder, kind, addresses, mmap.mmap(-1, mmap.PAGESIZE))
        self.processes = [
            _Process(node, place, ports[node.at] if ports else None) for node in case.nodes
        ]

    def run(self) -> None:
        for process in self.processes:
            process.start(self.switch)
        if not self.case.is_rushed or self.stations:
            self._wait_until_up(self.processes)
        began = self.place.begin()
        for fault in self.case.faults:
            self.switch.turn(began + fault.at_s)
            if fault.after_up_s is not None:
                waiting = time.monotonic()
                self._wait_until_up([self.processes[fault.node]])
                self.switch.turn(time.monotonic() + fault.after_up_s)
                began += time.monotonic() - waiting
            self._bury()
            if fault.verb not in ("kill", "end") or fault.node >= self.stations:
                getattr(self, f"_{fault.verb}")(fault)
        self.switch.turn(began + self.case.chaos_s)
        self._heal_all()
        if self._wait_for_all():
            self._end_all()
        self.played.packets = self.switch.packets
        self.played.packets_lost = self.switch.lost
        self.played.packets_doubled = self.switch.doubled
        self.played.packets_overtaken = self.switch.overtaken

    def stop_everything(self) -> None:
        """Kill all processes that are left, also after an error."""
        for process in self.processes:
            if process.pid:
                process.signal(signal.SIGKILL)
                self._reap(process, wait=True)

    def _wait_until_up(self, processes: list[_Process]) -> None:
        until = time.monotonic() + STUCK_SECONDS
        while time.monotonic() < until and not all(one.status for one in processes):
            self.switch.turn(time.monotonic() + 0.02)

    # ---- faults ---------------------------------------------------------------------------------

    def _kill(self, fault: Fault) -> None:
        process = self.processes[fault.node]
        if process.pid:
            process.signal(signal.SIGKILL)
            code = self._reap(process, wait=True)
            if code == -signal.SIGKILL:
                self.played.kills += 1
            elif code or not process.is_ending:
                self._fail(process, f"had ended with {code} before it was killed")

    def _end(self, fault: Fault) -> None:
        process = self.processes[fault.node]
        if process.pid and process.status and not process.is_frozen:
            self.played.ends += 1
            process.stop()

    def _start(self, fault: Fault) -> None:
        process = self.processes[fault.node]
        if not process.pid:
            process.start(self.switch)

    def _freeze(self, fault: Fault) -> None:
        process = self.processes[fault.node]
        if process.pid:
            self.played.freezes += 1
            process.is_frozen = True
            process.signal(signal.SIGSTOP)

    def _thaw(self, fault: Fault) -> None:
        process = self.processes[fault.node]
        if process.pid and process.is_frozen:
            process.is_frozen = False
            process.signal(signal.SIGCONT)

    def _part(self, fault: Fault) -> None:
        self.played.partitions += 1
        self.switch.part(list(fault.sides))

    def _heal(self, fault: Fault) -> None:
        self.switch.part([])

    def _unplug(self, fault: Fault) -> None:
        self.played.unplugged += 1
        self.switch.plug(fault.node, False)

    def _plug(self, fault: Fault) -> None:
        self.switch.plug(fault.node, True)

    def _quality(self, fault: Fault) -> None:
        self.switch.quality = fault.quality

    # ---- the end --------------------------------------------------------------------------------

    def _heal_all(self) -> None:
        self.switch.quality = PERFECT
        self.switch.part([])
        for at, process in enumerate(self.processes):
            self.switch.plug(at, True)
            self._thaw(Fault(0.0, "thaw", at))
            if not process.pid:
                process.start(self.switch)

    def _wait_for_all(self) -> bool:
        healed = changed = time.monotonic()
        before: list[object] = []
        while (now := time.monotonic()) < min(healed + HEALED_SECONDS_MAX, changed + self.stuck_s):
            self.switch.turn(now + 0.05)
            self._bury(again=True)
            if self.played.failures:
                return False
            if self._is_settled():
                self.played.healed_s = time.monotonic() - healed
                return True
            digests = [process.status.get("digest") for process in self.processes]
            if digests != before:
                before, changed = digests, time.monotonic()
        for process in self.processes:
            told = {key: value for key, value in process.status.items() if key != "counters"}
            self._fail(process, f"has not everything after {now - healed:.0f} s: {told}")
        return False

    def _is_settled(self) -> bool:
        told = [process.status for process in self.processes]
        return (
            all(told)
            and not any(process.is_ending for process in self.processes)
            and len({status["digest"] for status in told[self.stations :]}) == 1
            and all(status["is_quiet"] and not status["pending"] for status in told)
        )

    def _end_all(self) -> None:
        for process in self.processes:
            process.stop()
        until = time.monotonic() + ENDING_SECONDS_MAX
        while any(process.pid for process in self.processes) and time.monotonic() < until:
            self.switch.turn(time.monotonic() + 0.02)
            self._bury()
        for process in self.processes:
            if process.pid:
                self._fail(process, f"does not end within {ENDING_SECONDS_MAX:.0f} s")

    def _bury(self, *, again: bool = False) -> None:
        """Reap the processes that ended by themselves. again: restart them."""
        for process in self.processes:
            if process.pid and not process.is_frozen:
                code = self._reap(process, wait=False)
                if code or (code == 0 and not process.is_ending):
                    self._fail(process, f"ended by itself with {code}")
                elif code == 0 and again:
                    process.start(self.switch)

    def _reap(self, process: _Process, *, wait: bool) -> int | None:
        """Reap a process. Its last status counts for its whole incarnation."""
        code = process.reap(self.switch, wait=wait)
        if code is not None and process.status:
            self.played.refusals.update(_refusals(process.status["counters"]))
        return code

    def _fail(self, process: _Process, problem: str) -> None:
        if process.pid:  # print its stack to its stderr
            process.signal(signal.SIGUSR1)
            self.switch.turn(time.monotonic() + 0.1)
        self.played.failures.append(f"{process.script.name}: {problem}")


def _refusals(counters: dict[str, Any]) -> dict[str, int]:
    """Return the counters of what the node refused or dropped."""
    parts = [part for part in PARTS if part in counters]
    told = {f"{part}.{kind}": counters[part][kind] for part in parts for kind in counters[part]}
    told |= {f"messages.{kind}": counters["messages"][kind] for kind in MESSAGE_REFUSALS}
    return {kind: count for kind, count in told.items() if count and kind not in NO_REFUSALS}


def play(
    case: Case, kind: str, folder: Path, *, is_loopback: bool, stuck_s: float = STUCK_SECONDS
) -> Played:
    """Play a case. On return all files are in the folder, and no process is left."""
    with switched(len(case.nodes), case.seed, is_loopback=is_loopback) as (switch, ports):
        acting = Play(case, kind, folder, switch, ports)
        acting.stuck_s = stuck_s
        try:
            acting.run()
        finally:
            acting.stop_everything()
    return acting.played


@contextmanager
def cpu_seconds() -> Iterator[list[float]]:
    """Append the CPU seconds of this process and its ended children during the block."""
    spent: list[float] = []
    before = _cpu_s()
    yield spent
    spent.append(_cpu_s() - before)


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
