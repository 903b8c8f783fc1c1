"""Shrink a failing run to few moves that still make it fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from beforehand.check.net.case import Case, Family
from beforehand.check.net.heal import heal
from beforehand.check.net.net import Move, Net, make_net
from beforehand.check.net.thresholds import in_force
from beforehand.protocols.contract.base import Core

RUNS_MAX = 2_000
MakeCore = Callable[[Case, int], Core[Any]]


def rerun(
    family: Family, case: Case, moves: Sequence[Move], make_core: MakeCore | None = None
) -> Net:
    """Play the moves again, ignoring those that are impossible, and heal the net."""
    with in_force(case.thresholds):
        net = make_net(family, case, make_core)
        for move in moves:
            net.do(move)
            if net.problem:
                return net
        heal(net)
    return net


def shrink(
    family: Family, case: Case, moves: Sequence[Move], make_core: MakeCore | None = None
) -> list[Move]:
    """Return few of the moves that still fail.

    Remove blocks of moves, then single moves, as long as a problem remains."""
    few, size, runs = list(moves), max(1, len(moves) // 2), 0
    while runs < RUNS_MAX:
        at, before = 0, len(few)
        while at < len(few) and runs < RUNS_MAX:
            rest = few[:at] + few[at + size :]
            runs += 1
            if rerun(family, case, rest, make_core).problem:
                few = rest
            else:
                at += size
        if size == 1 and len(few) == before:
            return few
        size = max(1, size // 2)
    return few
