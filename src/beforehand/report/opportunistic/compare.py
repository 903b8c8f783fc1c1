"""Compare published values with ours, and judge the claims about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from statistics import fmean

import numpy as np
import pandas as pd

from beforehand.papers.claims import IS_MET, Claim, judge
from beforehand.papers.opportunistic import Paper, Quantile
from beforehand.report.notation import show_lifetime
from beforehand.report.opportunistic.measured import RunGroup

RATIOS = ("delivery_ratio", "expiry_ratio")
RATIO_STEP = 1e-4
"""The rounding step of printed ratios (0.01 %). A difference of one step may be due to rounding."""


@dataclass(frozen=True)
class Compared:
    """A claim about one number of a published table, with our number."""

    claim: Claim
    lifetime_us: int | None
    ours: float
    published: float

    @property
    def quantity(self) -> str:
        return self.claim.metric

    @property
    def is_met(self) -> bool | None:
        return IS_MET.get(judge(self.claim, (self.ours,)))


@dataclass(frozen=True)
class Ordering:
    """How one quantity ranks the lifetimes, as published and as measured."""

    quantity: str
    ours: str
    published: str
    is_met: bool
    reason: str


@dataclass(frozen=True)
class ComparedShare:
    """A claim about the share of the messages below a limit, with our share."""

    quantile: Quantile
    ours: float
    published: float

    @property
    def row(self) -> dict[str, object]:
        """The row of the table for machines."""
        return {
            "lifetime_us": self.quantile.lifetime_us,
            "metric": self.quantile.claim.metric,
            "limit_us": self.quantile.limit_us,
            "ours": self.ours,
            "published": self.published,
        }


def compare(paper: Paper, groups: Mapping[int | None, RunGroup]) -> list[Compared]:
    """Return every value of the paper for which there is a run, in the order of its tables."""
    return [
        Compared(
            paper.claim(quantity, paper.reason(f"{quantity}/{show_lifetime(lifetime_us)}")).about(
                value
            ),
            lifetime_us,
            groups[lifetime_us].mean(quantity),
            value,
        )
        for lifetime_us, row in paper.runs.items()
        if lifetime_us in groups
        for quantity, value in row.items()
    ]


def rank(paper: Paper, claims: Sequence[Compared]) -> list[Ordering]:
    """Return one ordering for each quantity that the paper ranks.

    Minima are left out: the shortest delay only shows the resolution of the clock or of the link.
    """
    rows: dict[str, list[Compared]] = {}
    for claim in claims:
        if not claim.quantity.endswith("_min"):
            rows.setdefault(claim.quantity, []).append(claim)
    return [_rank(paper, quantity, row) for quantity, row in rows.items() if _has_order(row)]


def _has_order(row: Sequence[Compared]) -> bool:
    return any(_differ(a, b) for a, b in combinations(row, 2))


def _differ(a: Compared, b: Compared) -> bool:
    """Return whether the published values differ, so that the paper ranks the two lifetimes."""
    step = RATIO_STEP if a.quantity in RATIOS else 0
    return abs(a.published - b.published) > 1.5 * step


def _rank(paper: Paper, quantity: str, row: Sequence[Compared]) -> Ordering:
    claim = paper.claim("order", paper.reason(f"order/{quantity}"))
    agreement = [
        (a.published - b.published) * (a.ours - b.ours)
        for a, b in combinations(row, 2)
        if _differ(a, b)
    ]
    return Ordering(
        quantity,
        _chain({claim.lifetime_us: claim.ours for claim in row}),
        _chain({claim.lifetime_us: claim.published for claim in row}),
        judge(claim, agreement) == "held",
        claim.note,
    )


def _chain(values: Mapping[int | None, float]) -> str:
    """Return the lifetimes by decreasing value: `none > 120' = 60'`."""
    falling = sorted(values.items(), key=lambda item: -item[1])
    text = show_lifetime(falling[0][0])
    for (_, before), (lifetime_us, value) in pairwise(falling):
        text += f" {'=' if value == before else '>'} {show_lifetime(lifetime_us)}"
    return text


def compare_shares(
    paper: Paper, groups: Mapping[int | None, RunGroup], quantiles: pd.DataFrame
) -> list[ComparedShare]:
    """Return the paper's sentences about its distributions, with our share at the same limit."""
    claims = []
    for claimed in paper.quantiles:
        if claimed.lifetime_us not in groups:
            continue
        runs = [str(run["run"]) for run in groups[claimed.lifetime_us].runs]
        metric = claimed.claim.metric
        shares = [share_below(quantiles, run, metric, claimed.limit_us) for run in runs]
        known = [share for share in shares if share is not None]
        if known and claimed.claim.published is not None:
            claims.append(ComparedShare(claimed, fmean(known), claimed.claim.published))
    return claims


def share_below(quantiles: pd.DataFrame, run: str, metric: str, limit_us: int) -> float | None:
    """Return the share of a run's delays or latencies below the limit; None without data."""
    chosen = quantiles[(quantiles["run"] == run) & (quantiles["metric"] == metric)]
    if chosen.empty:
        return None
    rows = chosen.sort_values("share")
    return float(np.interp(limit_us, rows["value_us"], rows["share"]))
