"""Real nodes on a faulty network. Claim: whatever a seed draws, after healing every node has all
messages, none was delivered twice or out of order, and no guaranteed message is lost.

    python benchmarks/soak_runtime.py --seeds 500
    python benchmarks/soak_runtime.py --start 17 --seeds 1 --nodes 20     one seed, as it is named
    python benchmarks/soak_runtime.py --kills 100                         kill -9 and nothing else

A seed is up to 20 processes, each in its own network namespace, and a switch that drops, delays,
duplicates and reorders packets. Further faults: partitions, unplugged cables, processes that are
killed, frozen and restarted, clocks that differ and jump. Where namespaces are not permitted, the
test uses plain loopback without packet faults, and the output line says so.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from soak.draw import Case, draw_case, draw_kills_case
from soak.judge import Judged, judge
from soak.kinds import KINDS
from soak.play import STUCK_SECONDS, Played, cpu_seconds, play, warm_up
from soak.sabotage import SABOTAGES, break_nodes

KILLS_NODES = 5
MEMORY = "/dev/shm"
SUMMED_PLAYED = (
    *("kills", "ends", "freezes", "partitions", "unplugged", "packets", "packets_lost"),
    *("packets_doubled", "packets_overtaken"),
)
SUMMED_JUDGED = (
    *("broadcasts", "deliveries", "violations", "duplicates", "lost", "cut_off", "again"),
    "expired",
)


@dataclass
class Total:
    """The totals over all seeds."""

    sums: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    networks: set[str] = field(default_factory=set)
    failed: list[int] = field(default_factory=list)
    healed_s_max: float = 0.0
    cpu_s: float = 0.0

    def add(self, case: Case, played: Played, judged: Judged) -> None:
        for names, part in ((SUMMED_PLAYED, played), (SUMMED_JUDGED, judged)):
            self.sums.update({name: getattr(part, name) for name in names})
        self.sums["nodes"] += len(case.nodes)
        self.refusals.update(played.refusals)
        self.networks.add(played.network)
        self.healed_s_max = max(self.healed_s_max, played.healed_s)


def main() -> int:
    args = _parser().parse_args()
    break_nodes(args.sabotage)
    warm_up()
    total, started = Total(), time.perf_counter()
    for seed in range(args.start, args.start + args.seeds):
        _run_seed(args, seed, total)
    line = {
        "bench": "soak/kills" if args.kills else "soak",
        "kind": args.kind,
        "network": "+".join(sorted(total.networks)),
        "start": args.start,
        "seeds": args.seeds,
        **{name: total.sums[name] for name in ("nodes", *SUMMED_PLAYED, *SUMMED_JUDGED)},
        "failed_seeds": total.failed,
        "refusals": dict(total.refusals.most_common()),
        "healed_s_max": round(total.healed_s_max, 2),
        "cpu_s": round(total.cpu_s, 1),
        "wall_s": round(time.perf_counter() - started, 1),
        "python": platform.python_version(),
    }
    print(json.dumps(line), flush=True)
    return 1 if total.failed else 0


def _run_seed(args: argparse.Namespace, seed: int, total: Total) -> None:
    if args.kills:
        stations = KINDS[args.kind].stations
        case = draw_kills_case(seed, args.nodes or KILLS_NODES, args.kills, stations)
    else:
        case = draw_case(seed, args.nodes or 20)
    # A kill does not affect the page cache, so a disk would only be slower.
    memory = MEMORY if os.access(MEMORY, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix=f"soak-{seed}-", dir=memory))
    started = time.perf_counter()
    with cpu_seconds() as spent:
        played = play(case, args.kind, folder, is_loopback=args.loopback, stuck_s=args.patience)
        judged = (
            Judged() if played.failures else judge(case.nodes[KINDS[args.kind].stations :], folder)
        )
    total.cpu_s += spent[0]
    total.add(case, played, judged)
    if args.verbose:
        told: dict[str, Any] = {"seed": seed, **vars(played), **vars(judged)}
        told |= {"cpu_s": round(spent[0], 1), "wall_s": round(time.perf_counter() - started, 1)}
        print(json.dumps(told), file=sys.stderr)
    problems = [*played.failures, *judged.problems]
    if args.kills and played.kills != args.kills:
        problems.append(f"{played.kills} kills, and not {args.kills}")
    if problems:
        total.failed.append(seed)
        _tell(args, seed, problems, folder)
    shutil.rmtree(folder)


def _tell(args: argparse.Namespace, seed: int, problems: list[str], found: Path) -> None:
    """Print the problems, the folder with all files of the nodes, and the command to repeat it."""
    folder = Path(tempfile.mkdtemp(prefix=f"soak-{seed}-"))
    shutil.copytree(found, folder, dirs_exist_ok=True)
    print(f"seed {seed}: {len(problems)} problems; what it left is in {folder}", file=sys.stderr)
    for problem in problems:
        print(f"  {problem}", file=sys.stderr)
    for errors in sorted(folder.glob("*.err")):
        if told_last := errors.read_text().strip().splitlines()[-1:]:
            print(f"  {errors.name}: {told_last[0]}", file=sys.stderr)
    print(f"  repeat: {_command(args, seed)}", file=sys.stderr, flush=True)


def _command(args: argparse.Namespace, seed: int) -> str:
    options = [f"--start {seed} --seeds 1"]
    options += [f"--nodes {args.nodes}"] if args.nodes else []
    options += [f"--kills {args.kills}"] if args.kills else []
    options += [f"--kind {args.kind}"] if args.kind != "group" else []
    options += ["--loopback"] if args.loopback else []
    options += [f"--break {args.sabotage}"] if args.sabotage else []
    return f"python benchmarks/soak_runtime.py {' '.join(options)}"


def _parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    options.add_argument("--seeds", type=int, default=10)
    options.add_argument("--start", type=int, default=1, help="the first seed")
    options.add_argument("--nodes", type=int, help="at most so many; 20, or with --kills 5")
    options.add_argument("--kills", type=int, default=0, help="so many in each seed, and no more")
    options.add_argument("--kind", choices=sorted(KINDS), default="group", help="of nodes")
    options.add_argument("--loopback", action="store_true", help="no namespaces, nor bad packets")
    options.add_argument(
        "--patience", type=float, default=STUCK_SECONDS, help="seconds without progress"
    )
    options.add_argument("--break", choices=sorted(SABOTAGES), default="", dest="sabotage")
    options.add_argument("--verbose", action="store_true", help="a line for each seed, on stderr")
    return options


if __name__ == "__main__":
    sys.exit(main())
