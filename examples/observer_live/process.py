"""One of three small processes that exchange messages and report what they do. See watch.py.

The process asks the others now and then, answers questions, and thanks for answers. Every report
carries a timestamp of `beforehand.protocols.observer.timestamp`; so does every message, in a few
bytes. The clock of the process is wrong by `skew_ms`, and a report is delayed by up to
`DELAY_MAX_S`.
"""

from __future__ import annotations

import heapq
import json
import random
import socket
import sys
import time
from pathlib import Path

from beforehand.protocols import Guarantees, LogicalClock, Stamp, StampCodec

TICK_US = 20_000
SYSTEM = Guarantees(processes=3, epsilon=5, delta=50, events_per_tick=20)  # 100 ms, 1 s
DELAY_MAX_S, FILE_EVERY_S = 0.5, 0.2
NEXT = {"asks": "answers", "answers": "thanks"}


class Process:
    def __init__(self, number: int, ports: list[int], folder: Path, skew_ms: int) -> None:
        self.number, self.ports, self.folder, self.skew_ms = number, ports, folder, skew_ms
        self.random = random.Random(number)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", ports[number]))
        self.clock = LogicalClock(number, SYSTEM, now=self.tick())
        self.codec = StampCodec(SYSTEM)
        self.reports: list[tuple[float, int, dict[str, object]]] = []  # (due, number, row)
        self.asked = self.reported = self.files = 0

    def tick(self) -> int:
        return (time.time_ns() // 1000 + self.skew_ms * 1000) // TICK_US

    def run(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        asks_at = writes_at = 0.0
        while (now := time.monotonic()) < ends or self.reports:
            if asks_at <= now < ends:
                self.ask()
                asks_at = now + self.random.expovariate(4)
            if writes_at <= now:
                self.write_file(now)
                writes_at = now + FILE_EVERY_S
            self.listen()

    def ask(self) -> None:
        self.asked += 1
        others = [n for n in range(len(self.ports)) if n != self.number]
        self.send(self.random.choice(others), "asks", f"{self.number}.{self.asked}")

    def send(self, target: int, verb: str, question: str) -> None:
        stamp = self.clock.send(self.tick())
        message = {"from": self.number, "verb": verb, "question": question}
        message["stamp"] = self.codec.encode(stamp).hex()
        self.socket.sendto(json.dumps(message).encode(), ("127.0.0.1", self.ports[target]))
        self.report(stamp, verb, question, target)

    def listen(self) -> None:
        self.socket.settimeout(0.01)
        try:
            message = json.loads(self.socket.recv(1024))
        except TimeoutError:
            return
        now = self.tick()
        self.clock.receive(now, self.codec.decode(bytes.fromhex(message["stamp"]), now))
        if message["verb"] in NEXT:
            self.send(message["from"], NEXT[message["verb"]], message["question"])

    def report(self, stamp: Stamp, verb: str, question: str, target: int) -> None:
        self.reported += 1
        row = {
            "observer": "live",
            "process": self.number,
            "stamp": {"r": stamp.r, "c": stamp.c, "kn": stamp.kn},
            "verb": verb,
            "question": question,
            "target": target,
        }
        gets_out = time.monotonic() + self.random.uniform(0, DELAY_MAX_S)
        heapq.heappush(self.reports, (gets_out, self.reported, row))

    def write_file(self, now: float) -> None:
        """Write the due reports. Spark reads a file once, so write it under a hidden name, then
        rename it."""
        lines = []
        arrived_us = time.time_ns() // 1000  # the collector's clock is right
        while self.reports and self.reports[0][0] <= now:
            row = heapq.heappop(self.reports)[2]
            lines.append(json.dumps(row | {"arrived": arrived_us}))
        if lines:
            self.files += 1
            name = f"{self.number}-{self.files:05}.jsonl"
            part = self.folder / f".{name}"
            part.write_text("\n".join(lines) + "\n")
            part.rename(self.folder / name)


if __name__ == "__main__":
    number, skew_ms, seconds, folder, *ports = sys.argv[1:]
    process = Process(int(number), [int(port) for port in ports], Path(folder), int(skew_ms))
    process.run(float(seconds))
