"""VCU figures 1 and 6 to 11: means over the seeds, with 95 % confidence intervals as error bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

import altair as alt
import pandas as pd

from beforehand.interval import margin_of
from beforehand.report.charts import PALETTE
from beforehand.report.content import Chart, Figure
from beforehand.report.vcube.data import UT_US, Found, Histogram, OverlayResults

WITH, WITHOUT, ONE_TREE = "with aggregation", "without", "one tree for all"
COLOURS = [PALETTE[0], PALETTE[4], PALETTE[1], PALETTE[5]]
SHAPES = ["circle", "square", "diamond", "triangle-up"]
WIDTHS = (1, 2, 5, 10, 25, 50)
BARS_MAX = 30
BARS = "Bars: the 95 % confidence interval of the mean over the seeds (Student's t)."

Lines = Mapping[str, tuple[str, str, float]]
"""The system, its column and the divisor, by name of the line."""

LATENCIES: Lines = {
    "reception, aggregated": ("aggregated", "reception_us_avg", UT_US),
    "reception, plain": ("plain", "reception_us_avg", UT_US),
    "delivery, aggregated": ("aggregated", "delivery_us_avg", UT_US),
    "delivery, plain": ("plain", "delivery_us_avg", UT_US),
}
PAIR_LATENCIES: Lines = {
    name: (system, f"pair_{column}", unit) for name, (system, column, unit) in LATENCIES.items()
}
TREES: Lines = {
    "one tree per source": ("aggregated", "reception_us_avg", UT_US),
    ONE_TREE: ("single", "reception_us_avg", UT_US),
}
COUNTS: Lines = {
    "packets, many trees": ("aggregated", "packed", 1),
    "packets, one tree": ("single", "packed", 1),
    "held back, many trees": ("aggregated", "delayed", 1),
    "held back, one tree": ("single", "delayed", 1),
}


def tree_figures(overlay: OverlayResults) -> tuple[Figure, ...]:
    """Draw one tree for all sources against one tree per source (figures 1 and 11).

    Return no figures without runs of a single tree.
    """
    if overlay.of("single").empty:
        return ()
    reception, counts = lines_table(overlay, TREES), lines_table(overlay, COUNTS)
    counts = counts[counts["mean"] > 0]  # zero has no logarithm
    last = reception.groupby("line", sort=False)["mean"].last()
    text = (
        f"At {overlay.sizes[-1]} nodes a message takes {last[ONE_TREE]:,.0f} u.t. with one tree, "
        f"whose root is the bottleneck, and {last.iloc[0]:,.0f} with many. {BARS}"
    )
    return (
        Figure(
            "figure-1",
            "Figure 1: Reception latency, one tree or many",
            text,
            size_chart(reception, "Average reception latency (u.t.)"),
            reception,
        ),
        Figure(
            "figure-11",
            "Figure 11: Packed together, held back",
            "Packets with several messages, and messages that a node held back. Where there "
            f"are none, there is no point. {BARS}",
            size_chart(counts, "Number in a run", is_log=True),
            counts,
        ),
    )


def packet_figure(claims: Sequence[Found]) -> Figure:
    """Draw Table 1, ours and published."""
    names = {"reduction": "saved", "packed": "several"}  # short, for the legend on a phone
    rows = [
        {
            "line": f"{names[claim.quantity]}, {whose}",
            "nodes": int(claim.place),
            "mean": mean,
            "ci95": claim.margin if whose == "ours" else None,
        }
        for quantity in names
        for whose in ("ours", "published")
        for claim in claims
        if claim.quantity == quantity
        and (mean := claim.mean if whose == "ours" else claim.published) is not None
    ]
    table = _with_bars(pd.DataFrame(rows))
    caption = f"Shares of all packets, as in Table 1. {BARS} The paper gives none for its own."
    chart = size_chart(table, "Packets (%)")
    return Figure("packets", "Packets saved, and with several messages", caption, chart, table)


def latency_figures(overlay: OverlayResults) -> tuple[Figure, ...]:
    """Draw the latencies with and without aggregation (figures 7 and 8)."""
    everything, pairs = lines_table(overlay, LATENCIES), lines_table(overlay, PAIR_LATENCIES)
    title = "Average latency (u.t.)"
    return (
        Figure(
            "figure-7",
            "Figure 7: Reception and delivery latency",
            f"All messages. {BARS}",
            size_chart(everything, title),
            everything,
        ),
        Figure(
            "figure-8",
            "Figure 8: The same, messages that travelled in twos",
            "Those that a node received in a packet of two messages with aggregation, and the same "
            f"messages at the same nodes without. {BARS}",
            size_chart(pairs, title),
            pairs,
        ),
    )


def cause_figure(overlay: OverlayResults, nodes: int) -> Figure:
    """Draw how many causes a message carries (figure 6)."""
    causes = overlay.histogram("causes", "aggregated", nodes)
    table = _spread(causes, WITH, 1, scale=100 / nodes)
    return Figure(
        "figure-6",
        f"Figure 6: Causes of a message, {nodes} nodes",
        f"Share of the messages by the number of causes that they carry. {BARS}",
        bar_chart(table, "Causes", "Messages (%)"),
        table,
    )


def node_figures(overlay: OverlayResults, nodes: int) -> tuple[Figure, ...]:
    """Draw how many messages single nodes buffer and pack (figures 9 and 10)."""
    systems = {WITH: "aggregated", WITHOUT: "plain"}
    buffered = {name: overlay.histogram("buffered", s, nodes) for name, s in systems.items()}
    sizes = overlay.runs.loc[overlay.runs["nodes"] == nodes, "payload_bytes"].unique()
    packed = {
        f"messages of {size} bytes": overlay.histogram(
            "most_packed", "aggregated", nodes, int(size)
        )
        for size in sorted(sizes, reverse=True)
    }
    figures = []
    for slug, title, axis, groups in (
        ("figure-9", "Figure 9: Most messages held back at once", "Messages held back", buffered),
        ("figure-10", "Figure 10: Most messages in a packet", "Messages in a packet", packed),
    ):
        most = max(int(found.values.max()) for found in groups.values())
        width = next((w for w in WIDTHS if most / w <= BARS_MAX), WIDTHS[-1])
        tables = [_spread(found, name, width) for name, found in groups.items()]
        table = pd.concat(tables, ignore_index=True)
        grouped = (
            "" if width == 1 else f" Each point covers {width} values, beginning with its own."
        )
        caption = f"{nodes} nodes, each by the most that it had in a run.{grouped} {BARS}"
        chart = line_chart(table, "value", alt.X("value:Q", title=axis), "Nodes")
        figures.append(Figure(slug, title, caption, chart, table))
    return tuple(figures)


def lines_table(overlay: OverlayResults, lines: Lines) -> pd.DataFrame:
    """Return one row per line and number of nodes: line, nodes, mean, ci95, low, high, seeds."""
    rows_found = []
    for name, (system, column, unit) in lines.items():
        rows = overlay.of(system)
        values = rows.assign(value=rows[column].astype(float) / unit)
        for nodes, of_seeds in values.groupby("nodes")["value"]:
            if known := of_seeds.dropna().tolist():
                part = {"mean": fmean(known), "ci95": margin_of(known), "seeds": len(known)}
                rows_found.append({"line": name, "nodes": nodes, **part})
    table = pd.DataFrame(rows_found, columns=["line", "nodes", "mean", "ci95", "seeds"])
    return _with_bars(table)[["line", "nodes", "mean", "ci95", "low", "high", "seeds"]]


def _spread(found: Histogram, line: str, width: int, *, scale: float = 1.0) -> pd.DataFrame:
    """Return one row per bin of `width` values from zero to the largest, including empty bins."""
    starts = range(0, int(found.values.max()) + 1, width)
    counts = [scale * found.within(start, start + width - 1) for start in starts]
    table = pd.DataFrame({"line": line, "value": list(starts)})
    table["mean"] = [float(of_seeds.mean()) for of_seeds in counts]
    table["ci95"] = [margin_of(of_seeds.tolist()) for of_seeds in counts]
    return _with_bars(table)


def _with_bars(table: pd.DataFrame) -> pd.DataFrame:
    """Add the ends of the error bars; one seed has no interval and gets no bar."""
    half = table["ci95"].astype(float).fillna(0.0)
    low = (table["mean"] - half).clip(lower=0)
    return table.assign(low=low, high=table["mean"] + half)


def size_chart(table: pd.DataFrame, title: str, *, is_log: bool = False) -> Chart:
    """Draw lines over the number of nodes, which doubles from step to step."""
    x = alt.X("nodes:O", title="Nodes").axis(labelAngle=0, grid=False)
    return line_chart(table, "nodes", x, title, is_log=is_log)


def line_chart(
    table: pd.DataFrame, along: str, x: alt.X, title: str, *, is_log: bool = False
) -> Chart:
    """Draw lines with points and error bars (line, mean, ci95, low, high and the field of `x`)."""
    lines = list(dict.fromkeys(table["line"]))
    legend = alt.Legend(columns=2)  # the names are long; two fit on a phone
    chosen = alt.selection_point(fields=["line"], bind="legend")
    # A mean of few seeds may be below 0.5; a point below the axis would cover the labels.
    least = min([0.5, *table.loc[table["mean"] > 0, "mean"]]) if is_log else 0.0
    scale = alt.Scale(type="log", domainMin=least) if is_log else alt.Scale(zero=True)
    base = (
        alt.Chart(table)
        # An error bar that reaches zero ends at the lower edge of a logarithmic chart.
        .transform_calculate(foot=f"max(datum.low, {least})" if is_log else "datum.low")
        .encode(
            x=x,
            color=alt.Color("line:N", title=None, sort=lines, legend=legend).scale(
                domain=lines, range=COLOURS
            ),
            opacity=alt.when(chosen).then(alt.value(1)).otherwise(alt.value(0.12)),
            tooltip=[
                alt.Tooltip("line:N", title="Line"),
                alt.Tooltip(f"{along}:Q", title=along.capitalize()),
                alt.Tooltip("mean:Q", title="Mean", format=",.4~r"),
                alt.Tooltip("ci95:Q", title="± (95 %)", format=",.3~r"),
            ],
        )
    )
    y = alt.Y("mean:Q", title=title, scale=scale)
    y = y.axis(format="~s", tickCount=6) if is_log else y
    bar = base.mark_rule(strokeWidth=1.5).encode(
        y=alt.Y("foot:Q", title=title, scale=scale), y2="high:Q"
    )
    line = base.mark_line(strokeWidth=2).encode(y=y).add_params(chosen)
    point = base.mark_point(size=45, filled=True).encode(
        y=y,
        shape=alt.Shape("line:N", title=None, sort=lines, legend=legend).scale(
            domain=lines, range=SHAPES
        ),
    )
    touch = base.mark_circle(size=300).encode(y=y, opacity=alt.value(0))
    return alt.LayerChart(layer=[line, bar, point, touch])


def bar_chart(table: pd.DataFrame, x_title: str, y_title: str) -> Chart:
    """Draw one bar per value with its error bar (value, mean, low, high)."""
    base = alt.Chart(table).encode(
        # Half a step more at both ends, so that the outer bars are not cut.
        x=alt.X("value:Q", title=x_title).scale(
            domain=[-0.5, int(table["value"].max()) + 0.5], nice=False
        ),
        tooltip=[
            alt.Tooltip("value:Q", title=x_title),
            alt.Tooltip("mean:Q", title="Mean", format=".2f"),
            alt.Tooltip("ci95:Q", title="± (95 %)", format=".2f"),
        ],
    )
    bars = base.mark_rule(strokeWidth=4, color=PALETTE[0]).encode(
        y=alt.Y("mean:Q", title=y_title, scale=alt.Scale(zero=True)), y2=alt.datum(0)
    )
    spread = base.mark_rule(strokeWidth=1.2, color=PALETTE[4]).encode(y="low:Q", y2="high:Q")
    return alt.LayerChart(layer=[bars, spread])
