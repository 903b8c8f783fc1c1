"""Tables of all nodes and all messages of one run, which the reader can sort and search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from beforehand.report.content import Cell, Section, Table
from beforehand.report.datasets import DELAYS, read_frame
from beforehand.report.notation import TIMES_US, show_count
from beforehand.report.opportunistic.material import Material
from beforehand.report.opportunistic.measured import RunGroup
from beforehand.report.opportunistic.tables import Show, column_unit, name_group, time_column

ROWS_MAX = 200
"""The maximum rows on the page, because a phone lays out every row; the CSV has all rows."""

NODE_COLUMNS = {
    "name": "Node",
    "present_us": "Present",
    "broadcasts": "Broadcast",
    "receptions": "Received",
    "deliveries": "Delivered",
    "delay_us_avg": "Delay, average",
    "delivered_delay_us_avg": "Delay of delivered",
    "latency_us_avg": "Latency, average",
    "age_us_avg": "Age, average",
}
MESSAGE_COLUMNS = {
    "name": "From",
    "seq": "Number",
    "sent_us": "Sent at",
    "past_entries": "Causes named",
    "receptions": "Received",
    "deliveries": "Delivered",
    "delay_us_max": "Last received after",
    "age_us_max": "Last delivered after",
}


def each_section(material: Material) -> Section | None:
    """Return the tables of the first spotlight run; None if it was not recorded."""
    group = material.spotlight[0]
    names = dict(zip(material.presence["node"], material.presence["name"], strict=True))
    tables = []
    nodes = read_frame(material.directory, "nodes", run=[group.first_run])
    if len(nodes):
        stays_us = material.presence["down_us"] - material.presence["up_us"]
        present_us = stays_us.groupby(material.presence["node"]).sum()
        nodes = nodes.assign(present_us=nodes["node"].map(present_us))
        nodes = _named(nodes, "node", names)
        tables.append(_long_table("nodes", "Every node", NODE_COLUMNS, nodes, material.groups))
    messages = read_frame(material.directory, "messages", run=[group.first_run])
    if len(messages):
        messages = _named(messages, "origin", names)
        title, groups = "Every message", material.groups
        tables.append(_long_table("messages", title, MESSAGE_COLUMNS, messages, groups))
    if not tables:
        return None
    prose = f"Of one run: {name_group(group)}, the lowest seed. A click on a head sorts."
    return Section("Nodes and messages", (prose,), tuple(tables))


def _named(frame: pd.DataFrame, column: str, names: Mapping[int, str]) -> pd.DataFrame:
    called = [str(names.get(node, node)) for node in frame[column]]
    return frame.drop(columns="run").assign(name=called)


def _long_table(
    slug: str,
    title: str,
    columns: Mapping[str, str],
    frame: pd.DataFrame,
    groups: Sequence[RunGroup],
) -> Table:
    heads, shows = [], []
    for name, head in columns.items():
        unit, show = _column(name, frame, groups)
        heads.append(f"{head}{unit}")
        shows.append((name, show))
    rows = tuple(
        tuple(Cell(_show(row[name], show)) for name, show in shows)
        for row in frame.head(ROWS_MAX).to_dict("records")
    )
    notes: tuple[str, ...] = ()
    if len(frame) > ROWS_MAX:
        notes = (f"The first {ROWS_MAX} of {show_count(len(frame))}; the CSV has all.",)
    table = frame[[*columns, *(name for name in frame if name not in columns)]]
    return Table(
        slug, title, tuple(heads), rows, table, notes, is_wide=True, is_folded=True, is_long=True
    )


def _column(name: str, frame: pd.DataFrame, groups: Sequence[RunGroup]) -> tuple[str, Show | None]:
    if name == "name":
        return "", None
    if name.startswith(DELAYS):
        return time_column(groups, name)
    if "_us" in name:
        return column_unit([float(value) for value in frame[name].dropna()], TIMES_US)
    return "", show_count


def _show(value: object, show: Show | None) -> str:
    if show is None:
        return str(value)
    number = float(str(value))
    return "–" if number != number else show(number)
