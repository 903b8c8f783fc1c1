"""Read the published figures of the opportunistic paper (OPP) from `reference/`."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from beforehand.errors import InputError
from beforehand.papers.claims import REFERENCE, Claim, read_claims
from beforehand.units import parse_duration

PROCESSING = ("broadcasts", "receptions", "deliveries", "delivery_ratio", "expired", "expiry_ratio")
COUNTS_OF_A_TRACE = ("nodes", "max_at_once", "contacts")


@dataclass(frozen=True)
class Quantile:
    """A claim about the share of a metric's values below a limit, with this lifetime."""

    lifetime_us: int | None
    limit_us: int
    claim: Claim


@dataclass(frozen=True)
class Paper:
    """One experiment of a paper: its published figures and its claims."""

    source: str
    tables: Mapping[str, str]
    figures: Mapping[str, str]
    spotlight_us: tuple[int | None, ...]
    latency_cut_us: int
    presence_window_us: int | None
    key: str
    reasons: Mapping[str, str]
    trace: Mapping[str, float]
    runs: Mapping[int | None, Mapping[str, float]]
    """The published values by lifetime, then by the column of the `runs` dataset."""
    quantiles: tuple[Quantile, ...]

    def claim(self, metric: str, note: str = "") -> Claim:
        """Return the claim about a column of the published tables, or about `order`."""
        for claim in _claims(self.key):
            if claim.metric == metric and not claim.limit:
                return msgspec.structs.replace(claim, note=note)
        return Claim(
            key=f"{self.key}/{metric}",
            paper="OPP",
            figure=f"Tables {self.tables['processing']}, {self.tables['delays']}",
            text=metric,
            comparison="beside",
            metric=metric,
            note=note,
        )

    def reason(self, claim: str) -> str:
        """Return why our value differs: the reason of `receptions/20'`, or else of `receptions`."""
        return self.reasons.get(claim) or self.reasons.get(claim.rpartition("/")[0], "")


def read_paper(key: str) -> Paper:
    """Return the published figures of a scenario, by the key `paper` of its scenario.json."""
    document = tomllib.loads((REFERENCE / "opportunistic.toml").read_text())
    about = document.get(key)
    if not isinstance(about, dict):
        known = ", ".join(f"`{name}`" for name, entry in document.items() if type(entry) is dict)
        raise InputError(f"no published figures for `{key}`", hint=f"known are {known}")
    window = about.get("presence_window")
    return Paper(
        source=document["source"],
        tables=about["tables"],
        figures=about["figures"],
        spotlight_us=tuple(_lifetime(text) for text in about["spotlight"]),
        latency_cut_us=parse_duration(about["latency_cut"]),
        presence_window_us=None if window is None else parse_duration(window),
        key=key,
        reasons=about["reasons"],
        trace=_read_trace(key),
        runs=_read_published_runs(key),
        quantiles=_read_quantiles(key),
    )


def _rows(name: str, key: str) -> list[dict[str, Any]]:
    with (REFERENCE / name).open() as lines:
        return [row for row in csv.DictReader(lines) if row["scenario"] == key]


def _lifetime(text: str) -> int | None:
    return None if text == "none" else parse_duration(text)


def _read_trace(key: str) -> dict[str, float]:
    rows = {row["quantity"]: row["value"] for row in _rows("opportunistic_traces.csv", key)}
    return {
        name: int(text) if name in COUNTS_OF_A_TRACE else parse_duration(text)
        for name, text in rows.items()
    }


def _read_published_runs(key: str) -> dict[int | None, dict[str, float]]:
    runs: dict[int | None, dict[str, float]] = {}
    for row in _rows("opportunistic_processing.csv", key):
        counted = {name: float(row[name]) for name in PROCESSING if row[name]}
        runs[_lifetime(row["lifetime"])] = counted
    for row in _rows("opportunistic_delays.csv", key):
        timed = {
            f"{row['metric']}_us_{kind}": parse_duration(row[kind])
            for kind in ("min", "max", "avg", "stdev")
        }
        runs[_lifetime(row["lifetime"])].update(timed)
    return runs


def _claims(key: str) -> list[Claim]:
    return [claim for claim in read_claims("opportunistic") if claim.runs[0] == key]


def _read_quantiles(key: str) -> tuple[Quantile, ...]:
    return tuple(
        Quantile(_lifetime(claim.runs[1]), parse_duration(claim.limit), claim)
        for claim in _claims(key)
        if claim.limit
    )
