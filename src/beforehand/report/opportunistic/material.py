"""The data of a page about opportunistic runs; each dataset is read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from beforehand.papers.opportunistic import Paper, read_paper
from beforehand.report.datasets import Scenario, read_frame, read_runs, read_scenario
from beforehand.report.opportunistic.compare import Compared, Ordering, compare, rank
from beforehand.report.opportunistic.measured import RunGroup, causal_by_lifetime, group_runs


@dataclass(frozen=True)
class Material:
    """The runs of one scenario, and the paper that they are compared with."""

    directory: Path
    scenario: Scenario
    paper: Paper | None
    rows: tuple[Mapping[str, Any], ...]
    groups: tuple[RunGroup, ...]

    @cached_property
    def by_lifetime(self) -> dict[int | None, RunGroup]:
        return causal_by_lifetime(self.groups)

    @cached_property
    def claims(self) -> list[Compared]:
        return compare(self.paper, self.by_lifetime) if self.paper else []

    @cached_property
    def orderings(self) -> list[Ordering]:
        return rank(self.paper, self.claims) if self.paper else []

    @cached_property
    def spotlight(self) -> tuple[RunGroup, ...]:
        """The two groups shown in detail: those of the paper, else the first and the last."""
        wanted = self.paper.spotlight_us if self.paper else ()
        chosen = tuple(self.by_lifetime[us] for us in wanted if us in self.by_lifetime)
        others = tuple(self.by_lifetime.values()) or self.groups
        return chosen or (others[:1] + others[1:][-1:])

    @cached_property
    def points(self) -> pd.DataFrame:
        """The value of each swept key at each point."""
        return read_frame(self.directory, "points")

    @property
    def interval_reason(self) -> str:
        """Return why there are no confidence intervals; empty if there are some."""
        if len({row["seed"] for row in self.rows}) == 1:
            return "One seed for each protocol and lifetime, so no confidence intervals."
        if self.scenario.drawn == ():
            return (
                "The seeds draw neither mobility nor traffic nor losses anew: only the order of "
                "transfers differs. They are no replications, so there are no confidence intervals."
            )
        return ""

    @cached_property
    def presence(self) -> pd.DataFrame:
        return read_frame(self.directory, "presence")

    @cached_property
    def quantiles(self) -> pd.DataFrame:
        return read_frame(self.directory, "quantiles")


def read_material(directory: Path) -> Material:
    scenario = read_scenario(directory)
    rows = tuple(read_runs(directory))
    points = read_frame(directory, "points")["point"].tolist()
    # A sweep has several runs for each row of the paper.
    paper = read_paper(scenario.paper) if scenario.paper and not points else None
    groups = group_runs(rows, points, is_replicated=scenario.drawn != ())
    return Material(directory, scenario, paper, rows, tuple(groups))
