"""Compare published values with ours, and check whether the difference is within the tolerance."""

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
"""The rounding step of printed ratios (0.01 %). A difference of one step may be due to rounding."""


@dataclass(frozen=True)
class Claim:
    """One published value and ours."""

    quantity: str
    lifetime_us: int | None
    ours: float
    published: float
    tolerance: Tolerance | None
    """The allowed difference; None if the claim is shown but not judged."""
    reason: str
    """The known reason for a difference, or empty."""

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
    """The share of the messages below a limit, as published and as measured."""

    lifetime_us: int | None
    metric: str
    limit_us: int
    ours: float
    published: float


def compare(paper: Paper, groups: Mapping[int | None, Group]) -> list[Claim]:
    """Return every value of the paper for which there is a run, in the order of its tables."""
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
    """Return one ordering for each quantity that the paper ranks.

    Minima are left out: the shortest delay only shows the resolution of the clock or of the link.
    """
    rows: dict[str, list[Claim]] = {}
    for claim in claims:
        if not claim.quantity.endswith("_min"):
            rows.setdefault(claim.quantity, []).append(claim)
    return [_rank(paper, quantity, row) for quantity, row in rows.items() if _has_order(row)]


def _has_order(row: Sequence[Claim]) -> bool:
    return any(_differ(a, b) for a, b in combinations(row, 2))


def _differ(a: Claim, b: Claim) -> bool:
    """Return whether the published values differ, so that the paper ranks the two lifetimes."""
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
    """Return the lifetimes by decreasing value: `none > 120' = 60'`."""
    falling = sorted(values.items(), key=lambda item: -item[1])
    text = show_lifetime(falling[0][0])
    for (_, before), (lifetime_us, value) in pairwise(falling):
        text += f" {'=' if value == before else '>'} {show_lifetime(lifetime_us)}"
    return text


def compare_shares(
    paper: Paper, groups: Mapping[int | None, Group], quantiles: pd.DataFrame
) -> list[ShareClaim]:
    """Return the paper's sentences about its distributions, with our share at the same limit."""
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
    """Return the share of a run's delays or latencies below the limit; None without data."""
    chosen = quantiles[(quantiles["run"] == run) & (quantiles["metric"] == metric)]
    if chosen.empty:
        return None
    rows = chosen.sort_values("share")
    return float(np.interp(limit_us, rows["value_us"], rows["share"]))
