"""Group our runs: the seeds of one protocol and lifetime form one group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from beforehand.errors import InputError, choose
from beforehand.interval import margin_of
from beforehand.promises import PROMISES, Promise
from beforehand.protocols.registry import find_protocol
from beforehand.report.notation import show_lifetime

PER_DELIVERY = {"bytes_per_delivery": "bytes", "frames_per_delivery": "frames"}


@dataclass(frozen=True)
class RunGroup:
    """Runs that differ only in the seed."""

    protocol: str
    lifetime_us: int | None
    runs: tuple[Mapping[str, Any], ...]
    point: str = ""
    """The values of the swept keys in words; empty without a sweep."""
    is_replicated: bool = True
    """Whether the seeds are replications, so that an interval of their mean says something."""

    @property
    def label(self) -> str:
        return show_lifetime(self.lifetime_us)

    @property
    def promise(self) -> Promise:
        return promise_of(self.runs[0])

    @property
    def first_run(self) -> str:
        """The run that is shown in figures of a single run."""
        return str(self.runs[0]["run"])

    def values(self, quantity: str) -> list[float]:
        """Return one value per seed."""
        if quantity == "expiry_ratio":
            return [_share(run["expired"], run["receptions"]) for run in self.runs]
        if whole := PER_DELIVERY.get(quantity):
            return [_share(run[whole], run["deliveries"]) for run in self.runs]
        # Null if a run received or delivered nothing, so that there is no delay.
        return [float("nan") if run[quantity] is None else run[quantity] for run in self.runs]

    def mean(self, quantity: str) -> float:
        return fmean(self.values(quantity))

    def margin(self, quantity: str) -> float | None:
        """Return half of the 95 % confidence interval of the mean; None for one seed, and if the
        seeds are no replications."""
        if not self.is_replicated:
            return None
        return margin_of(self.values(quantity))


def promise_of(run: Mapping[str, Any]) -> Promise:
    """Return what the protocol of a run promises. The violations of one that promises no order
    show the benefit of ordering."""
    promise: str = run["promise"]
    if promise not in PROMISES:
        problem, hint = f"no such promise: `{promise}`", choose(promise, PROMISES)
        raise InputError(problem, where=f"run `{run['run']}`", hint=hint)
    return PROMISES[promise]


def is_of_the_paper(protocol: str) -> bool:
    found = find_protocol(protocol)
    return found is not None and found.is_of_the_paper


def _share(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")


def group_runs(
    rows: Sequence[Mapping[str, Any]], points: Sequence[str] = (), *, is_replicated: bool = True
) -> list[RunGroup]:
    """Return the groups with the longest lifetime first, like the papers; no lifetime is the
    longest.

    points: the points of a sweep in their order.
    """
    rank = {point: at for at, point in enumerate(dict.fromkeys(points))}
    groups: dict[tuple[str, int | None, str], list[Mapping[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: (row["seed"], row["run"])):
        key = (row["protocol"], row["lifetime_us"], row.get("point", ""))
        groups.setdefault(key, []).append(row)
    made = [RunGroup(p, us, tuple(r), at, is_replicated) for (p, us, at), r in groups.items()]
    return sorted(
        made, key=lambda g: (_rank(g.lifetime_us), g.protocol, rank.get(g.point, 0), g.point)
    )


def causal_by_lifetime(groups: Sequence[RunGroup]) -> dict[int | None, RunGroup]:
    """Return the groups of the paper's two algorithms, which never share a lifetime."""
    found: dict[int | None, RunGroup] = {}
    for group in groups:
        if is_of_the_paper(group.protocol):
            found.setdefault(group.lifetime_us, group)  # of a sweep: the first point
    return found


def _rank(lifetime_us: int | None) -> float:
    return float("-inf") if lifetime_us is None else -lifetime_us
