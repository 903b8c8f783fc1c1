"""OBS figures 2 to 7: violations by the share of the wait, one line per parameter value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import altair as alt
import pandas as pd

from beforehand.interval import margin_of
from beforehand.report.charts import PALETTE
from beforehand.report.content import Chart, Figure

READINGS = {
    "all/sender": "to all others",
    "one/sender": "to one other",
    "all/steps": "to all, in steps",
    "all/ticks": "to all, in steps and at the next tick",
}
LAWS = {"half": "N(δ/2, δ/4)", "quarter": "N(δ/4, δ/8)"}
USUAL: Mapping[str, Any] = {"processes": 10, "epsilon": 10, "delta": 10, "rate": 0.1}
PARTS = {
    "dpc1": "DPC1",
    "dpc2": "DPC2",
    **{f"cbd-{k}": f"{k} of kn" for k in (1, 2, 3, 4, 6, 8)},
    "cbd": "all of kn",
}
# Nine lines: the palette for parts of kn, and grey tones for the two without any of kn.
PART_COLOURS = ["#8a8f98", "#b59a7a", *PALETTE[:7]]
SHAPES = ["circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "triangle-right"]


@dataclass(frozen=True)
class Graph:
    """A figure of the paper: which runs it shows, and which parameter distinguishes its lines."""

    number: int
    title: str
    along: str
    """The column whose values are the lines."""
    sign: str = ""
    """The paper's symbol for that column."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Parameters that differ from the usual ones."""

    @property
    def observers(self) -> tuple[str, ...]:
        """The observers with a panel for each law; a partial timestamp is a line and not a
        panel."""
        return ("cbd",) if self.along == "observer" else ("dapw", "cbd")


GRAPHS = (
    Graph(2, "Clocks that differ by at most ε", "epsilon", "ε"),
    Graph(3, "Messages that take at most δ", "delta", "δ"),
    Graph(4, "Message rate", "rate", "rate"),
    Graph(5, "Number of processes", "processes", "n"),
    Graph(6, "Partial timestamps, 10 processes", "observer"),
    Graph(7, "Partial timestamps, 50 processes", "observer", fixed={"processes": 50}),
)


def observer_panels(graph: Graph, measures: pd.DataFrame) -> tuple[Figure, ...]:
    """Return the panels of a figure in the paper's order: (a) and (b) one law, (c) and (d) the
    other."""
    panels = [(law, observer) for law in LAWS for observer in graph.observers]
    figures = []
    for letter, (law, observer) in zip("abcd", panels, strict=False):
        table = panel_table(graph, measures, law, observer)
        if table.empty:
            continue
        title = f"Figure {graph.number}{letter}: {observer.upper()}, delay {LAWS[law]}"
        slug = f"figure-{graph.number}{letter}"
        figures.append(Figure(slug, title, _caption(table), violations_chart(table), table))
    return tuple(figures)


def panel_table(graph: Graph, measures: pd.DataFrame, law: str, observer: str) -> pd.DataFrame:
    """Return one row per reading, line and wait: the mean over the seeds, the minimum, the maximum,
    and half of the 95 % confidence interval of the mean."""
    fixed = {key: value for key, value in {**USUAL, **graph.fixed}.items() if key != graph.along}
    rows = measures[measures["law"] == law]
    for name, value in fixed.items():
        rows = rows[rows[name] == value]
    if graph.along == "observer":
        rows = rows[rows["observer"].isin(list(PARTS))]
        order = {name: place for place, name in enumerate(PARTS)}
        rows = rows.assign(place=rows["observer"].map(order), line=rows["observer"].map(PARTS))
    else:
        rows = rows[rows["observer"] == observer]
        named = [f"{graph.sign} = {value:g}" for value in rows[graph.along]]
        rows = rows.assign(place=rows[graph.along], line=named)
    keys = ["reading", "place", "line", "wait_percent"]
    grouped = rows.groupby(keys, sort=True)["violations_percent"]
    spread = grouped.agg(["mean", "min", "max"]).assign(
        ci95=pd.Series([margin_of(values.tolist()) for _, values in grouped], dtype=float).values
    )
    table = spread.reset_index().rename(columns={"wait_percent": "c"}).drop(columns="place")
    # Show the readings in the order of the data.
    rank = {reading: place for place, reading in enumerate(measures["reading"].unique())}
    table = table.sort_values("reading", key=lambda column: column.map(rank), kind="stable")
    return table.assign(reading=table["reading"].map(name_reading)).reset_index(drop=True)


def name_reading(reading: str) -> str:
    return READINGS.get(reading, reading)


def violations_chart(table: pd.DataFrame) -> Chart:
    """Draw violations by c (reading, line, c, mean, min, max), one reading at a time."""
    lines = list(dict.fromkeys(table["line"]))
    readings = list(dict.fromkeys(table["reading"]))
    colours = PART_COLOURS if len(lines) > len(PALETTE) else PALETTE[: 2 * len(lines) : 2]
    shapes = (SHAPES * 2)[: len(lines)]
    chosen = alt.selection_point(fields=["line"], bind="legend")
    choice = alt.binding_radio(options=readings, name="Messages go ")
    bind = choice if len(readings) > 1 else alt.Undefined
    reading = alt.param(name="reading", value=readings[0], bind=bind)
    shown = alt.when(chosen).then(alt.value(1)).otherwise(alt.value(0.12))
    base = (
        alt.Chart(table)
        .transform_filter("datum.reading == reading")
        .encode(
            x=alt.X("c:Q", title="Share of the full wait, c (%)").axis(
                values=[0, 20, 40, 60, 80, 100]
            ),
            # Room for the widest numbers: switching to another reading must not move the title out.
            y=alt.Y("mean:Q", title="Messages in violation (%)", scale=alt.Scale(zero=True)).axis(
                minExtent=34
            ),
            color=alt.Color("line:N", title=None, sort=lines).scale(domain=lines, range=colours),
            opacity=shown,
            tooltip=[
                alt.Tooltip("line:N", title="Line"),
                alt.Tooltip("c:Q", title="c (%)"),
                alt.Tooltip("mean:Q", title="Mean (%)", format=".3~f"),
                alt.Tooltip("min:Q", title="Least (%)", format=".3~f"),
                alt.Tooltip("max:Q", title="Most (%)", format=".3~f"),
                alt.Tooltip("ci95:Q", title="± (95 %)", format=".3~f"),
            ],
        )
    )
    line = base.mark_line(strokeWidth=2).add_params(chosen)
    # A shape too: some lines are close together, and some readers do not see all colours.
    point = base.mark_point(size=55, filled=True).encode(
        shape=alt.Shape("line:N", title=None, sort=lines).scale(domain=lines, range=shapes)
    )
    touch = base.mark_circle(size=300).encode(opacity=alt.value(0))
    # Leave an empty layer out: it has no extent, and the browser logs a warning.
    has_intervals = table.groupby("reading")["ci95"].count().min() > 0
    intervals = [_intervals(base)] if has_intervals else []
    chart = alt.LayerChart(layer=[line, *intervals, point, touch])
    return chart.add_params(reading)


def _intervals(base: alt.Chart) -> alt.Chart:
    low, high = "max(0, datum.mean - datum.ci95)", "min(100, datum.mean + datum.ci95)"
    known = base.transform_filter("isValid(datum.ci95)").transform_calculate(low=low, high=high)
    rules: alt.Chart = known.mark_rule(strokeWidth=1).encode(y="low:Q", y2="high:Q")
    return rules


def _caption(table: pd.DataFrame) -> str:
    largest = table.groupby("reading", sort=False)["mean"].max()
    shown = ", ".join(f"{value:.3g} % {reading}" for reading, value in largest.items())
    return f"Largest value: {shown}."
