"""Explore every interleaving of small mobile networks that are too large for the test suite. Claim:
each network was explored to its last state without a problem, and every phase was seen.

    python benchmarks/explore_mobile.py                     all of them
    python benchmarks/explore_mobile.py --protocol ck
    python benchmarks/explore_mobile.py --only "three messages, a move"
    python benchmarks/explore_mobile.py --large --states 20000000

Each network runs in its own process, which reports its peak memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from dataclasses import replace
from itertools import pairwise
from multiprocessing import get_context
from typing import Any

from beforehand.check.explore.explore import explore
from beforehand.check.families import FAMILIES
from beforehand.check.families.baselines import CkSetup
from beforehand.check.families.mobile import Setup
from beforehand.check.net.case import Case
from beforehand.protocols.mobile.pace import Pace
from beforehand.protocols.mobile.tcp_flooding.connection import Tcp

STATES_MAX = 3_000_000
KB = 1024  # ru_maxrss is in KiB

Trouble = dict[str, Any]

MOVING: dict[str, Trouble] = {
    "three messages, a move": {"broadcasts": (3,), "flaps": 1},
    "two messages, a move, a loss": {"broadcasts": (2,), "flaps": 1, "losses": 1},
    "two moves, a loss, a double": {"broadcasts": (1,), "flaps": 2, "losses": 1, "doubles": 1},
    "a join, two moves, a loss": {"broadcasts": (1,), "flaps": 2, "losses": 1, "is_linked": False},
    "three stations, two moves": {"broadcasts": (1,), "stations": 3, "flaps": 2},
    "two hosts, a move, a loss": {"broadcasts": (1, 0), "flaps": 1, "losses": 1},
    "two hosts, a move, an early timer": {"broadcasts": (1, 0), "flaps": 1, "early_timers": 1},
    "two hosts, two messages, a move": {"broadcasts": (1, 1), "flaps": 1},
}
BY_WAS: dict[str, Trouble] = {
    "three messages, a move, a loss": {"broadcasts": (3,), "flaps": 1, "losses": 1},
    "two messages, a move, an early timer": {"broadcasts": (2,), "flaps": 1, "early_timers": 1},
    "two messages, two moves, a loss": {"broadcasts": (2,), "flaps": 2, "losses": 1},
    "two messages, a move, a crash": {"broadcasts": (2,), "flaps": 1, "crashes": 1},
    "a leave, a move, a crash": {"broadcasts": (1,), "leaves": 1, "flaps": 1, "crashes": 1},
    "two hosts, a leave, a loss": {"broadcasts": (1, 0), "leaves": 1, "losses": 1},
    "two hosts, a leave, a crash": {"broadcasts": (1, 0), "leaves": 1, "crashes": 1},
    "two hosts, a move, a crash": {"broadcasts": (1, 0), "flaps": 1, "crashes": 1},
}
"""Not for CK: its hosts neither crash nor leave, and the first three would take long."""
STAYING: dict[str, Trouble] = {
    "three messages, a loss": {"broadcasts": (3,), "losses": 1},
    "two messages, a loss, a double": {"broadcasts": (2,), "losses": 1, "doubles": 1},
    "two hosts, two messages, a loss": {"broadcasts": (1, 1), "losses": 1},
    "two hosts, two messages, an early timer": {"broadcasts": (1, 1), "early_timers": 1},
    "two hosts, three messages, a loss, a double": {
        "broadcasts": (2, 1),
        "losses": 1,
        "doubles": 1,
    },
}
LARGE: dict[str, Trouble] = {
    "two messages, two moves, a crash": {"broadcasts": (2,), "flaps": 2, "crashes": 1},
    "two hosts, two messages, a move, a loss": {"broadcasts": (1, 1), "flaps": 1, "losses": 1},
    "two hosts, three messages, a move": {"broadcasts": (2, 1), "flaps": 1},
}
CASES = {
    "was": MOVING | BY_WAS,
    "was_flood": MOVING | BY_WAS,
    "ck": MOVING,
    "tcp_flooding": STAYING,
}
OPTIONS = {"ck": CkSetup(Pace()), "tcp_flooding": Tcp(window=1)}
MUST_SEE = {"asking", "fetching", "going", "caught up", "complete", "lost", "doubled", "left"}
MUST_SEE |= {"moved", "crashed", "cut off", "restarted", "waited"}
"""The phases that must be seen with WAS, which is the protocol `mobile`."""


def net(protocol: str, broadcasts: tuple[int, ...], stations: int = 2, **rest: Any) -> Case:
    """Return a line of stations with one host per entry of `broadcasts`; any host may crash."""
    nodes = stations + len(broadcasts)
    case = Case(
        nodes,
        (*(0,) * stations, *broadcasts),
        options=OPTIONS.get(protocol, Setup(Pace())),
        edges=tuple(pairwise(range(stations))),
        stations=stations,
        is_linked=True,
        mortal=tuple(range(stations, nodes)),
    )
    return replace(case, **rest)


def run(protocol: str, name: str, trouble: Trouble, states_max: int) -> Trouble:
    kb_before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    found = explore(FAMILIES[protocol], net(protocol, **trouble), states_max)
    cpu_s = time.process_time() - started
    kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "bench": "explore/mobile",
        "protocol": protocol,
        "case": name,
        "states": found.states,
        "transitions": found.transitions,
        "is_complete": found.is_complete,
        "problem": found.problem,
        "path": found.path,
        "cpu_s": round(cpu_s, 1),
        "states_per_cpu_s": round(found.states / cpu_s),
        "bytes_per_state": round((kb - kb_before) * KB / found.states),
        "peak_mb": round(kb / KB),
        "seen": sorted(found.seen),
    }


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--protocol", choices=CASES)
    options.add_argument("--only", choices=sorted(MOVING | BY_WAS | STAYING | LARGE))
    options.add_argument("--large", action="store_true", help="those that take long, with WAS")
    options.add_argument("--states", type=int, default=STATES_MAX, help="no more than these")
    args = options.parse_args()
    cases = {"was": LARGE} if args.large else CASES
    rows = [
        (protocol, name, trouble, args.states)
        for protocol in ([args.protocol] if args.protocol else cases)
        for name, trouble in cases[protocol].items()
        if args.only in (None, name)
    ]
    seen: set[str] = set()
    is_good = bool(rows)
    with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for row in pool.imap(_run, rows, chunksize=1):
            seen |= set(row["seen"]) if row["protocol"] == "was" else set()
            is_good &= row["is_complete"] and not row["problem"]
            print(json.dumps(row), flush=True)
    missing = sorted(MUST_SEE - seen) if rows[0][0] == "was" and not args.only else []
    print(json.dumps({"bench": "explore/mobile", "never_seen": missing}))
    return 0 if is_good and not missing else 1


def _run(row: tuple[str, str, Trouble, int]) -> Trouble:
    return run(*row)


if __name__ == "__main__":
    sys.exit(main())
