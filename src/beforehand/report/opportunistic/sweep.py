"""The figures of a sweep: every metric against each swept key."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from beforehand.report.charts import PALETTE, sweep_chart
from beforehand.report.content import Figure, Section
from beforehand.report.notation import SIZES_B, TIMES_US, unit_of
from beforehand.report.opportunistic.compare import RATIOS
from beforehand.report.opportunistic.material import Material
from beforehand.report.opportunistic.measured import RunGroup
from beforehand.report.opportunistic.tables import name_group

METRICS = {
    "reach": "Reach",
    "delivery_ratio": "Delivery ratio",
    "delay_us_avg": "Transmission delay",
    "latency_us_avg": "Delivery latency",
    "age_us_avg": "Age at delivery",
    "receptions": "Received",
    "deliveries": "Delivered",
    "expired": "Expired",
    "dropped": "Dropped",
    "waiting": "Still waiting",
    "again": "Received again",
    "evictions": "Evicted",
    "held_us_avg": "Time in buffer until eviction",
    "frames_aborted": "Aborted transfers",
    "frames_per_delivery": "Transmissions per delivery",
    "bytes_per_delivery": "Sent per delivery",
    "past_entries_avg": "Entries in a message",
    "violations": "Violations",
}


def sweep_sections(material: Material) -> Iterator[Section]:
    """Yield one section for each swept key, with a figure of each metric that is not constant."""
    points = material.points
    for key in dict.fromkeys(points["key"]):
        mine = points[points["key"] == key]
        figures = tuple(_figures(material, str(key), mine))
        title = f"Against {_short(str(key))}"
        if figures:
            yield Section(title, (_prose(material, mine),), figures=figures)
        else:
            yield Section(title, ("No metric changes with this key.",))


def _prose(material: Material, mine: pd.DataFrame) -> str:
    values = ", ".join(dict.fromkeys(mine["value"]))
    prose = f"Values: {values}. All points of a seed share their random numbers. "
    if material.interval_reason:
        return prose + material.interval_reason
    return prose + "Bars are 95 % confidence intervals of the means, cut at 0 and at 100 %."


def _figures(material: Material, key: str, mine: pd.DataFrame) -> Iterator[Figure]:
    lines = _lines(material, key)
    shown = dict(list(lines.items())[: len(PALETTE)])
    columns = (mine["point"], mine["value"], mine["number"])
    at = {point: (value, number) for point, value, number in zip(*columns, strict=True)}
    unit = next((str(u) for u in mine["unit"] if u), "")
    is_number = bool(mine["number"].notna().all())
    for metric, name in METRICS.items():
        table = _table(shown, metric, at)
        means = table["mean"]
        if means.isna().all() or means.nunique() < 2:
            continue
        y_unit, size = _unit(metric, means)
        for column in ("mean", "low", "high"):
            table[column] = table[column] / size
        caption = f"{len(lines) - len(shown)} more lines are not shown." if shown != lines else ""
        x_title = f"{_short(key)} ({unit})" if unit else _short(key)
        title = f"{name}{f' ({y_unit})' if y_unit else ''}"
        chart = sweep_chart(table, x=x_title, y=title, is_number=is_number)
        slug = f"sweep-{key.replace('.', '-').replace('_', '-')}-{metric.replace('_', '-')}"
        yield Figure(slug, f"{name} against {_short(key)}", caption, chart, table)


def _lines(material: Material, key: str) -> dict[str, list[RunGroup]]:
    """Return the groups of each line: all that differ only in the value of the key."""
    points = material.points
    found: dict[str, list[RunGroup]] = {}
    for group in material.groups:
        mine = points[(points["point"] == group.point) & (points["key"] != key)]
        rest = ", ".join(
            f"{_short(k)} {v}" for k, v in zip(mine["key"], mine["value"], strict=True)
        )
        named = name_group(group, with_point=False)
        found.setdefault(", ".join(part for part in (named, rest) if part), []).append(group)
    names = [name.split(", ") for name in found]
    common = set.intersection(*map(set, names)) if len(names) > 1 else set()
    return {
        ", ".join(part for part in name if part not in common): groups
        for name, groups in zip(names, found.values(), strict=True)
    }


def _table(
    lines: Mapping[str, Sequence[RunGroup]], metric: str, at: Mapping[str, tuple[str, float]]
) -> pd.DataFrame:
    rows = []
    for line, groups in lines.items():
        for group in groups:
            mean, margin = group.mean(metric), group.margin(metric) or 0.0
            if math.isnan(mean):
                continue
            value, number = at[group.point]
            named = {"line": line, "value": value, "number": number}
            most = 1.0 if metric in (*RATIOS, "reach") else math.inf
            low, high = max(0.0, mean - margin), min(most, mean + margin)
            bounds = {"mean": mean, "low": low, "high": high}
            rows.append({**named, **bounds, "seeds": len(group.runs)})
    columns = ["line", "value", "number", "mean", "low", "high", "seeds"]
    return pd.DataFrame(rows, columns=columns)


def _unit(metric: str, values: pd.Series) -> tuple[str, float]:
    if metric in (*RATIOS, "reach"):
        return "%", 0.01
    if "_us" in metric:
        return unit_of(values.dropna().tolist(), TIMES_US)
    if metric.startswith("bytes"):
        return unit_of(values.dropna().tolist(), SIZES_B)
    return "", 1.0


def _short(key: str) -> str:
    return key.partition(".")[2].replace("_", " ")
