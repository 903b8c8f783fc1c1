"""Check the published claims about the observer against the measurements: held or not held."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any, NamedTuple, Protocol

import msgspec

from beforehand.papers.claims import Claim, Comparison, Judgement, Points, Selection, judge

Point = tuple[Any, ...]

PARAMETERS = ("processes", "epsilon", "delta", "rate", "law", "observer", "wait_percent")
"""The parameters that identify a point of a graph; its value is the mean over the seeds."""

DEFAULTS: Selection = {
    "processes": [10],
    "epsilon": [10],
    "delta": [10],
    "rate": [0.1],
    "wait_percent": [0, 20, 40, 60, 80],
}


class Row(Protocol):
    """One measurement. It also has the attributes in `PARAMETERS` and the metrics of the claims."""

    @property
    def fan_out(self) -> int: ...

    @property
    def delay_clock(self) -> str: ...


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on a claim under one reading of the paper."""

    claim: str
    figure: str
    text: str
    note: str
    reading: str
    """The receivers of a message / the clock of its delay: see `reading_of`."""
    verdict: Judgement
    expected: str
    measured: str


class _Finding(NamedTuple):
    values: Sequence[float]
    """The numbers that `judge` looks at."""
    measured: str


def reading_of(row: Row) -> str:
    """Return the reading of a row, such as `all/sender` or `one/steps`.

    The first part says whether a message goes to `all` other processes or to `one`. The second part
    says whether the delay counts time on the sender's clock or simulation steps.
    """
    return f"{'one' if row.fan_out == 1 else 'all'}/{row.delay_clock}"


def check_claims(rows: Iterable[Row], claims: Sequence[Claim]) -> list[Verdict]:
    """Return a verdict for every claim under every reading that was run, in the order of the
    claims."""
    readings: dict[str, list[Row]] = {}
    for row in rows:
        readings.setdefault(reading_of(row), []).append(row)
    return [
        _verdict(claim, reading, measures)
        for claim in claims
        for reading, measures in readings.items()
    ]


def _verdict(claim: Claim, reading: str, rows: list[Row]) -> Verdict:
    assert claim.points is not None, f"can't happen: `{claim.key}` selects no points"
    measure = _MEASURES[claim.comparison]
    finding = measure(claim, claim.points, _mean_points(rows, claim.metric))
    return Verdict(
        claim=claim.key,
        figure=claim.figure,
        text=claim.text,
        note=claim.note,
        reading=reading,
        verdict=judge(claim, finding.values if finding else ()),
        expected=_expected(claim),
        measured=finding.measured if finding else "",
    )


def _expected(claim: Claim) -> str:
    assert claim.points is not None
    if claim.comparison in ("rises", "falls"):
        return f"{claim.comparison} along {claim.points.along}"
    low = -math.inf if claim.low is None else claim.low
    high = math.inf if claim.high is None else claim.high
    if claim.comparison == "low_until":
        return f"at wait {claim.points.until} %: at most {high:.0%} of the maximum"
    return f"{claim.comparison} {low:g} to {high:g}"


def _mean_points(rows: list[Row], field: str) -> dict[Point, float]:
    by_point: dict[Point, list[float]] = {}
    for row in rows:
        point = tuple(getattr(row, name) for name in PARAMETERS)
        by_point.setdefault(point, []).append(float(getattr(row, field)))
    return {point: fmean(values) for point, values in by_point.items()}


def _chosen(points: dict[Point, float], selection: Selection) -> dict[Point, float]:
    wanted = DEFAULTS | selection
    return {
        point: value
        for point, value in points.items()
        if all(
            (allowed := wanted.get(name, "any")) == "any" or actual in allowed
            for name, actual in zip(PARAMETERS, point, strict=True)
        )
    }


def _groups(points: dict[Point, float], by: Sequence[str]) -> dict[Point, dict[Point, float]]:
    places = [PARAMETERS.index(name) for name in by]
    groups: dict[Point, dict[Point, float]] = {}
    for point, value in points.items():
        groups.setdefault(tuple(point[i] for i in places), {})[point] = value
    return groups


Values = dict[Point, float]


def _between(_: Claim, points: Points, values: Values) -> _Finding | None:
    chosen = list(_chosen(values, points.select).values())
    if not chosen:
        return None
    return _Finding(chosen, f"{min(chosen):.3g} to {max(chosen):.3g}")


def _trend(claim: Claim, points: Points, values: Values) -> _Finding | None:
    place = PARAMETERS.index(points.along)
    chosen = _chosen(values, points.select | {points.along: points.values})
    steps: list[float] = []
    shown, failed = [], []
    for group, members in _groups(chosen, points.by).items():
        at = [[v for p, v in members.items() if p[place] == value] for value in points.values]
        if not all(at):
            continue  # no run varied this parameter for this curve
        curve = [fmean(found) for found in at]
        rises = [b - a if claim.comparison == "rises" else a - b for a, b in pairwise(curve)]
        steps += rises
        line = ", ".join(f"{value:.3g}" for value in curve)
        shown.append(f"{' '.join(map(str, group))}: {line}")
        if judge(claim, rises) == "not held":
            failed.append(shown[-1])
    if not shown:
        return None
    if len(shown) <= 2:
        return _Finding(steps, "; ".join(shown))
    example = f", not {failed[0]}" if failed else ""
    return _Finding(steps, f"{len(shown) - len(failed)} of {len(shown)}{example}")


def _apart(_: Claim, points: Points, values: Values) -> _Finding | None:
    observer = PARAMETERS.index("observer")
    other = {
        (*point[:observer], *point[observer + 1 :]): value
        for point, value in _chosen(values, points.against).items()
    }
    gaps = [
        value - other[point[:observer] + point[observer + 1 :]]
        for point, value in _chosen(values, points.select).items()
    ]
    if not gaps:
        return None
    return _Finding(gaps, f"{min(gaps):+.3g} to {max(gaps):+.3g} points")


def _ratio(_: Claim, points: Points, values: Values) -> _Finding | None:
    above = _groups(_chosen(values, points.select), points.by)
    below = _groups(_chosen(values, points.against), points.by)
    ratios = {
        group: sum(members.values()) / total
        for group, members in above.items()
        if (total := sum(below.get(group, {}).values())) > 0
    }
    if not ratios:
        return None
    shown = [f"{' '.join(map(str, group))} {ratio:.3g}" for group, ratio in ratios.items()]
    return _Finding([*ratios.values()], "; ".join(shown).strip())


def _low_until(_: Claim, points: Points, values: Values) -> _Finding | None:
    place = PARAMETERS.index("wait_percent")
    curve = {point[place]: value for point, value in _chosen(values, points.select).items()}
    if points.until not in curve or max(curve.values()) == 0:
        return None
    share = curve[points.until] / max(curve.values())
    shown = ", ".join(f"{curve[wait]:.3g}" for wait in sorted(curve, reverse=True))
    return _Finding([share], f"{share:.0%} ({shown})")


_MEASURES: dict[Comparison, Callable[[Claim, Points, Values], _Finding | None]] = {
    "between": _between,
    "rises": _trend,
    "falls": _trend,
    "apart": _apart,
    "ratio": _ratio,
    "low_until": _low_until,
}
