"""Groups on loopback compared with a plain asyncio fan-out of the same bytes: one JSON line per
case.

Every node broadcasts as many messages as it can and reads those of all others. It then does so at
half and at a tenth of that rate, which gives the time from broadcast to delivery. `each`: one
process per node; `one`: all nodes in one process. CPU is the sum over all processes. `--catch-up
N`: a node that was offline for N messages. The last line is the memory of an idle node.

`--rates 10 100`: instead of the above, the time from broadcast to delivery when all nodes together
broadcast this many messages per second, at different instants. `--parts`: a CPU profile by part, at
the highest load and at 100 messages per second.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

from beforehand.runtime.crypto.keys import new_group

WORKER = Path(__file__).with_name("runtime_worker.py")
DELIVERIES = {200: 48_000, 16_384: 6_000}
"""Deliveries in one run, by payload: some seconds of work."""
MESSAGES_MIN = {200: 256, 16_384: 32}
"""The minimum number of messages per node, by payload."""
WARM_UP = 25
"""Messages per node in the warm-up, after which the topology is known."""
RATE_SECONDS = 5
PARTS_RATE = 100
"""Messages per second of all nodes together; at this rate most are not batched."""


class Workers:
    """Worker processes that execute commands and return results."""

    def __init__(self, count: int) -> None:
        self._processes = [
            subprocess.Popen(
                [sys.executable, str(WORKER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(count)
        ]

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.close()
            process.wait(60)
            process.stdout.close()

    def tell(self, index: int, **order: Any) -> dict[str, Any]:
        self._put(index, order)
        return self._get(index)

    def tell_all(self, **order: Any) -> list[dict[str, Any]]:
        """Send a command to all workers at the same time, and return their answers."""
        for index in range(len(self._processes)):
            self._put(index, order)
        return [self._get(index) for index in range(len(self._processes))]

    def _put(self, index: int, order: dict[str, Any]) -> None:
        stdin = self._processes[index].stdin
        assert stdin is not None
        stdin.write(json.dumps(order) + "\n")
        stdin.flush()

    def _get(self, index: int) -> dict[str, Any]:
        stdout = self._processes[index].stdout
        assert stdout is not None
        answer: dict[str, Any] = json.loads(stdout.readline())
        return answer


@contextmanager
def opened(nodes: int, layout: str, kind: str, *, is_watched: bool = False) -> Iterator[Workers]:
    """Open nodes that are linked to each other. kind: `plain`, or the durability of a group."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Workers(1 if layout == "one" else nodes) as all_of,
    ):
        if is_watched:
            all_of.tell_all(do="watch")
        new_group("bench").write(Path(folder) / "bench.key")
        peers: list[str] = []
        for index in range(nodes):
            answer = all_of.tell(
                0 if layout == "one" else index,
                do="open",
                kind="plain" if kind == "plain" else "group",
                folder=folder,
                name=f"n{index}",
                peers=peers,
                durable=kind,
            )
            peers.append(answer["address"])
        yield all_of
        all_of.tell_all(do="close")


def measure(nodes: int, layout: str, size: int, kind: str, deliveries: int) -> dict[str, Any]:
    count = max(MESSAGES_MIN[size], deliveries // nodes // (nodes - 1))
    with opened(nodes, layout, kind) as all_of:
        order = {"do": "run", "others": nodes - 1, "size": size}
        # Warm-up: afterwards all nodes are linked and no longer request announced messages.
        all_of.tell_all(**order, rate=0, count=max(1, count // 10))
        full = all_of.tell_all(**order, rate=0, count=count)
        seconds = max(answer["seconds"] for answer in full)
        half = all_of.tell_all(**order, rate=count / seconds / 2, count=count)
        tenth = all_of.tell_all(**order, rate=count / seconds / 10, count=max(8, count // 5))
    delivered = count * nodes * (nodes - 1)
    return {
        "messages_per_s": round(count * nodes / seconds),
        "deliveries_per_s": round(delivered / seconds),
        "cpu_us_per_delivery": round(1e6 * sum(a["cpu_seconds"] for a in full) / delivered, 1),
        **latencies("half_load", half),
        **latencies("tenth_load", tenth),
    }


def latencies(load: str, answers: list[dict[str, Any]]) -> dict[str, float]:
    """Return the percentiles of the time from broadcast to delivery."""
    waits = [wait for answer in answers for wait in answer["waits_us"]]
    cuts = statistics.quantiles(waits, n=100)
    return {f"{load}_p50_ms": round(cuts[49] / 1e3, 1), f"{load}_p99_ms": round(cuts[98] / 1e3, 1)}


def compare(nodes: int, layout: str, size: int, kinds: Sequence[str], scale: float) -> None:
    deliveries = round(DELIVERIES[size] * scale)
    plain = measure(nodes, layout, size, "plain", 4 * deliveries)
    for kind in kinds:
        found = measure(nodes, layout, size, kind, deliveries)
        share = found["deliveries_per_s"] / plain["deliveries_per_s"]
        cpu = plain["cpu_us_per_delivery"] / found["cpu_us_per_delivery"]
        case = {"nodes": nodes, "processes": layout, "payload_bytes": size, "durable": kind}
        tell(
            "fan-out",
            **case,
            group=found,
            plain=plain,
            of_plain=round(share, 3),
            of_plain_per_cpu=round(cpu, 3),
        )


def at_rates(nodes: int, size: int, kind: str, rates: Sequence[int]) -> None:
    """Measure latencies at fixed rates, with one process per node."""
    with opened(nodes, "each", kind) as all_of:
        order = {"do": "run", "others": nodes - 1, "size": size, "is_mixed": True}
        all_of.tell_all(**order, rate=0, count=WARM_UP)
        for rate in rates:
            found = paced(all_of, order, nodes, rate)
            case = {"nodes": nodes, "payload_bytes": size, "durable": kind}
            tell("rate", **case, messages_per_s=rate, **found)


def paced(all_of: Workers, order: dict[str, Any], nodes: int, rate: int) -> dict[str, Any]:
    count = max(2, round(RATE_SECONDS * rate / nodes))
    answers = all_of.tell_all(**order, rate=rate / nodes, count=count)
    return {**spent(answers, count * nodes, nodes), **latencies("at_rate", answers)}


def spent(answers: list[dict[str, Any]], messages: int, nodes: int) -> dict[str, Any]:
    """Return the CPU per delivery and, if the workers were profiled, its parts."""
    deliveries, cpu_s = messages * (nodes - 1), sum(a["cpu_seconds"] for a in answers)
    found: dict[str, Any] = {"cpu_us_per_delivery": round(1e6 * cpu_s / deliveries, 1)}
    found["cores"] = round(cpu_s / max(a["seconds"] for a in answers), 2)
    if answers[0]["parts"] is not None:
        seconds, calls = Counter[str](), Counter[str]()
        for answer in answers:
            seconds.update(answer["parts"]["seconds"])
            calls.update(answer["parts"]["calls"])
        seconds["all else"] = cpu_s - seconds.total()
        shares = {part: round(1e6 * s / deliveries, 1) for part, s in seconds.most_common()}
        found["us_per_delivery"] = shares
        found["calls_per_message"] = {n: round(c / messages, 2) for n, c in sorted(calls.items())}
    return found


def parts(nodes: int, size: int, kind: str, scale: float) -> None:
    """Profile the parts of a node, with one process per node."""
    most = round(DELIVERIES[size] * scale) // nodes // (nodes - 1)
    count, case = max(MESSAGES_MIN[size], most), {"nodes": nodes, "payload_bytes": size}
    with opened(nodes, "each", kind, is_watched=True) as all_of:
        order = {"do": "run", "others": nodes - 1, "size": size, "is_mixed": True}
        all_of.tell_all(**order, rate=0, count=WARM_UP)
        full = all_of.tell_all(**order, rate=0, count=count)
        found = spent(full, count * nodes, nodes)
        tell("parts", **case, durable=kind, messages_per_s="highest", **found)
        found = paced(all_of, order, nodes, PARTS_RATE)
        tell("parts", **case, durable=kind, messages_per_s=PARTS_RATE, **found)


def catch_up(count: int, size: int) -> None:
    """Measure a node that was offline while another broadcast `count` messages."""
    with tempfile.TemporaryDirectory() as folder, Workers(2) as both:
        new_group("bench").write(Path(folder) / "bench.key")
        order = {"do": "open", "kind": "group", "folder": folder}
        ann = both.tell(0, **order, name="ann", peers=[], durable="os")["address"]
        said = both.tell(0, do="say_alone", count=count, size=size)
        before = both.tell(0, do="memory")
        start = both.tell(1, do="memory")
        both.tell(1, **order, name="bob", peers=[ann], durable="disk")
        read = both.tell(1, do="read_alone", count=said["said"])
        bob, ann_after = both.tell(1, do="memory"), both.tell(0, do="memory")
        both.tell_all(do="close")
    tell(
        "catch-up",
        messages=said["said"],
        payload_bytes=size,
        per_cpu_s=round(said["said"] / read["cpu_seconds"]),
        per_s=round(said["said"] / read["seconds"]),
        said_per_cpu_s=round(said["said"] / said["cpu_seconds"]),
        peak_mb=round(bob["peak_kb"] / 1024),
        of_which_at_start_mb=round(start["rss_kb"] / 1024),
        sender_grew_mb=round((ann_after["peak_kb"] - before["rss_kb"]) / 1024),
    )


def idle() -> None:
    with tempfile.TemporaryDirectory() as folder, Workers(2) as both:
        new_group("bench").write(Path(folder) / "bench.key")
        peers: list[str] = []
        for index in range(2):
            order = {"do": "open", "kind": "group", "folder": folder, "durable": "disk"}
            peers.append(both.tell(index, **order, name=f"n{index}", peers=peers)["address"])
        memory = both.tell_all(do="memory")
        both.tell_all(do="close")
    tell("idle", rss_mb=round(max(m["rss_kb"] for m in memory) / 1024, 1))


def tell(bench: str, **found: Any) -> None:
    print(
        json.dumps({"bench": f"runtime/{bench}", **found, "python": platform.python_version()}),
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="*", default=[2, 8, 32])
    parser.add_argument("--sizes", type=int, nargs="*", default=[200, 16_384], choices=DELIVERIES)
    parser.add_argument("--layouts", nargs="*", default=["one", "each"])
    parser.add_argument("--durable", nargs="*", default=["disk", "os"])
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of messages")
    parser.add_argument("--rates", type=int, nargs="*", default=[], help="messages per second")
    parser.add_argument("--parts", action="store_true", help="where the CPU goes")
    parser.add_argument("--catch-up", type=int, default=100_000, metavar="N")
    args = parser.parse_args()
    if args.rates or args.parts:
        for nodes, size, kind in product(args.nodes, args.sizes, args.durable):
            if args.rates:
                at_rates(nodes, size, kind, args.rates)
            if args.parts:
                parts(nodes, size, kind, args.scale)
        return
    for nodes in args.nodes:
        for layout in args.layouts:
            for size in args.sizes:
                compare(nodes, layout, size, args.durable, args.scale)
    idle()
    if args.catch_up:
        catch_up(args.catch_up, 200)


if __name__ == "__main__":
    main()
