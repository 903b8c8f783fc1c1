"""The data of the page about hosts and stations: runs, traffic and buffer sizes."""

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
"""The columns that identify a run, except for the seed."""
CALM_S = 20
"""The warm-up time of a series, in which hosts join and buffers fill; it is left out."""


@dataclass(frozen=True)
class CellResults:
    """The runs of one scenario."""

    scenario: Scenario
    runs: pd.DataFrame
    """Includes `broken`: wrong or missing deliveries, except at rates that were too high."""
    flows: pd.DataFrame
    """Includes `bytes` of all kinds, and `at_station`: frames addressed to a station."""
    series: pd.DataFrame
    outages: pd.DataFrame

    def whole(self) -> CellResults:
        """Return only the runs without wrong or missing deliveries.

        A collapsed network does not show how much a working one would send or buffer.
        """
        broken = set(self.runs.loc[self.runs["broken"] > 0, "run"])
        frames = (self.runs, self.flows, self.series, self.outages)
        return CellResults(self.scenario, *(frame[~frame["run"].isin(broken)] for frame in frames))

    def readings(self) -> tuple[str, ...]:
        """Return the names of the readings that were run, in order; one empty name without any."""
        return tuple(dict.fromkeys(self.runs["reading"]))

    def under(self, reading: str) -> CellResults:
        """Return the runs of a reading, and those of the reading that it extends unless it has
        runs of the same experiment."""
        about = (self.scenario.parameters.get("readings") or {}).get(reading, {})
        base, own = about.get("extends"), set(about.get("experiments", ()))

        def chosen(frame: pd.DataFrame) -> pd.DataFrame:
            is_chosen = frame["reading"] == reading
            if base:
                is_chosen |= (frame["reading"] == base) & ~frame["experiment"].isin(own)
            return frame[is_chosen]

        frames = (self.runs, self.flows, self.series, self.outages)
        return CellResults(self.scenario, *map(chosen, frames))

    def has(self, experiment: str, *systems: str) -> bool:
        there = self.runs[self.runs["experiment"] == experiment]["system"]
        return not there.empty and set(systems) <= set(there)

    def of(self, experiment: str, system: str | None = None) -> pd.DataFrame:
        """Return the experiment's runs with its first MAC; the other MACs are for comparison
        only."""
        return _first_mac(_chosen(self.runs, experiment, system))

    def mean(self, experiment: str, system: str, column: str) -> float | None:
        """Return the mean over seeds and sizes; None without measurements."""
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


def read_cells(directory: Path) -> CellResults:
    runs = read_frame(directory, "cells_runs")
    if runs.empty:
        raise InputError("no runs to report", where=str(directory), hint=HINT)
    too_much = runs["is_search"] & ~runs["is_sustained"].eq(True)
    missing = (runs["missing"] + runs["missing_at_returned"]).where(~too_much, 0)
    flows = read_frame(directory, "cells_flows")
    return CellResults(
        read_scenario(directory),
        runs.assign(broken=runs["violations"] + runs["duplicates"] + missing),
        flows.assign(
            bytes=flows["control_bytes"] + flows["payload_bytes"] + flows["header_bytes"],
            at_station=flows["to_station"].map(sum),
        ),
        read_frame(directory, "cells_series"),
        read_frame(directory, "cells_outages"),
    )
