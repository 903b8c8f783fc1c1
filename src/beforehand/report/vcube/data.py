"""The data of the page about aggregation over VCube: our runs and the published values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from beforehand.errors import InputError
from beforehand.interval import margin_of
from beforehand.papers.claims import IS_MET, Claim, judge
from beforehand.report.content import CLAIM_MARKS, Cell
from beforehand.report.datasets import HINT, Scenario, read_frame, read_scenario
from beforehand.report.notation import show_points, show_spread

UT_US = 1000
"""One unit of time of the paper."""


@dataclass(frozen=True)
class Histogram:
    """A histogram with one row of counts per seed."""

    values: NDArray[np.int64]
    """The distinct values, in increasing order."""
    counts: NDArray[np.float64]
    """The counts, as an array (seeds, values)."""

    def within(self, least: int, most: int | None = None) -> NDArray[np.float64]:
        """Return for each seed the count within a range, both ends included."""
        last = most if most is not None else self.values.max(initial=0)
        inside = (self.values >= least) & (self.values <= last)
        return np.asarray(self.counts[:, inside].sum(axis=1))

    def shares(
        self, least: int, most: int | None = None, *, of: int | None = None
    ) -> tuple[float, ...]:
        """Return the same in per cent of all values, or of the values from `of` on."""
        totals = self.within(0 if of is None else of)
        return tuple((100 * self.within(least, most) / np.maximum(totals, 1)).tolist())

    def most(self) -> NDArray[np.int64]:
        """Return the largest value of each seed."""
        return np.asarray(np.where(self.counts > 0, self.values, 0).max(axis=1))


@dataclass(frozen=True)
class OverlayResults:
    """The runs of one scenario."""

    scenario: Scenario
    runs: pd.DataFrame
    bars: pd.DataFrame

    @property
    def sizes(self) -> list[int]:
        return sorted(int(nodes) for nodes in self.runs["nodes"].unique())

    @property
    def payload_bytes(self) -> int:
        """The payload of the main runs; runs with other payloads show the effect of the message
        size."""
        return int(self.runs.loc[self.runs["system"] == "plain", "payload_bytes"].iloc[0])

    def of(self, system: str, nodes: int | None = None) -> pd.DataFrame:
        """Return the runs with the main payload, one row per seed, ordered by seed."""
        rows = self.runs[self.runs["payload_bytes"] == self.payload_bytes]
        rows = rows[rows["system"] == system]
        rows = rows if nodes is None else rows[rows["nodes"] == nodes]
        return rows.sort_values(["nodes", "seed"])

    def histogram(
        self, name: str, system: str, nodes: int, payload_bytes: int | None = None
    ) -> Histogram:
        size = self.payload_bytes if payload_bytes is None else payload_bytes
        wanted = {"histogram": name, "system": system, "nodes": nodes, "payload_bytes": size}
        rows = self.bars
        for column, value in wanted.items():
            rows = rows[rows[column] == value]
        table = rows.pivot_table(index="seed", columns="value", values="count", fill_value=0)
        return Histogram(table.columns.to_numpy(np.int64), table.to_numpy(np.float64))

    def means(self, system: str, quantity: str) -> dict[int, float]:
        """Return the mean over the seeds, by number of nodes."""
        found = self.of(system).groupby("nodes")[quantity].mean().dropna()
        return {int(str(nodes)): float(mean) for nodes, mean in found.items()}


def read_overlay(directory: Path) -> OverlayResults:
    runs = read_frame(directory, "overlay_runs")
    if runs.empty:
        raise InputError("no runs to report", where=str(directory), hint=HINT)
    return OverlayResults(
        read_scenario(directory), runs, read_frame(directory, "overlay_histograms")
    )


@dataclass(frozen=True)
class Found:
    """One of our values over the seeds, with the published one if there is one."""

    place: str
    quantity: str
    values: tuple[float, ...]
    """One value per seed."""
    claim: Claim
    """The claim about the published value; without a published value it is not judged."""

    @property
    def published(self) -> float | None:
        return self.claim.published

    @property
    def mean(self) -> float:
        return fmean(self.values)

    @property
    def deviation(self) -> float:
        return stdev(self.values) if len(self.values) > 1 else 0.0

    @property
    def margin(self) -> float | None:
        """Return half of the 95 % confidence interval of the mean; None for one seed."""
        return margin_of(self.values)

    @property
    def difference(self) -> float | None:
        return None if self.published is None else self.mean - self.published

    @property
    def is_met(self) -> bool | None:
        return IS_MET.get(judge(self.claim, (self.mean,)))

    def share_cell(self) -> Cell:
        """Format a share: ours with its interval, the published one, the difference in points."""
        text, spread = f"{self.mean:.2f} %", show_spread(self.values, "{:.2f}")
        if self.published is None:
            return Cell(text, spread=spread)
        difference = show_points(self.mean / 100, self.published / 100)
        return Cell(
            text,
            f"{self.published:.2f} %",
            difference,
            CLAIM_MARKS.get(judge(self.claim, (self.mean,)), ""),
            spread,
        )


def machine_rows(found: Sequence[Found]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "place": item.place,
            "quantity": item.quantity,
            "seeds": len(item.values),
            "ours": item.mean,
            "deviation": item.deviation,
            "ours_ci95": item.margin,
            "published": item.published,
            "difference": item.difference,
            "is_met": item.is_met,
        }
        for item in found
    )
