"""Ours beside theirs: what was published, what we measured, and whether that is near enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from statistics import fmean

import numpy as np
import pandas as pd

from beforehand.papers.opportunistic import Paper, Tolerance
from beforehand.report.notation import show_lifetime
from beforehand.report.opportunistic.measured import Group

RATIOS = ("delivery_ratio", "expiry_ratio")
RATIO_STEP = 1e-4
"""Printed with two decimals of a per cent: one step apart, rounding may have made the order."""


@dataclass(frozen=True)
class Claim:
    """One published figure and ours."""

    quantity: str
    lifetime_us: int | None
    ours: float
    published: float
    tolerance: Tolerance | None
    """None: shown, not judged."""
    reason: str
    """Why ours may differ, where that is known."""

    @property
    def is_met(self) -> bool | None:
        if self.tolerance is None:
            return None
        return self.tolerance.allows(self.ours, self.published)


@dataclass(frozen=True)
class Ordering:
    """How one quantity ranks the lifetimes, as published and as measured."""

    quantity: str
    ours: str
    published: str
    is_met: bool
    reason: str


@dataclass(frozen=True)
class ShareClaim:
    """Which share of the messages is below a limit, as published and as measured."""

    lifetime_us: int | None
    metric: str
    limit_us: int
    ours: float
    published: float


def compare(paper: Paper, groups: Mapping[int | None, Group]) -> list[Claim]:
    """Every figure of the paper for which there is a run, in the order of its tables."""
    return [
        Claim(
            quantity=quantity,
            lifetime_us=lifetime_us,
            ours=groups[lifetime_us].mean(quantity),
            published=value,
            tolerance=paper.tolerance.get(quantity),
            reason=paper.reason(f"{quantity}/{show_lifetime(lifetime_us)}"),
        )
        for lifetime_us, row in paper.runs.items()
        if lifetime_us in groups
        for quantity, value in row.items()
    ]


def rank(paper: Paper, claims: Sequence[Claim]) -> list[Ordering]:
    """One per quantity that the paper ranks at all.

    Minima are left out: the shortest delay is the finest step of a clock and of a link, and ranks
    nothing.
    """
    rows: dict[str, list[Claim]] = {}
    for claim in claims:
        if not claim.quantity.endswith("_min"):
            rows.setdefault(claim.quantity, []).append(claim)
    return [_rank(paper, quantity, row) for quantity, row in rows.items() if _has_order(row)]


def _has_order(row: Sequence[Claim]) -> bool:
    return any(_differ(a, b) for a, b in combinations(row, 2))


def _differ(a: Claim, b: Claim) -> bool:
    """Whether the paper ranks the two: a tie asks for nothing."""
    step = RATIO_STEP if a.quantity in RATIOS else 0
    return abs(a.published - b.published) > 1.5 * step


def _rank(paper: Paper, quantity: str, row: Sequence[Claim]) -> Ordering:
    is_met = all(
        (a.published - b.published) * (a.ours - b.ours) > 0
        for a, b in combinations(row, 2)
        if _differ(a, b)
    )
    return Ordering(
        quantity,
        _chain({claim.lifetime_us: claim.ours for claim in row}),
        _chain({claim.lifetime_us: claim.published for claim in row}),
        is_met,
        paper.reason(f"order/{quantity}"),
    )


def _chain(values: Mapping[int | None, float]) -> str:
    """The lifetimes by falling value: `none > 120' = 60'`."""
    falling = sorted(values.items(), key=lambda item: -item[1])
    text = show_lifetime(falling[0][0])
    for (_, before), (lifetime_us, value) in pairwise(falling):
        text += f" {'=' if value == before else '>'} {show_lifetime(lifetime_us)}"
    return text


def compare_shares(
    paper: Paper, groups: Mapping[int | None, Group], quantiles: pd.DataFrame
) -> list[ShareClaim]:
    """The sentences of the paper about its distributions, with our share at the same limit."""
    claims = []
    for said in paper.quantiles:
        if said.lifetime_us not in groups:
            continue
        runs = [str(run["run"]) for run in groups[said.lifetime_us].runs]
        shares = [share_below(quantiles, run, said.metric, said.limit_us) for run in runs]
        known = [share for share in shares if share is not None]
        if known:
            claims.append(
                ShareClaim(said.lifetime_us, said.metric, said.limit_us, fmean(known), said.share)
            )
    return claims


def share_below(quantiles: pd.DataFrame, run: str, metric: str, limit_us: int) -> float | None:
    """Which share of a run's delays or latencies is below the limit; None where none is known."""
    chosen = quantiles[(quantiles["run"] == run) & (quantiles["metric"] == metric)]
    if chosen.empty:
        return None
    rows = chosen.sort_values("share")
    return float(np.interp(limit_us, rows["value_us"], rows["share"]))
