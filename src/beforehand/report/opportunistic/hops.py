"""The number of hops until a message is received: a table and a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

import pandas as pd

from beforehand.interval import margin_of
from beforehand.report.charts import PALETTE, hops_chart
from beforehand.report.content import Cell, Figure, Section, Table
from beforehand.report.datasets import read_frame
from beforehand.report.notation import show_count, show_plain, show_ratio
from beforehand.report.opportunistic.figures import count_rest
from beforehand.report.opportunistic.material import Material
from beforehand.report.opportunistic.measured import RunGroup
from beforehand.report.opportunistic.tables import GROUP_HEAD, interval_note, name_group

PROSE = (
    "A message makes one hop from its origin to the node that receives it, and one more each time "
    "that a node forwards it. Counted at the first reception by each node."
)


def hops_section(material: Material) -> Section | None:
    """Return the section about hops; None if there were no receptions or they were not recorded."""
    counted = read_frame(material.directory, "hops")
    tallies = {str(run): rows for run, rows in counted.groupby("run")}
    groups = [g for g in material.groups if any(str(run["run"]) in tallies for run in g.runs)]
    if not groups:
        return None
    prose = [PROSE]
    if unknown := int(counted.loc[counted["hops"] < 0, "receptions"].sum()):
        prose.append(f"Of {show_count(unknown)} receptions it is not known.")
    table = _table(groups, tallies)
    return Section("Hops", tuple(prose), (table,), (_figure(material, groups, tallies),))


def _known(tally: pd.DataFrame) -> pd.DataFrame:
    return tally[tally["hops"] >= 0]


def _averages(group: RunGroup, tallies: Mapping[str, pd.DataFrame]) -> list[float]:
    """Return the mean number of hops for each seed with receptions."""
    known = [_known(tallies[str(run["run"])]) for run in group.runs if str(run["run"]) in tallies]
    return [
        float((rows["hops"] * rows["receptions"]).sum() / rows["receptions"].sum())
        for rows in known
        if len(rows)
    ]


def _table(groups: Sequence[RunGroup], tallies: Mapping[str, pd.DataFrame]) -> Table:
    rows, data = [], []
    for group in groups:
        averages = _averages(group, tallies)
        ours = [
            _known(tallies[str(run["run"])]) for run in group.runs if str(run["run"]) in tallies
        ]
        every = pd.concat(ours).groupby("hops")["receptions"].sum()
        direct, most = int(every.get(1, 0)), int(every.index.max()) if len(every) else 0
        mean, margin = (
            fmean(averages) if averages else float("nan"),
            margin_of(averages) if group.is_replicated else None,
        )
        share = direct / int(every.sum()) if len(every) else float("nan")
        spread = f"± {show_plain(margin)}" if margin else ""
        cells = (Cell(show_plain(mean), spread=spread), Cell(show_count(most)))
        rows.append((Cell(name_group(group)), *cells, Cell(show_ratio(share))))
        named = {"protocol": group.protocol, "lifetime_us": group.lifetime_us}
        figures = {"hops_avg": mean, "hops_avg_ci95": margin, "hops_max": most}
        data.append({**named, "seeds": len(averages), **figures, "direct_share": share})
    head = (GROUP_HEAD, "Average", "Most", "From the origin itself")
    notes = interval_note(groups)
    return Table("hops", "Hops of received messages", head, tuple(rows), pd.DataFrame(data), notes)


def _figure(
    material: Material, groups: Sequence[RunGroup], tallies: Mapping[str, pd.DataFrame]
) -> Figure:
    parts = []
    for group in groups[: len(PALETTE)]:
        if group.first_run in tallies:
            rows = _known(tallies[group.first_run]).sort_values("hops")
            share = rows["receptions"] / max(1, rows["receptions"].sum())
            parts.append(rows.assign(share=share, line=name_group(group)))
    columns = ["line", "hops", "receptions", "share"]
    table = pd.concat(parts)[columns] if parts else pd.DataFrame(columns=columns)
    caption = "The share of receptions after each number of hops, in the run of the lowest seed."
    caption += count_rest(material, table["line"].nunique())
    return Figure("hop-shares", "Hops of a message", caption, hops_chart(table), table)
