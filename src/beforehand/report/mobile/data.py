"""What a page about hosts and stations is written from: runs, what they sent, how buffers went."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from beforehand.errors import InputError
from beforehand.report.datasets import HINT, Scenario, read_frame, read_scenario

SYSTEMS = {
    "was": "WAS",
    "was_flood": "WAS-flood",
    "ck": "CK",
    "tcp_flooding": "TCP-Flooding",
}
RUN = ["experiment", "system", "stations", "hosts", "rate_per_s", "mac"]
"""What makes a run, but for the seed."""
CALM_S = 20
"""Series are looked at from here on: before, hosts join and buffers fill."""


@dataclass(frozen=True)
class Cells:
    """The runs of one scenario."""

    scenario: Scenario
    runs: pd.DataFrame
    """With `broken`: deliveries that are wrong or missing, but for rates that were too high."""
    flows: pd.DataFrame
    """With `bytes` of all kinds, and `at_station`: frames that were meant for a station."""
    series: pd.DataFrame
    outages: pd.DataFrame

    def whole(self) -> Cells:
        """Without runs of which something is wrong or missing: a net that has collapsed says
        nothing about what one that works would send or keep."""
        broken = set(self.runs.loc[self.runs["broken"] > 0, "run"])
        frames = (self.runs, self.flows, self.series, self.outages)
        return Cells(self.scenario, *(frame[~frame["run"].isin(broken)] for frame in frames))

    def has(self, experiment: str, *systems: str) -> bool:
        there = self.runs[self.runs["experiment"] == experiment]["system"]
        return not there.empty and set(systems) <= set(there)

    def of(self, experiment: str, system: str | None = None) -> pd.DataFrame:
        """Its runs with the MAC that comes first: the others show what the MAC changes."""
        return _first_mac(_chosen(self.runs, experiment, system))

    def mean(self, experiment: str, system: str, column: str) -> float | None:
        """Over seeds and sizes; None where nothing was measured."""
        values = self.of(experiment, system)[column].dropna()
        return None if values.empty else float(values.mean())

    def sent(self, experiment: str, system: str, network: str | None = None) -> pd.DataFrame:
        flows = _first_mac(_chosen(self.flows, experiment, system))
        return flows if network is None else flows[flows["network"] == network]

    def moments(self, experiment: str, system: str) -> pd.DataFrame:
        return _first_mac(_chosen(self.series, experiment, system))


def _chosen(frame: pd.DataFrame, experiment: str, system: str | None) -> pd.DataFrame:
    frame = frame[frame["experiment"] == experiment]
    return frame if system is None else frame[frame["system"] == system]


def _first_mac(frame: pd.DataFrame) -> pd.DataFrame:
    return frame if frame.empty else frame[frame["mac"] == frame["mac"].iloc[0]]


def read_cells(directory: Path) -> Cells:
    runs = read_frame(directory, "cells_runs")
    if runs.empty:
        raise InputError("no runs to report", where=str(directory), hint=HINT)
    too_much = runs["is_search"] & ~runs["is_sustained"].eq(True)
    missing = (runs["missing"] + runs["missing_at_returned"]).where(~too_much, 0)
    flows = read_frame(directory, "cells_flows")
    return Cells(
        read_scenario(directory),
        runs.assign(broken=runs["violations"] + runs["duplicates"] + missing),
        flows.assign(
            bytes=flows["control_bytes"] + flows["payload_bytes"] + flows["header_bytes"],
            at_station=flows["to_station"].map(sum),
        ),
        read_frame(directory, "cells_series"),
        read_frame(directory, "cells_outages"),
    )
