"""Every interleaving of small mobile networks: what the test suite has no time for. Claim: each of
these nets but the last was explored to its last state, nothing is wrong in any, and every phase
was seen.

    python benchmarks/explore_mobile.py                     all of them, a few minutes
    python benchmarks/explore_mobile.py --only "three messages, a move"
    python benchmarks/explore_mobile.py --only "two hosts, two messages, a move" --states 1000000
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from beforehand.check.case import Case
from beforehand.check.explore import explore
from beforehand.check.families.mobile import MobileFamily, Setup
from beforehand.core.mobile.pace import Pace

STATES_MAX = 150_000
"""Enough for all but those in `TOO_LARGE`, of which the shortest runs are tried."""


def net(says: tuple[int, ...], **trouble: Any) -> Case:
    """Two stations, a host for each entry of `says`; any host may crash."""
    hosts = tuple(range(2, 2 + len(says)))
    return Case(
        2 + len(says),
        (0, 0, *says),
        options=Setup(Pace()),
        edges=((0, 1),),
        stations=2,
        is_linked=True,
        mortal=hosts,
        **trouble,
    )


CASES = {
    "three messages, a move": net((3,), flaps=1),
    "two messages, a move, a loss": net((2,), flaps=1, losses=1),
    "two messages, a move, a crash": net((2,), flaps=1, crashes=1),
    "two moves, a loss, a double": net((1,), flaps=2, losses=1, doubles=1),
    "two hosts, a move, a loss": net((1, 0), flaps=1, losses=1),
    "two hosts, a leave, a loss": net((1, 0), leaves=1, losses=1),
    "two hosts, two messages, a move": net((1, 1), flaps=1),
}
TOO_LARGE = ("two hosts, two messages, a move",)
MUST_SEE = {"asking", "fetching", "going", "caught up", "complete", "lost", "doubled", "left"}
MUST_SEE |= {"moved", "crashed", "cut off", "restarted", "waited"}


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", choices=CASES)
    options.add_argument("--states", type=int, default=STATES_MAX, help="no more than these")
    args = options.parse_args()
    names = [args.only] if args.only else list(CASES)
    seen: set[str] = set()
    is_good = True
    for name in names:
        started = time.process_time()
        found = explore(MobileFamily(), CASES[name], args.states)
        seen |= found.seen
        is_good &= (found.is_complete or name in TOO_LARGE) and not found.problem
        row = {
            "bench": "explore/mobile",
            "case": name,
            "states": found.states,
            "transitions": found.transitions,
            "is_complete": found.is_complete,
            "problem": found.problem,
            "path": found.path,
            "cpu_s": round(time.process_time() - started, 1),
        }
        print(json.dumps(row), flush=True)
    missing = sorted(MUST_SEE - seen) if not args.only else []
    print(json.dumps({"bench": "explore/mobile", "never_seen": missing}))
    return 0 if is_good and not missing else 1


if __name__ == "__main__":
    sys.exit(main())
