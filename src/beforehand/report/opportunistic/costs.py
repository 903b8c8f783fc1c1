"""The tables of what runs cost: traffic, verdicts and computing time."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from beforehand.report.content import Cell, Table
from beforehand.report.notation import SIZES_B, show_count, show_plain, show_ratio
from beforehand.report.opportunistic.measured import RunGroup
from beforehand.report.opportunistic.tables import (
    GROUP_HEAD,
    Show,
    column_unit,
    interval_note,
    mean_cell,
    name_group,
)


def cost_table(groups: Sequence[RunGroup]) -> Table:
    """Return the table of traffic, verdicts and computing time by protocol and lifetime."""

    def mean_of(name: str) -> list[float]:
        return [group.mean(name) for group in groups]

    seconds = {"s": 1.0, "min": 60.0, "h": 3600.0}
    columns: dict[str, tuple[str, tuple[str, Show]]] = {
        "frames": ("Transmissions", ("", show_count)),
        "frames_per_delivery": ("Transmissions per delivery", ("", show_plain)),
        "bytes": ("Sent", column_unit(mean_of("bytes"), SIZES_B)),
        "bytes_per_delivery": (
            "Sent per delivery",
            column_unit(mean_of("bytes_per_delivery"), SIZES_B),
        ),
        "past_entries_avg": ("Entries in a message", ("", show_plain)),
        "violations": ("Violations", ("", show_count)),
        "cpu_s": ("Computing", column_unit(mean_of("cpu_s"), seconds)),
    }
    rows = tuple(
        (
            Cell(name_group(group)),
            Cell(str(len(group.runs))),
            *(mean_cell(group, name, show) for name, (_, (_, show)) in columns.items()),
        )
        for group in groups
    )
    data = pd.DataFrame(
        {
            "protocol": group.protocol,
            "lifetime_us": group.lifetime_us,
            **({"point": group.point} if group.point else {}),
            "seeds": len(group.runs),
            **{name: group.mean(name) for name in columns},
            **{f"{name}_ci95": group.margin(name) for name in columns},
        }
        for group in groups
    )
    head = (GROUP_HEAD, "Seeds", *(f"{name}{unit}" for name, (unit, _) in columns.values()))
    notes = interval_note(groups)
    return Table("cost", "By protocol and lifetime", head, rows, data, notes, is_wide=True)


def prevented_table(groups: Sequence[RunGroup]) -> Table | None:
    """Return the table of what order prevents: deliveries of runs without order that came before a
    message that they depend on. None without such a run."""
    loose = [group for group in groups if not group.promise.orders]
    if not loose:
        return None
    rows, data = [], []
    for group in loose:
        late, deliveries = group.mean("violations"), group.mean("deliveries")
        share = late / deliveries if deliveries else float("nan")
        cells = [mean_cell(group, name, show_count) for name in ("deliveries", "violations")]
        rows.append((Cell(name_group(group)), *cells, Cell(show_ratio(share))))
        named = {"protocol": group.protocol, "lifetime_us": group.lifetime_us}
        figures = {"deliveries": deliveries, "violations": late, "share": share}
        point = {"point": group.point} if group.point else {}
        data.append({**named, **point, "seeds": len(group.runs), **figures})
    head = (GROUP_HEAD, "Delivered", "Out of order", "Share")
    notes = interval_note(loose)
    return Table(
        "prevented", "Deliveries out of order", head, tuple(rows), pd.DataFrame(data), notes
    )


def run_table(groups: Sequence[RunGroup]) -> Table:
    """Return the table of single runs, with measurements and verdicts."""
    singles = [
        (group, RunGroup(group.protocol, group.lifetime_us, (run,), group.point), run)
        for group in groups
        for run in group.runs
    ]
    sent = [single.mean("bytes_per_delivery") for _, single, _ in singles]
    unit, show_sent = column_unit(sent, SIZES_B)
    columns: dict[str, tuple[str, Show]] = {
        "receptions": ("Received", show_count),
        "reach": ("Reach", show_ratio),
        "deliveries": ("Delivered", show_count),
        "delivery_ratio": ("Delivery ratio", show_ratio),
        "frames_per_delivery": ("Transmissions per delivery", show_plain),
        "bytes_per_delivery": (f"Sent per delivery{unit}", show_sent),
        "violations": ("Violations", show_count),
    }
    rows, data = [], []
    for group, single, run in singles:
        verdict = ", ".join(filter(None, (str(run["verdict"]), group.promise.allowed)))
        cells = (Cell(show(single.mean(name))) for name, (_, show) in columns.items())
        rows.append((Cell(name_group(group)), Cell(str(run["seed"])), *cells, Cell(verdict)))
        named = {name: run[name] for name in ("run", "protocol", "lifetime_us", "seed")}
        figures = {name: single.mean(name) for name in columns}
        data.append({**named, **figures, "verdict": run["verdict"]})
    head = (GROUP_HEAD, "Seed", *(name for name, _ in columns.values()), "Verdict")
    return Table(
        "runs",
        "Every run",
        head,
        tuple(rows),
        pd.DataFrame(data),
        words=(0, len(head) - 1),
        is_wide=True,
        is_folded=True,
    )
