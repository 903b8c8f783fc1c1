"""The page of the observer: exactness of the full wait, figures 2 to 7, and the published
claims."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from beforehand.errors import InputError
from beforehand.report.content import (
    CLAIM_MARKS,
    TILE_MARKS,
    Cell,
    Mark,
    Page,
    Section,
    Table,
    Tile,
    Verdict,
)
from beforehand.report.datasets import HINT, Scenario, read_frame, read_scenario
from beforehand.report.notation import show_count
from beforehand.report.observer.figures import GRAPHS, LAWS, name_reading, observer_panels

FULL = ("dapw", "cbd")
"""The observers that compare the full timestamp."""
COLUMN_WORDS = {"epsilon": "ε", "delta": "δ", "processes": "n", "wait_percent": "the wait"}


def build_observer_page(directory: Path) -> Page:
    """Build the page from the datasets `measures` and `claims` in this folder."""
    scenario = read_scenario(directory)
    measures, claims = read_frame(directory, "measures"), read_frame(directory, "claims")
    if measures.empty:
        raise InputError("no measures to report", where=str(directory), hint=HINT)
    exact = measures[measures["observer"].isin(FULL) & (measures["wait_percent"] == 100)]
    broken, delivered = int(exact["inverted"].sum()), int(exact["received"].sum())
    figures = [
        Section(f"Figure {graph.number}: {graph.title}", figures=panels)
        for graph in GRAPHS
        if (panels := observer_panels(graph, measures))
    ]
    verdict: Verdict = "invalid" if broken else "valid" if delivered else "unknown"
    headline = (
        f"{show_count(broken)} pairs of messages were shown in the wrong order at the full wait."
        if broken
        else f"All {show_count(delivered)} deliveries at the full wait, with the full timestamp, "
        "kept causal order."
        if delivered
        else "No observer waited in full, so the order is unknown."
    )
    return Page(
        title=scenario.title,
        subtitle=f"Scenario {scenario.name}",
        verdict=verdict,
        headline=headline,
        summary=_summary(claims),
        tiles=(
            Tile(show_count(len(_simulations(measures))), "simulations"),
            Tile(show_count(len(measures)), "observers on them"),
            Tile(show_count(delivered), "deliveries at the full wait"),
            Tile(show_count(broken), "pairs in the wrong order there", TILE_MARKS[verdict]),
            *_claim_tiles(claims),
        ),
        sections=(
            Section("What was run", _setting(scenario, measures)),
            _exact_section(exact),
            *figures,
            _claims_section(claims),
        ),
        footer="Written by Beforehand. The claims are in our words, their numbers are the paper's.",
    )


def _summary(claims: pd.DataFrame) -> str:
    held = [
        f"{_count_held(rows)} of {len(rows)} {name_reading(str(reading))}"
        for reading, rows in claims.groupby("reading", sort=False)
    ]
    return (
        "An observer sees every message of a group, each with a small timestamp, and shows them "
        "in causal order. Waiting less than the full wait shows them sooner and now and then "
        "wrongly. The paper does not say whom a message goes to nor what a delay is counted in, so "
        f"every claim is checked under several readings. Held: {', '.join(held)}."
    )


def _claim_tiles(claims: pd.DataFrame) -> Iterator[Tile]:
    for reading, rows in claims.groupby("reading", sort=False):
        label = f"claims held, {name_reading(str(reading))}"
        yield Tile(f"{_count_held(rows)} of {len(rows)}", label)


def _count_held(claims: pd.DataFrame) -> int:
    return int((claims["verdict"] == "held").sum())


def _simulations(measures: pd.DataFrame) -> pd.DataFrame:
    keys = ["reading", "law", "processes", "epsilon", "delta", "rate", "messages", "seed"]
    return measures[keys].drop_duplicates()


def _setting(scenario: Scenario, measures: pd.DataFrame) -> tuple[str, ...]:
    seeds, messages = measures["seed"].nunique(), show_count(measures["messages"].max())
    times = "1 seed" if seeds == 1 else f"{seeds} seeds"
    versions = ", ".join(f"{name} {version}" for name, version in scenario.versions.items())
    return (
        f"{times}, {messages} messages in each simulation, delays {' and '.join(LAWS.values())}. "
        "Unless a figure says otherwise: 10 processes, ε = δ = 10, rate 0.1. A line is the mean "
        "over the seeds, a stroke through a point its 95 % confidence interval (Student's t); the "
        "CSV has the least and the most as well.",
        "A violation is counted as in the paper: the mean of the share of messages that were shown "
        "before one of their causes and the share that were shown after one of their effects.",
        "DAPW shows a message after the share c of the full wait. CBD waits as long, and then "
        "holds it back while a smaller timestamp is still queued. Figures 6 and 7 compare parts of "
        "the timestamp: DPC1 the clock, DPC2 also the highest clock known, the others that many "
        "elements of kn.",
        "Readings of the paper: a message goes to all others or to one other, and its delay is "
        "counted on the sender's clock; or to all others, and its delay is counted in steps of "
        "the simulation, in each of which one clock moves.",
        f"Versions: {versions}.",
    )


def _exact_section(exact: pd.DataFrame) -> Section:
    head = ("", "Simulations", "Deliveries", "Related pairs", "In the wrong order", "Longest wait")
    rows, data = [], []
    for reading, part in exact.groupby("reading", sort=False):
        runs, wrong = len(_simulations(part)), int(part["inverted"].sum())
        received, pairs = int(part["received"].sum()), int(part["pairs"].sum())
        longest = float(part["wait_share_max"].max())
        cells = [Cell(show_count(value)) for value in (runs, received, pairs)]
        mark: Mark = "missed" if wrong else "met"
        wait = Cell(f"{100 * longest:.0f} %")
        rows.append(
            (Cell(name_reading(str(reading))), *cells, Cell(show_count(wrong), mark=mark), wait)
        )
        data.append((reading, runs, received, pairs, wrong, longest))
    columns = ["reading", "simulations", "deliveries", "pairs", "inverted", "wait_share_max"]
    table = Table(
        "exact",
        "DAPW and CBD at c = 100 %, all parameters",
        head,
        tuple(rows),
        pd.DataFrame(data, columns=columns),
        notes=("The longest wait is a share of δ + 2ε on the observer's clock, the bound.",),
        is_wide=True,
    )
    return Section("The full wait", tables=(table,))


def _claims_section(claims: pd.DataFrame) -> Section:
    readings = list(dict.fromkeys(claims["reading"]))
    rows, notes = [], []
    for _, group in claims.groupby("claim", sort=False):
        first = group.iloc[0]
        by_reading = {row["reading"]: row for _, row in group.iterrows()}
        measured = [_finding(by_reading.get(reading)) for reading in readings]
        statement = Cell(str(first["text"]), published=show_expected(str(first["expected"])))
        rows.append((statement, Cell(str(first["figure"])), *measured))
        if first["note"]:
            notes.append(f"{first['text']} {first['note']}")
    table = Table(
        "claims",
        "Published and measured",
        ("The paper says", "Figure", *(name_reading(reading) for reading in readings)),
        tuple(rows),
        claims,
        notes=tuple(notes),
        words=tuple(range(len(readings) + 2)),
        is_wide=True,
    )
    prose = (
        "✓ held, ✗ not held, under each reading. Below each claim: what was asked of our numbers. "
        "They are percentages of messages in violation unless the claim says otherwise; half is "
        "the delay N(δ/2, δ/4), quarter is N(δ/4, δ/8). Where many curves were asked: how many "
        "agree, and the first that does not, by law, ε, δ, rate and n.",
    )
    return Section("Published claims", prose, (table,))


def _finding(verdict: pd.Series | None) -> Cell:
    if verdict is None or verdict["verdict"] not in CLAIM_MARKS:
        return Cell("unknown")
    # Show `3 to 3` as one number.
    measured = re.sub(r"^(\S+) to \1(?= points|$)", r"\1", str(verdict["measured"]))
    return Cell(measured, mark=CLAIM_MARKS[str(verdict["verdict"])])


def show_expected(expected: str) -> str:
    """Format what a claim expects; the dataset has `between 0 to 80` or `rises along delta`."""
    for name, words in COLUMN_WORDS.items():
        expected = expected.replace(f"along {name}", f"with {words}")
    expected = expected.replace("along observer", "with each part").replace("along", "with the")
    expected = re.sub(r"^between 0 to 0$", "exactly 0", expected)
    expected = re.sub(r"(\S+) to inf$", r"at least \1", expected)
    expected = expected.removeprefix("between ").replace("apart ", "apart by ")
    return expected.replace("-", "−")
