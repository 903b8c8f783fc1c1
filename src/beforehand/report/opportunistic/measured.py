"""Our runs, by what was run: the seeds of one protocol and lifetime are one group."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from beforehand.report.notation import show_lifetime

UNORDERED = "none"
"""The protocol that delivers what arrives. Its violations say what order is worth."""

PER_DELIVERY = {"bytes_per_delivery": "bytes", "frames_per_delivery": "frames"}

STUDENT = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""Student's t for 95 % on both sides, from one degree of freedom on."""
NORMAL = 1.96


@dataclass(frozen=True)
class Group:
    """Runs that differ in nothing but the seed."""

    protocol: str
    lifetime_us: int | None
    runs: tuple[Mapping[str, Any], ...]

    @property
    def label(self) -> str:
        return show_lifetime(self.lifetime_us)

    @property
    def first_run(self) -> str:
        """The run that the figures show, where they show a single one."""
        return str(self.runs[0]["run"])

    def values(self, quantity: str) -> list[float]:
        """One figure per seed."""
        if quantity == "expiry_ratio":
            return [_share(run["expired"], run["receptions"]) for run in self.runs]
        if whole := PER_DELIVERY.get(quantity):
            return [_share(run[whole], run["deliveries"]) for run in self.runs]
        # Null where a run received or delivered nothing: there is no delay to speak of.
        return [_figure(run[quantity], quantity) for run in self.runs]

    def mean(self, quantity: str) -> float:
        return fmean(self.values(quantity))

    def margin(self, quantity: str) -> float | None:
        """Half of the 95 % confidence interval of the mean; None where one seed says nothing."""
        return margin_of(self.values(quantity))


def margin_of(values: Sequence[float]) -> float | None:
    """By Student's t: the seeds are few, and their deviation is estimated from them too."""
    count = len(values)
    if count < 2 or any(math.isnan(value) for value in values):
        return None
    factor = STUDENT[count - 2] if count - 2 < len(STUDENT) else NORMAL
    return factor * stdev(values) / math.sqrt(count)


def _share(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")


def _figure(value: float | None, quantity: str) -> float:
    if value is None and (quantity.endswith("_ratio") or quantity == "reach"):
        return float("nan")  # a share of nothing is not zero
    return float(value or 0)


def group_runs(rows: Sequence[Mapping[str, Any]]) -> list[Group]:
    """Longest lifetime first, as the papers list them; none is the longest."""
    groups: dict[tuple[str, int | None], list[Mapping[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: (row["seed"], row["run"])):
        groups.setdefault((row["protocol"], row["lifetime_us"]), []).append(row)
    made = [Group(protocol, us, tuple(runs)) for (protocol, us), runs in groups.items()]
    return sorted(made, key=lambda group: (_rank(group.lifetime_us), group.protocol))


def causal_by_lifetime(groups: Sequence[Group]) -> dict[int | None, Group]:
    """The groups of the paper's two algorithms, which never share a lifetime."""
    return {g.lifetime_us: g for g in groups if g.protocol in ("causal", "delta")}


def _rank(lifetime_us: int | None) -> float:
    return float("-inf") if lifetime_us is None else -lifetime_us
