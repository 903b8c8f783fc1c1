"""The figures of an opportunistic page: select the rows of each chart and write its caption."""

from __future__ import annotations

import re
from typing import TypedDict

import numpy as np
import pandas as pd

from beforehand.report.charts import (
    PALETTE,
    cdf_chart,
    presence_chart,
    registry_chart,
    scatter_chart,
    share_chart,
)
from beforehand.report.content import Figure
from beforehand.report.datasets import read_frame
from beforehand.report.notation import SECOND_US, show_count, show_ratio, show_time
from beforehand.report.opportunistic.compare import share_below
from beforehand.report.opportunistic.material import Material
from beforehand.report.opportunistic.measured import RunGroup
from beforehand.report.opportunistic.tables import METRICS, name_group

# Limits, because a phone draws every mark; more marks could not be distinguished.
PRESENCE_NODES_MAX = 150
SCATTER_ROWS_MAX = 2000
LINE_ROWS_MAX = 1000
CDF_ROWS_MAX = 250

LONG_TAIL = 20
"""The ratio of the longest to the 95th percentile from which the axis is logarithmic. On a linear
axis, most values would then be in one corner."""
LOG_FROM_US = 100_000

MEETINGS = {
    "duration": ("Contact duration", "contacts", "How long two nodes are in contact."),
    "between": (
        "Inter-contact time",
        "pauses",
        "From the end of a contact to the next one of the same two; pairs that never meet "
        "again are left out.",
    ),
}
REGISTRIES = {"barrier": "causal barrier", "delivered": "delivered", "pending": "pending"}


def presence_figure(material: Material) -> Figure | None:
    """Draw when the nodes are present (OPP, Figures 3 and 8)."""
    table = material.presence
    if table.empty:
        return None
    came_us = table.groupby("node")["up_us"].min().sort_values(kind="stable")
    window_us = material.paper.presence_window_us if material.paper else None
    shown = came_us
    if window_us is not None:
        shown = came_us[came_us <= came_us.min() + window_us]
    elif material.paper is None:
        shown = came_us[:PRESENCE_NODES_MAX]
    row_of = {node: row for row, node in enumerate(shown.index)}
    table = table[table["node"].isin(shown.index)]
    table = table.assign(row=table["node"].map(row_of)).sort_values(["row", "up_us"])
    caption = "Each line is a node while it is there, from the first to come down to the last. "
    caption += (
        "All of them are shown."
        if len(shown) == len(came_us)
        else f"The first {show_count(len(shown))} of {show_count(len(came_us))} are shown."
    )
    title = _title(material, "presence", "", "Presence of nodes over time")
    return Figure("presence", title, caption, presence_chart(table), table)


def scatter_figures(material: Material) -> tuple[Figure, ...]:
    """Draw the latency that ordering adds to each message's delay (OPP, Figures 4 and 9)."""
    figures = []
    for letter, group in zip("ab", material.spotlight, strict=False):
        table = read_frame(material.directory, "scatter", run=[group.first_run])
        if table.empty:
            continue
        table = table[["delay_us", "latency_us"]].iloc[:: -(-len(table) // SCATTER_ROWS_MAX)]
        caption = "A sample of the deliveries; the two axes have different units."
        # The share of all deliveries, because the sample contains more of the long latencies.
        swift = share_below(material.quantiles, group.first_run, "latency", SECOND_US)
        if swift is not None:
            caption += f" {show_ratio(swift)} of all waited less than a second for their causes."
        title = _title(material, "scatter", letter, f"Delay and latency, {name_group(group)}")
        slug = f"scatter-{_slug(group)}"
        figures.append(Figure(slug, title, caption, scatter_chart(table), table))
    return tuple(figures)


def cdf_figures(material: Material) -> tuple[Figure, ...]:
    """Draw the CDFs of delay and latency (OPP, Figures 5 and 10)."""
    figures = []
    for letter, metric in zip("ab", ("delay", "latency"), strict=True):
        table = _cdf_table(material, metric)
        if table.empty:
            continue
        axis, axis_text = _value_axis(table, _cut(material, metric), f"the longest {metric}")
        caption = "Diamonds are values from the text of the paper. " if material.paper else ""
        of = "deliveries"
        if metric == "delay":
            table, of = _up_to_reach(material, table, axis["end_us"]), "possible receptions"
            caption += "Each line levels off at the reach. "
        caption += f"{axis_text}Choose lines in the legend."
        caption += count_rest(material, table["lifetime"].nunique())
        chart = cdf_chart(table, title=METRICS[metric], of=of, **axis)
        title = _title(material, "cdf", letter, f"{METRICS[metric]}, cumulated")
        figures.append(Figure(f"cdf-{metric}", title, caption, chart, table))
    return tuple(figures)


def _cdf_table(material: Material, metric: str) -> pd.DataFrame:
    quantiles = material.quantiles
    parts = []
    for group in _distinct_groups(material):
        chosen = quantiles[
            (quantiles["run"] == group.first_run) & (quantiles["metric"] == metric)
        ].sort_values("share")
        if len(chosen):
            chosen = chosen.iloc[_spread_out(len(chosen), CDF_ROWS_MAX)]
            parts.append(chosen.assign(lifetime=name_group(group), origin="ours"))
    if not parts:
        return pd.DataFrame()
    for fact in material.paper.quantiles if material.paper else ():
        if fact.claim.metric == metric and fact.lifetime_us in material.by_lifetime:
            row = {"value_us": fact.limit_us, "share": fact.claim.published, "origin": "published"}
            name = name_group(material.by_lifetime[fact.lifetime_us])
            parts.append(pd.DataFrame([{**row, "lifetime": name}]))
    return pd.concat(parts)[["lifetime", "origin", "share", "value_us"]]


def _up_to_reach(material: Material, table: pd.DataFrame, end_us: int) -> pd.DataFrame:
    """Return shares of the possible receptions, and continue each line to the end of the axis."""
    reach = {name_group(group): group.values("reach")[0] for group in material.groups}
    # Without a record of presence the reach is unknown, but then nothing was received either.
    share = table["share"] * table["lifetime"].map(reach).fillna(1.0)
    ends = [
        {"lifetime": name, "origin": "ours", "share": reach[name], "value_us": end_us}
        for name in dict.fromkeys(table["lifetime"])
        if reach[name] == reach[name]
    ]
    grown = pd.concat([table.assign(share=share), pd.DataFrame(ends, columns=table.columns)])
    order = list(dict.fromkeys(table["lifetime"]))
    grown = grown.assign(rank=grown["lifetime"].map(order.index))
    in_order = grown.sort_values(["rank", "origin", "value_us", "share"], kind="stable")
    return in_order.drop(columns="rank").astype({"value_us": "int64"})


def _distinct_groups(material: Material) -> tuple[RunGroup, ...]:
    """Return at most as many groups as there are colours."""
    groups = material.groups
    if len(groups) > len(PALETTE) and material.points.empty:
        groups = tuple(material.by_lifetime.values()) or groups
    return groups[: len(PALETTE)]


def count_rest(material: Material, shown: int) -> str:
    """Return the caption's note on protocols and lifetimes that the figure leaves out."""
    more = len(material.groups) - shown
    return f" {more} more {'is' if more == 1 else 'are'} not shown." if more > 0 else ""


def _spread_out(count: int, wanted: int) -> list[int]:
    """Return at most `wanted` evenly spaced positions of `count` rows, including both ends."""
    return sorted(set(np.linspace(0, count - 1, min(count, wanted)).round().astype(int).tolist()))


class ValueAxis(TypedDict):
    """The end of a distribution's axis, and where it becomes logarithmic."""

    end_us: int
    log_from_us: int | None


def _cut(material: Material, metric: str) -> int | None:
    """Return where the paper ends its axis."""
    return material.paper.latency_cut_us if material.paper and metric == "latency" else None


def _value_axis(table: pd.DataFrame, cut_us: int | None, longest: str) -> tuple[ValueAxis, str]:
    """Return an axis for the whole distribution, or up to the paper's cut, and a note for the
    caption."""
    longest_us = int(table["value_us"].max())
    if cut_us is not None and cut_us < longest_us:
        axis_text = f"The axis ends at {show_time(cut_us)}; {longest} is {show_time(longest_us)}. "
        return {"end_us": cut_us, "log_from_us": None}, axis_text
    most_us = int(table.loc[table["share"] <= 0.95, "value_us"].max())
    if longest_us < LONG_TAIL * most_us or longest_us < LONG_TAIL * LOG_FROM_US:
        return {"end_us": longest_us, "log_from_us": None}, ""
    axis_text = f"The axis is logarithmic from {show_time(LOG_FROM_US)} on. "
    return {"end_us": longest_us, "log_from_us": LOG_FROM_US}, axis_text


def meeting_figures(material: Material) -> tuple[Figure, ...]:
    """Draw the CDFs of contact durations and inter-contact times."""
    meetings = read_frame(material.directory, "meetings")
    figures = []
    for metric, (words, of, sentence) in MEETINGS.items():
        table = meetings.loc[meetings["metric"] == metric, ["share", "value_us"]]
        if table.empty:
            continue
        axis, axis_text = _value_axis(table, None, "")
        middle_us = table.loc[table["share"] >= 0.5, "value_us"].min()
        caption = (
            f"{sentence} Half of them take at most {show_time(middle_us)}. {axis_text}".rstrip()
        )
        chart = share_chart(table, title=words, of=of, **axis)
        figures.append(Figure(f"meetings-{metric}", f"{words}, cumulated", caption, chart, table))
    return tuple(figures)


def buffer_figures(material: Material) -> tuple[Figure, ...]:
    """Draw how many messages one node buffers for forwarding, for every protocol and lifetime."""
    groups = {group.first_run: group for group in material.groups[: len(PALETTE)]}
    node = _watched_node(material, list(groups))
    if node is None:
        return ()
    gauges = read_frame(
        material.directory, "gauges", run=list(groups), node=[node], gauge=["cache"]
    ).sort_values("t_us", kind="stable")
    parts = [
        _thin(gauges[gauges["run"] == run]).assign(registry=name_group(group))
        for run, group in groups.items()
    ]
    table = pd.concat(parts)[["registry", "t_us", "value"]]
    if table.empty:
        return ()
    most = show_count(table["value"].max())
    caption = f"Messages that node {_name(material, node)} keeps to pass them on: at most {most}."
    caption += count_rest(material, len(groups))
    chart = registry_chart(table, of="Messages")
    return (Figure("buffer", "Buffer occupancy over time", caption, chart, table),)


def _name(material: Material, node: int) -> str:
    names = dict(zip(material.presence["node"], material.presence["name"], strict=True))
    return str(names.get(node, node))


def registry_figures(material: Material) -> tuple[Figure, ...]:
    """Draw the registry sizes of one node over time (OPP, Figures 6 and 11)."""
    runs = {group.first_run: group for group in material.spotlight}
    node = _watched_node(material, list(runs))
    if node is None:
        return ()
    gauges = read_frame(
        material.directory, "gauges", run=list(runs), node=[node], gauge=list(REGISTRIES)
    ).sort_values("t_us", kind="stable")
    figures = []
    for letter, (run, group) in zip("ab", runs.items(), strict=False):
        rows = gauges[gauges["run"] == run]
        if rows.empty:
            continue
        parts = [
            _thin(rows[rows["gauge"] == gauge]).assign(registry=registry)
            for gauge, registry in REGISTRIES.items()
        ]
        table = pd.concat(parts)[["registry", "t_us", "value"]]
        caption = f"Node {_name(material, node)}. {_describe_delivered(rows)}"
        title = _title(material, "registries", letter, f"Registries, {name_group(group)}")
        slug = f"registries-{_slug(group)}"
        figures.append(Figure(slug, title, caption, registry_chart(table), table))
    return tuple(figures)


def _watched_node(material: Material, runs: list[str]) -> int | None:
    """Return the node present longest among those with recorded registries in these runs."""
    recorded = read_frame(material.directory, "gauges", run=runs)["node"].unique()
    presence = material.presence[material.presence["node"].isin(recorded)]
    if presence.empty:
        return int(min(recorded)) if len(recorded) else None
    stay_us = (presence["down_us"] - presence["up_us"]).groupby(presence["node"]).sum()
    return int(stay_us.index[int(stay_us.argmax())])


def _thin(rows: pd.DataFrame) -> pd.DataFrame:
    """Reduce the rows to a number that can be drawn; keep the extremes of each interval."""
    if len(rows) <= LINE_ROWS_MAX:
        return rows
    values = rows["value"].reset_index(drop=True)
    stretch = np.arange(len(values)) * (LINE_ROWS_MAX // 2) // len(values)
    grouped = values.groupby(stretch)
    kept = sorted({*grouped.idxmin(), *grouped.idxmax(), 0, len(values) - 1})
    return rows.iloc[kept]


def _describe_delivered(rows: pd.DataFrame) -> str:
    """Describe the delivered registry. The paper claims that it shrinks only with lifetimes."""
    sizes = rows.loc[rows["gauge"] == "delivered", "value"].to_numpy()
    shrunk = int((np.diff(sizes) < 0).sum())
    most = f"The delivered registry had at most {show_count(sizes.max(initial=0))} entries"
    return f"{most} and shrank {show_count(shrunk)} times." if shrunk else f"{most}; it only grew."


def _title(material: Material, kind: str, letter: str, words: str) -> str:
    return f"Figure {material.paper.figures[kind]}{letter}: {words}" if material.paper else words


def _slug(group: RunGroup) -> str:
    minutes = "none" if group.lifetime_us is None else f"{group.lifetime_us / 60e6:g}m"
    point = re.sub(r"[^a-z0-9]+", "-", group.point.lower()).strip("-")
    return "-".join(part for part in (group.protocol, minutes, point) if part)
