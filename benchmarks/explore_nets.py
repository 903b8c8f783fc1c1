"""Explore every interleaving of small contact networks and groups that are too large for the test
suite. Claim: no network has a problem; `is_complete` says whether it was explored to its last
state.

    python benchmarks/explore_nets.py                       all of them
    python benchmarks/explore_nets.py --no-reductions       without symmetry and ample sets
    python benchmarks/explore_nets.py --only "triangle, three messages"
    python benchmarks/explore_nets.py --liveness            search for fair cycles

Each network runs in its own process, which reports its peak memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

from beforehand.check.explore.explore import explore
from beforehand.check.explore.liveness import find_fair_cycle
from beforehand.check.explore.small_nets import (
    DIGESTS,
    FULL,
    LINE,
    LONG,
    NEWEST,
    PAIR,
    PUSH,
    RETRY,
    SKIPS,
    SMALLEST,
    TRIANGLE,
    epidemic_net,
    group_net,
    make_epidemic,
    make_group,
    make_stamped,
)
from beforehand.check.families.contacts import ContactsFamily
from beforehand.check.families.group import GroupFamily
from beforehand.check.net.case import Case
from beforehand.protocols.epidemic.options import Flow, Options
from beforehand.protocols.orders.order import Lifetimes

STATES_MAX = 1_500_000
LIVENESS_MAX = 100_000
KB = 1024  # ru_maxrss is in KiB
SOON = Lifetimes(3, 3, skew_us=2)
"""Lifetimes of a few µs: the explorer lets a message expire at every instant."""
DELTA: dict[str, Any] = {"lifetimes": SOON, "lifetimes_us": (3,)}
TWO_LIVES: dict[str, Any] = {"lifetimes": Lifetimes(5, 5, skew_us=0), "lifetimes_us": (2, 5)}
SHIFTS: dict[str, Any] = {"shift_us": 9, "shift_span_us": 9}
FULL_DIGESTS = Options(transfer="newest", push=True, digest_after=0, capacity=1)
LATE_NEWS = Flow(window=1, offers_max=1, pushes_max=1, stall_us=4_000_000)

CONTACTS: dict[str, Case] = {
    "triangle, three messages": epidemic_net(NEWEST, TRIANGLE, (1, 1, 1)),
    "triangle, three pushed messages": epidemic_net(PUSH, TRIANGLE, (1, 1, 1)),
    "triangle, three messages of two nodes": epidemic_net(NEWEST, TRIANGLE, (2, 1, 0)),
    "line, version vectors, three messages, a flap": epidemic_net(
        DIGESTS, LINE, (1, 1, 1), flaps=1
    ),
    "line, version vectors, two messages, a flap": epidemic_net(DIGESTS, LINE, (1, 1, 0), flaps=1),
    "line, a loss, a double, a crash": epidemic_net(
        RETRY, LINE, (1, 0, 0), losses=1, doubles=1, crashes=1
    ),
    "line, a loss, a crash": epidemic_net(RETRY, LINE, (1, 0, 0), losses=1, crashes=1),
    "pair, two messages, a loss, a crash": epidemic_net(RETRY, PAIR, (1, 1), losses=1, crashes=1),
    "line, pushes, a flap, a crash": epidemic_net(PUSH, LINE, (1, 0, 0), flaps=1, crashes=1),
    "line, version vectors, a flap, a crash": epidemic_net(
        DIGESTS, LINE, (1, 0, 0), flaps=1, crashes=1
    ),
    "line, capacity 1, three messages": epidemic_net(FULL, LINE, (1, 1, 1)),
    "triangle, capacity 1, two messages": epidemic_net(FULL, TRIANGLE, (1, 1, 0)),
    "line, capacity 1, two messages, a flap": epidemic_net(FULL, LINE, (1, 1, 0), flaps=1),
    "line, capacity 1, version vectors, a flap": epidemic_net(
        FULL_DIGESTS, LINE, (1, 1, 0), flaps=1
    ),
    "pair, capacity 1, two messages, a crash": epidemic_net(FULL, PAIR, (1, 1), crashes=1),
}
TIMED: dict[str, Case] = {
    "pair, lifetimes": epidemic_net(PUSH, PAIR, (1, 1), **DELTA),
    "line, lifetimes, two messages": epidemic_net(PUSH, LINE, (1, 1, 0), **DELTA),
    "line, two lifetimes, two messages": epidemic_net(PUSH, LINE, (1, 1, 0), **TWO_LIVES),
    "line, lifetimes, a flap": epidemic_net(PUSH, LINE, (1, 1, 0), flaps=1, **DELTA),
    "line, lifetimes, a clock is set": epidemic_net(
        PUSH, LINE, (1, 1, 0), settings=1, skew_us=1, ahead_us=(0, 1, 0), **DELTA
    ),
    "line, lifetimes, all clocks are set": epidemic_net(
        PUSH, LINE, (1, 1, 0), shifts=1, **SHIFTS, **DELTA
    ),
    "pair, lifetimes, a clock and all clocks are set": epidemic_net(
        PUSH, PAIR, (1, 1), settings=1, shifts=1, skew_us=1, ahead_us=(0, 1), **SHIFTS, **DELTA
    ),
    "pair, lifetimes, a clock is set, a crash": epidemic_net(
        PUSH, PAIR, (1, 1), settings=1, skew_us=1, ahead_us=(0, 1), crashes=1, **DELTA
    ),
}
GROUPS: dict[str, Case] = {
    "pair, window 1, three messages": group_net(PAIR, (2, 1)),
    "line, window 1, three messages": group_net(LINE, (1, 1, 1)),
    "line, window 1, two messages, a flap": group_net(LINE, (1, 1, 0), flaps=1),
    "triangle, window 1, two messages": group_net(TRIANGLE, (1, 1, 0)),
    "pair, little room, three messages": group_net(PAIR, (2, 1), room_bytes=1),
    "line, little room, two messages": group_net(LINE, (1, 1, 0), room_bytes=1),
    "line, an application stops reading": group_net(LINE, (1, 1, 0), pauses=1),
    "pair, little room, an application stops reading twice": group_net(
        PAIR, (1, 1), pauses=2, room_bytes=1
    ),
    "pair, late disk, two messages, a crash": group_net(PAIR, (1, 1), crashes=1, is_disk_late=True),
    "pair, late disk, a crash, a flap": group_net(
        PAIR, (1, 1), crashes=1, flaps=1, is_disk_late=True
    ),
    "line, late disk, a crash": group_net(LINE, (1, 0, 0), crashes=1, is_disk_late=True),
    "pair, capacity 1, two messages, a flap": group_net(PAIR, (1, 1), capacity=1, flaps=1),
    "line, capacity 1, two messages": group_net(LINE, (1, 1, 0), capacity=1),
    "pair, announcements wait, two messages, a flap": group_net(PAIR, (1, 1), LATE_NEWS, flaps=1),
    "pair, window 1, an early timer": replace(group_net(PAIR, (1, 1), SMALLEST), early_timers=1),
}
FREE: dict[str, Any] = {"lifetimes": Lifetimes(5, 5, skew_us=1), "lifetimes_us": (2, 5)}
STAMPED: dict[str, Case] = {
    "pair, lifetimes": epidemic_net(PUSH, PAIR, (1, 1), **DELTA),
    "line, lifetimes, two messages": epidemic_net(PUSH, LINE, (1, 1, 0), **DELTA),
    "line, two lifetimes, two messages": epidemic_net(PUSH, LINE, (1, 1, 0), **FREE),
    "line, two lifetimes, a flap": epidemic_net(PUSH, LINE, (1, 1, 0), flaps=1, **FREE),
    "line, lifetimes, a clock is set": epidemic_net(
        PUSH, LINE, (1, 1, 0), settings=1, skew_us=1, ahead_us=(0, 1, 0), **DELTA
    ),
    "line, lifetimes, all clocks are set": epidemic_net(
        PUSH, LINE, (1, 1, 0), shifts=1, **SHIFTS, **DELTA
    ),
    "pair, lifetimes, a clock is set, a crash": epidemic_net(
        PUSH, PAIR, (1, 1), settings=1, skew_us=1, ahead_us=(0, 1), crashes=1, **DELTA
    ),
    "pair, skips, three messages, a flap": epidemic_net(SKIPS, PAIR, (2, 1), LONG, flaps=1),
    "line, skips, three messages": epidemic_net(SKIPS, LINE, (2, 1, 0), LONG),
    "line, skips, two messages, a flap": epidemic_net(SKIPS, LINE, (1, 1, 0), LONG, flaps=1),
    "line, skips, a newcomer, a crash": epidemic_net(
        SKIPS, LINE, (2, 0, 0), LONG, crashes=1, absent=(2,)
    ),
}
STAMPED_GROUPS: dict[str, Case] = {
    "pair, window 1, three messages": group_net(PAIR, (2, 1), order="stamped"),
    "line, capacity 1, two messages": group_net(LINE, (1, 1, 0), capacity=1, order="stamped"),
    "pair, late disk, two messages, a crash": group_net(
        PAIR, (1, 1), crashes=1, is_disk_late=True, order="stamped"
    ),
    "pair, capacity 1, three messages, a flap": group_net(
        PAIR, (2, 1), capacity=1, flaps=1, order="stamped"
    ),
}
NETS = {
    **{
        f"contacts: {name}": (ContactsFamily("causal"), net, make_epidemic)
        for name, net in CONTACTS.items()
    },
    **{
        f"delta: {name}": (ContactsFamily("delta"), net, make_epidemic)
        for name, net in TIMED.items()
    },
    **{f"group: {name}": (GroupFamily(), net, make_group) for name, net in GROUPS.items()},
    **{
        f"stamped: {name}": (ContactsFamily("stamped"), net, make_stamped)
        for name, net in STAMPED.items()
    },
    **{
        f"group_stamped: {name}": (GroupFamily("stamped"), net, make_group)
        for name, net in STAMPED_GROUPS.items()
    },
}


def run(name: str, states_max: int, *, reductions: bool) -> dict[str, Any]:
    """Explore one network."""
    started = time.process_time()
    family, net, make = NETS[name]
    found = explore(family, net, states_max, make, reductions=reductions)
    return {
        "bench": "explore/nets",
        "net": name,
        "reductions": reductions,
        "states": found.states,
        "transitions": found.transitions,
        "at_rest": found.quiet,
        "reduced": found.reduced,
        "is_complete": found.is_complete,
        "asymmetry": found.asymmetry,
        "problem": found.problem,
        "path": found.path,
        "cpu_s": round(time.process_time() - started, 1),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KB),
        "seen": sorted(found.seen),
    }


def run_liveness(name: str, states_max: int) -> dict[str, Any]:
    """Search one network for fair cycles."""
    started = time.process_time()
    family, net, make = NETS[name]
    found = find_fair_cycle(family, net, states_max, make)
    return {
        "bench": "explore/liveness",
        "net": name,
        "states": found.states,
        "cycles": found.cycles,
        "is_complete": found.is_complete,
        "problem": found.problem,
        "path": found.path,
        "cycle": found.cycle,
        "cpu_s": round(time.process_time() - started, 1),
    }


def main() -> int:
    """Print a line of JSON for every network; return 1 if one of them has a problem."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", help="the nets whose names contain this")
    options.add_argument("--no-reductions", action="store_true")
    options.add_argument("--liveness", action="store_true")
    options.add_argument("--states", type=int, help="no more than these")
    args = options.parse_args()
    states_max = args.states or (LIVENESS_MAX if args.liveness else STATES_MAX)
    names = [name for name in NETS if not args.only or args.only in name]
    rows = [(name, states_max, args.liveness, not args.no_reductions) for name in names]
    is_good = bool(rows)
    with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for row in pool.imap(_run, rows, chunksize=1):
            is_good &= not row["problem"]
            print(json.dumps(row), flush=True)
    return 0 if is_good else 1


def _run(row: tuple[str, int, bool, bool]) -> dict[str, Any]:
    name, states_max, is_liveness, reductions = row
    if is_liveness:
        return run_liveness(name, states_max)
    return run(name, states_max, reductions=reductions)


if __name__ == "__main__":
    sys.exit(main())
