"""Read the claims of all papers from one table, and judge them: held, not held or unknown."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import msgspec

from beforehand.errors import InputError

PageName = Literal["observer", "mobile", "vcube", "opportunistic"]
"""The page that measures and judges a claim."""
Comparison = Literal[
    "between", "rises", "falls", "apart", "ratio", "low_until", "near", "ranked", "beside"
]
Selection = dict[str, list[Any] | Literal["any"]]
Judgement = Literal["held", "not held", "unknown", "not judged"]
IS_MET: dict[Judgement, bool] = {"held": True, "not held": False}
"""Whether our numbers meet a claim, by its judgement; the other judgements do not say."""
REFERENCE = files("beforehand.papers") / "reference"
TABLE = REFERENCE / "claims.toml"


class Points(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The points of a graph that a claim compares."""

    select: Selection
    against: Selection = {}
    along: str = ""
    values: list[Any] = []
    by: tuple[str, ...] = ("law",)
    until: int = 0


class Claim(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One sentence of a paper as data; the head of `reference/claims.toml` defines the fields."""

    key: str
    paper: Literal["OPP", "OBS", "VCU", "MOB", "MOB-TR"]
    figure: str
    text: str
    comparison: Comparison
    metric: str = ""
    low: float | None = None
    high: float | None = None
    published: float | None = None
    share_off: float | None = None
    points_off: float | None = None
    unit: str = ""
    runs: tuple[str, ...] = ()
    limit: str = ""
    note: str = ""
    points: Points | None = None

    def about(self, published: float | None) -> Claim:
        """Return the claim about one of the numbers of a published table."""
        return msgspec.structs.replace(self, published=published)

    @property
    def bounds(self) -> str:
        """The bounds in words, without the unit."""
        if self.high is None:
            return f"at least {self.low:g}"
        if not self.low:
            return f"at most {self.high:g}"
        return f"{self.low:,g} to {self.high:,g}"

    @property
    def tolerance(self) -> str:
        """The allowed difference from the published number; empty if the claim is not judged."""
        if self.share_off is not None:
            return f"±{100 * self.share_off:g} %"
        return f"±{self.points_off:g} points" if self.points_off is not None else ""


@cache
def read_claims(page: PageName) -> tuple[Claim, ...]:
    """Return the claims that a page judges, in the order of the table."""
    return _read_table(TABLE.read_text(encoding="utf-8"))[page]


def _read_table(text: str) -> dict[PageName, tuple[Claim, ...]]:
    try:
        return msgspec.convert(tomllib.loads(text), dict[PageName, tuple[Claim, ...]])
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise InputError(
            f"claims cannot be read: {error}",
            where=str(TABLE),
            hint="the head of this file defines the fields",
        ) from error


def read_source(name: str) -> str:
    """Return the bibliographic source of the figures in `reference/NAME.toml`."""
    return str(tomllib.loads((REFERENCE / f"{name}.toml").read_text(encoding="utf-8"))["source"])


def find_claim(page: PageName, key: str) -> Claim:
    return next(claim for claim in read_claims(page) if claim.key == key)


def judge(claim: Claim, measured: Sequence[float | None]) -> Judgement:
    """Judge a claim by our numbers. Without a number, or with one that is unknown, it is unknown.

    measured: what the comparison looks at: the values or differences or ratios of the points, the
    steps of a curve in the claimed direction, or one value.
    """
    if claim.comparison == "beside" or (claim.comparison == "near" and claim.published is None):
        return "not judged"
    known = [value for value in measured if value is not None and not math.isnan(value)]
    if not known or len(known) < len(measured):
        return "unknown"
    return "held" if all(_allows(claim, value) for value in known) else "not held"


def _allows(claim: Claim, value: float) -> bool:
    match claim.comparison:
        case "rises" | "falls":
            return value >= 0
        case "ranked":
            return value > 0
        case "near":
            return _is_near(claim, value)
    is_above = claim.low is None or value >= claim.low
    return is_above and (claim.high is None or value <= claim.high)


def _is_near(claim: Claim, value: float) -> bool:
    assert claim.published is not None
    difference = abs(value - claim.published)
    if claim.share_off is not None:
        return difference <= claim.share_off * claim.published
    assert claim.points_off is not None, f"can't happen: `{claim.key}` has no tolerance"
    return difference * (100 if claim.unit == "ratio" else 1) <= claim.points_off
