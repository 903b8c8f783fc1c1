"""MOB figures 6 to 10 and MOB-TR figures 6 to 8, drawn from our runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import pandas as pd

from beforehand.report.charts import PALETTE
from beforehand.report.content import Chart, Figure
from beforehand.report.mobile.data import SYSTEMS, CellResults

COLOURS = [PALETTE[0], PALETTE[4], PALETTE[1], PALETTE[5]]
KEPT = {"kept_max": "fullest station", "kept_rest_avg": "the others, average"}
SPREAD = {**KEPT, "kept_rest_deviation": "the others, deviation"}
MEANS = "Points are means over the seeds."


def throughput_figure(cells: CellResults) -> Figure | None:
    """Draw MOB figure 6: the highest sustained rate."""
    runs = cells.of("throughput")
    runs = runs[runs["is_sustained"].eq(True)]
    if runs.empty:
        return None
    table = _by_hosts(runs.assign(line=runs["system"].map(SYSTEMS)), "rate_per_s")
    caption = f"A system that sustains no tried rate has no point. {MEANS}"
    chart = _over_hosts(table, "Broadcasts per second", is_log=True)
    return Figure("mob-6", "MOB figure 6: highest rate that is sustained", caption, chart, table)


def sent_figures(cells: CellResults) -> tuple[Figure, ...]:
    """Draw MOB figures 7 and 8: the traffic as the network grows, 20 hosts per cell."""
    figures = []
    for slug, column, title, axis in (
        ("mob-7", "bytes", "MOB figure 7: bytes sent", "Bytes in a run"),
        ("mob-8", "frames", "MOB figure 8: messages sent", "Messages in a run"),
    ):
        flows = cells.flows[cells.flows["experiment"] == "scale"]
        if flows.empty:
            return ()
        keys = ["system", "network", "hosts", "seed"]
        sums = flows.groupby(keys, sort=False)[column].sum().reset_index()
        sums["line"] = sums["system"].map(SYSTEMS) + ", " + sums["network"]
        table = _by_hosts(sums, column)
        chart = _over_hosts(table, axis, is_log=True)
        figures.append(Figure(slug, title, f"Headers included. {MEANS}", chart, table))
    return tuple(figures)


def buffer_figures(cells: CellResults) -> tuple[Figure, ...]:
    """Draw MOB figures 9 and 10: the stations' send buffers over time."""
    figures = []
    for slug, experiment, system, title in (
        ("mob-9", "cache", "was", "MOB figure 9: messages that stations keep"),
        ("mob-10", "failures", "was", "MOB figure 10: messages that stations keep, hosts fail"),
    ):
        figure = _in_time(cells, slug, experiment, system, title, SPREAD)
        figures += [figure] if figure else []
    return tuple(figures)


def report_figures(cells: CellResults) -> tuple[Figure, ...]:
    """Draw MOB-TR figures 6 to 8."""
    figures = []
    for system in ("was_flood", "tcp_flooding"):
        title = f"MOB-TR figure 6: buffers, {SYSTEMS[system]}, no host moves"
        lines = {"kept_avg": "sent by a station", "early_avg": "received early by a host"}
        figure = _in_time(cells, f"tr-6-{system}", "static", system, title, lines)
        figures += [figure] if figure else []
    for slug, experiment, title, lines in (
        (
            "tr-7",
            "dynamic",
            "MOB-TR figure 7: buffers, hosts walk",
            {"kept_avg": "sent by a station", "early_avg": "received early by a host"},
        ),
        ("tr-8", "faults", "MOB-TR figure 8: messages that stations keep, hosts fail", KEPT),
    ):
        figure = _in_time(cells, slug, experiment, "was_flood", title, lines)
        figures += [figure] if figure else []
    return tuple(figures)


def _in_time(
    cells: CellResults,
    slug: str,
    experiment: str,
    system: str,
    title: str,
    lines: Mapping[str, str],
) -> Figure | None:
    """Draw a time series of the first seed; a mean over seeds would smooth out its peaks."""
    series = cells.moments(experiment, system)
    if series.empty:
        return None
    run = series["run"].iloc[0]
    series = series[series["run"] == run]
    parts = [
        pd.DataFrame({"line": name, "t_s": series["t_s"], "value": series[column]})
        for column, name in lines.items()
    ]
    outages = cells.outages[cells.outages["run"] == run]
    if len(outages):
        parts.append(
            pd.DataFrame({"line": "failed", "t_s": outages["from_s"], "to_s": outages["to_s"]})
        )
    table = pd.concat(parts, ignore_index=True).reindex(columns=["line", "t_s", "value", "to_s"])
    shades = " Shaded: a host has failed." if len(outages) else ""
    seed, mac = series["seed"].iloc[0], series["mac"].iloc[0]
    caption = f"Seed {seed}, {SYSTEMS[system]}, MAC {mac}.{shades}"
    return Figure(slug, title, caption, _time_chart(table, list(lines.values())), table)


def _by_hosts(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return one row per line and number of hosts: line, hosts, mean, deviation, seeds."""
    found = frame.groupby(["line", "hosts"], sort=False)[column].agg(["mean", "std", "count"])
    table = found.reset_index().rename(columns={"std": "deviation", "count": "seeds"})
    return table.fillna({"deviation": 0.0}).sort_values(["line", "hosts"])


def _over_hosts(table: pd.DataFrame, title: str, *, is_log: bool) -> Chart:
    lines = list(dict.fromkeys(table["line"]))
    base = alt.Chart(table).encode(
        x=alt.X("hosts:O", title="Hosts").axis(labelAngle=0, grid=False),
        y=alt.Y("mean:Q", title=title, scale=alt.Scale(type="log" if is_log else "linear")).axis(
            format="~s", tickCount=6
        ),
        color=_colour(lines),
        tooltip=[
            alt.Tooltip("line:N", title="Line"),
            alt.Tooltip("hosts:Q", title="Hosts"),
            alt.Tooltip("mean:Q", title="Mean", format=",.4~r"),
            alt.Tooltip("deviation:Q", title="Deviation", format=",.3~r"),
        ],
    )
    points = base.mark_point(size=45, filled=True)
    return alt.LayerChart(layer=[base.mark_line(strokeWidth=2), points])


def _time_chart(table: pd.DataFrame, lines: Sequence[str]) -> Chart:
    """Draw lines (line, t_s, value), and shaded intervals for rows with an end (t_s, to_s)."""
    line = (
        alt.Chart(table)
        .mark_line(strokeWidth=1.5)
        .transform_filter("!isValid(datum.to_s)")
        .encode(
            x=alt.X("t_s:Q", title="Time (s)", scale=alt.Scale(nice=False)),
            y=alt.Y("value:Q", title="Messages", scale=alt.Scale(zero=True)),
            color=_colour(lines),
            tooltip=[
                alt.Tooltip("line:N", title="Line"),
                alt.Tooltip("t_s:Q", title="At (s)"),
                alt.Tooltip("value:Q", title="Messages", format=".1f"),
            ],
        )
    )
    shade = (
        alt.Chart(table)
        .mark_rect(opacity=0.15, color=PALETTE[7])
        .transform_filter("isValid(datum.to_s)")
        .encode(x="t_s:Q", x2="to_s:Q")
    )
    return alt.LayerChart(layer=[shade, line])


def _colour(lines: Sequence[str]) -> alt.Color:
    return alt.Color("line:N", title=None, sort=list(lines), legend=alt.Legend(columns=2)).scale(
        domain=list(lines), range=COLOURS
    )
