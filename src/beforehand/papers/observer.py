"""Check the published claims about the observer against the measurements: held or not held."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Sequence
from importlib import resources
from itertools import pairwise
from statistics import fmean
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from beforehand.errors import InputError

Kind = Literal["between", "rises", "falls", "apart", "ratio", "low_until"]
Selection = dict[str, list[Any] | Literal["any"]]
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
    """One measurement. It also has the attributes in `PARAMETERS` and the `field` of each claim."""

    @property
    def fan_out(self) -> int: ...

    @property
    def delay_clock(self) -> str: ...


class Claim(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One sentence of the paper as data; the head of the TOML file defines the fields."""

    id: str
    figure: str
    text: str
    kind: Kind
    select: Selection
    note: str = ""
    field: str = "violations_percent"
    against: Selection = {}
    along: str = ""
    values: list[Any] = []
    by: tuple[str, ...] = ("law",)
    until: int = 0
    low: float = 0.0
    high: float = 0.0


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on a claim under one reading of the paper."""

    claim: str
    figure: str
    text: str
    note: str
    reading: str
    """The receivers of a message / the clock of its delay: see `reading_of`."""
    verdict: Literal["held", "not held", "not measured"]
    expected: str
    measured: str


class _Finding(NamedTuple):
    is_held: bool
    measured: str


def load_claims() -> list[Claim]:
    """Return the claims that ship with the package."""
    path = resources.files("beforehand.papers") / "reference" / "observer_claims.toml"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        return msgspec.convert(table["claim"], list[Claim])
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, KeyError) as error:
        raise InputError(f"claims cannot be read: {error}", where=str(path)) from error


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
    finding = _CHECKS[claim.kind](claim, _points(rows, claim.field))
    state: Literal["held", "not held", "not measured"] = "not measured"
    if finding is not None:
        state = "held" if finding.is_held else "not held"
    return Verdict(
        claim=claim.id,
        figure=claim.figure,
        text=claim.text,
        note=claim.note,
        reading=reading,
        verdict=state,
        expected=_expected(claim),
        measured=finding.measured if finding else "",
    )


def _expected(claim: Claim) -> str:
    if claim.kind in ("rises", "falls"):
        return f"{claim.kind} along {claim.along}"
    if claim.kind == "low_until":
        return f"at wait {claim.until} %: at most {claim.high:.0%} of the maximum"
    return f"{claim.kind} {claim.low:g} to {claim.high:g}"


def _points(rows: list[Row], field: str) -> dict[Point, float]:
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


def _between(claim: Claim, points: dict[Point, float]) -> _Finding | None:
    values = list(_chosen(points, claim.select).values())
    if not values:
        return None
    is_held = claim.low <= min(values) and max(values) <= claim.high
    return _Finding(is_held, f"{min(values):.3g} to {max(values):.3g}")


def _trend(claim: Claim, points: dict[Point, float]) -> _Finding | None:
    place = PARAMETERS.index(claim.along)
    chosen = _chosen(points, claim.select | {claim.along: claim.values})
    outcomes = []
    for group, members in _groups(chosen, claim.by).items():
        steps = [[v for p, v in members.items() if p[place] == at] for at in claim.values]
        if not all(steps):
            continue  # no run varied this parameter for this curve
        curve = [fmean(values) for values in steps]
        ups = [b - a if claim.kind == "rises" else a - b for a, b in pairwise(curve)]
        is_held = min(ups) >= 0
        shown = ", ".join(f"{value:.3g}" for value in curve)
        outcomes.append((is_held, f"{' '.join(map(str, group))}: {shown}"))
    if not outcomes:
        return None
    failed = [shown for is_held, shown in outcomes if not is_held]
    if len(outcomes) <= 2:
        return _Finding(not failed, "; ".join(shown for _, shown in outcomes))
    example = f", not {failed[0]}" if failed else ""
    return _Finding(not failed, f"{len(outcomes) - len(failed)} of {len(outcomes)}{example}")


def _apart(claim: Claim, points: dict[Point, float]) -> _Finding | None:
    observer = PARAMETERS.index("observer")
    other = {
        (*point[:observer], *point[observer + 1 :]): value
        for point, value in _chosen(points, claim.against).items()
    }
    gaps = [
        value - other[point[:observer] + point[observer + 1 :]]
        for point, value in _chosen(points, claim.select).items()
    ]
    if not gaps:
        return None
    is_held = claim.low <= min(gaps) and max(gaps) <= claim.high
    return _Finding(is_held, f"{min(gaps):+.3g} to {max(gaps):+.3g} points")


def _ratio(claim: Claim, points: dict[Point, float]) -> _Finding | None:
    above = _groups(_chosen(points, claim.select), claim.by)
    below = _groups(_chosen(points, claim.against), claim.by)
    ratios = {
        group: sum(members.values()) / total
        for group, members in above.items()
        if (total := sum(below.get(group, {}).values())) > 0
    }
    if not ratios:
        return None
    is_held = all(claim.low <= ratio <= claim.high for ratio in ratios.values())
    shown = [f"{' '.join(map(str, group))} {ratio:.3g}" for group, ratio in ratios.items()]
    return _Finding(is_held, "; ".join(shown).strip())


def _low_until(claim: Claim, points: dict[Point, float]) -> _Finding | None:
    place = PARAMETERS.index("wait_percent")
    curve = {point[place]: value for point, value in _chosen(points, claim.select).items()}
    if claim.until not in curve or max(curve.values()) == 0:
        return None
    share = curve[claim.until] / max(curve.values())
    shown = ", ".join(f"{curve[wait]:.3g}" for wait in sorted(curve, reverse=True))
    return _Finding(share <= claim.high, f"{share:.0%} ({shown})")


_CHECKS: dict[Kind, Callable[[Claim, dict[Point, float]], _Finding | None]] = {
    "between": _between,
    "rises": _trend,
    "falls": _trend,
    "apart": _apart,
    "ratio": _ratio,
    "low_until": _low_until,
}
