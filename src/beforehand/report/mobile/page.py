"""The page of hosts that walk between cells: the verdict and a table of the runs."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from beforehand.errors import InputError
from beforehand.report.content import Cell, Page, Section, Table, Tile
from beforehand.report.datasets import HINT, read_frame, read_scenario
from beforehand.report.notation import show_count

KEY = ["experiment", "system", "stations", "hosts", "rate_per_s", "mac"]
HEAD = (
    *("Experiment", "System", "Stations", "Hosts", "Rate (1/s)", "MAC"),
    *("Delay (ms)", "Lost (%)", "Kept", "Frames per delivery", "Broken"),
)


def build_mobile_page(directory: Path) -> Page:
    """The page of the dataset `cells_runs` in this folder."""
    scenario, runs = read_scenario(directory), read_frame(directory, "cells_runs")
    if runs.empty:
        raise InputError("no runs to report", where=str(directory), hint=HINT)
    is_given_up = runs["is_search"] & ~runs["is_sustained"].eq(True)
    missing = runs["missing"].where(~is_given_up, 0)
    runs = runs.assign(broken=runs["violations"] + runs["duplicates"] + missing)
    broken = int(runs["broken"].sum())
    deliveries = show_count(int(runs["deliveries"].sum()))
    kept = (
        f"All {deliveries} deliveries of {len(runs)} runs kept causal order, and none is missing."
    )
    return Page(
        title=scenario.title,
        subtitle=f"Scenario {scenario.name}",
        verdict="invalid" if broken else "valid",
        headline=f"{show_count(broken)} deliveries are wrong or missing." if broken else kept,
        summary=(
            "Hosts walk between the cells of stations and speak by radio; stations form a tree of "
            "wires. A row is the mean over all seeds."
        ),
        tiles=(Tile(str(len(runs)), "runs"), Tile(deliveries, "deliveries")),
        sections=(Section("Runs", tables=(_runs_table(runs),)),),
        footer="Written by Beforehand.",
    )


def _runs_table(runs: pd.DataFrame) -> Table:
    means = runs.groupby(KEY, sort=False).agg(
        delay_us_avg=("delay_us_avg", "mean"),
        lost_percent=("lost_percent", "mean"),
        kept_avg=("kept_avg", "mean"),
        sent_per_delivery=("sent_per_delivery", "mean"),
        broken=("broken", "sum"),
    )
    data = means.reset_index()
    rows = tuple(
        tuple(
            Cell(text)
            for text in (
                *(row["experiment"], row["system"], str(row["stations"]), str(row["hosts"])),
                *(f"{row['rate_per_s']:g}", row["mac"], f"{row['delay_us_avg'] / 1000:.0f}"),
                *(f"{row['lost_percent']:.1f}", f"{row['kept_avg']:.1f}"),
                *(f"{row['sent_per_delivery']:.2f}", show_count(row["broken"])),
            )
        )
        for row in data.to_dict("records")
    )
    return Table("runs", "Runs", HEAD, rows, data, words=(0, 1, 5), is_wide=True)
