"""The page about opportunistic runs: its text, its sections, and their tables and figures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from beforehand.report.content import TILE_MARKS, Cell, Mark, Page, Section, Table, Tile, Verdict
from beforehand.report.datasets import COLUMNS, read_frame
from beforehand.report.notation import show_clock, show_count, show_ratio, show_time
from beforehand.report.opportunistic.compare import compare_shares
from beforehand.report.opportunistic.contact_figures import contact_figures
from beforehand.report.opportunistic.costs import cost_table, prevented_table, run_table
from beforehand.report.opportunistic.each import each_section
from beforehand.report.opportunistic.figures import (
    buffer_figures,
    cdf_figures,
    meeting_figures,
    presence_figure,
    registry_figures,
    scatter_figures,
)
from beforehand.report.opportunistic.hops import hops_section
from beforehand.report.opportunistic.material import Material, read_material
from beforehand.report.opportunistic.measured import RunGroup, promise_of
from beforehand.report.opportunistic.sweep import sweep_sections
from beforehand.report.opportunistic.tables import (
    age_table,
    buffer_table,
    by_place,
    delay_tables,
    ordering_table,
    processing_table,
    share_table,
    trace_table,
)


def build_opportunistic_page(directory: Path) -> Page:
    """Build the page from the datasets in this folder."""
    material = read_material(directory)
    sections = (
        _scenario_section(material),
        *_comparison_sections(material),
        *sweep_sections(material),
        *_figure_sections(material),
        *((hops,) if (hops := hops_section(material)) else ()),
        *_prevented_sections(material),
        _cost_section(material),
        *((each,) if (each := each_section(material)) else ()),
    )
    verdict, headline = _judge(material)
    source = f" Published figures: {material.paper.source}." if material.paper else ""
    return Page(
        title=material.scenario.title,
        subtitle=f"Scenario {material.scenario.name}",
        verdict=verdict,
        headline=headline,
        summary=_summary(material),
        tiles=_tiles(material),
        sections=sections,
        footer=f"Written by Beforehand.{source}",
    )


def _ordered_rows(material: Material) -> list[Mapping[str, Any]]:
    """Return the runs that promise an order, if any; the others are only for comparison."""
    return [row for row in material.rows if promise_of(row).orders] or list(material.rows)


def _judge(material: Material) -> tuple[Verdict, str]:
    rows = _ordered_rows(material)
    deliveries = show_count(sum(row["deliveries"] for row in rows))
    runs = "1 run" if len(rows) == 1 else f"{len(rows)} runs"
    bad = [row for row in rows if row["verdict"] == "invalid"]
    if bad:
        count = sum(row["violations"] for row in bad)
        return "invalid", f"{show_count(count)} of {deliveries} deliveries broke causal order."
    if any(row["verdict"] != "valid" for row in rows):
        return "unknown", f"Not every one of the {deliveries} deliveries could be judged."
    if not any(promise_of(row).orders for row in rows):
        return "valid", f"No run promised an order: {deliveries} deliveries, nothing twice."
    if (late := _late_as_promised(rows)) is not None:
        late_text = f"{show_count(late)} came late where order was promised with probability only"
        return "valid", f"{deliveries} deliveries of {runs}: {late_text}."
    return "valid", f"All {deliveries} deliveries of {runs} kept causal order."


def _late_as_promised(rows: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the violations of runs that promise an order with probability only; None if there
    are no such runs."""
    unsure = [row for row in rows if promise_of(row).orders and not promise_of(row).is_sure]
    return sum(row["violations"] for row in unsure) if unsure else None


def _summary(material: Material) -> str:
    nodes, contacts, broadcasts = (
        _range(material, name) for name in ("nodes", "contacts", "broadcasts")
    )
    text = f"{nodes} nodes met {contacts} times and broadcast {broadcasts} messages in each run. "
    ordered = [group for group in material.groups if group.promise.orders]
    text += " ".join(_describe(group) for group in ordered[:1] + ordered[1:][-1:])
    loose = [group for group in material.groups if not group.promise.orders]
    if loose:
        most = max(group.mean("violations") for group in loose)
        text += f" Delivered as they arrive, up to {show_count(most)} would have come out of order."
    return text


def _range(material: Material, column: str) -> str:
    """Format one number, or the minimum and the maximum if the runs differ."""
    values = [row[column] for row in material.rows]
    least, most = show_count(min(values)), show_count(max(values))
    return least if least == most else f"{least} to {most}"


def _describe(group: RunGroup) -> str:
    lifetime = "Without a lifetime" if group.lifetime_us is None else f"With {group.label} to live"
    delay_us, wait_us = group.mean("delay_us_avg"), group.mean("latency_us_avg")
    if math.isnan(delay_us):
        return f"{lifetime} in one run no node received any message."
    waited = f"then waited {show_time(wait_us)}" if wait_us else "never waited"
    return (
        f"{lifetime} a message travelled {show_time(delay_us)} on average and "
        f"{waited} for its causes; "
        f"{show_ratio(group.mean('delivery_ratio'))} of what nodes broadcast or received was "
        "delivered."
    )


def _tiles(material: Material) -> tuple[Tile, ...]:
    """Return the tiles with the numbers of the headline, over the same runs."""
    rows = _ordered_rows(material)
    verdict, _ = _judge(material)
    late = _late_as_promised(rows)
    violations = sum(row["violations"] for row in rows) - (late or 0)
    loose = len(material.rows) - len(rows)
    tiles = [
        Tile(show_count(len(rows)), "runs that promise order" if loose else "runs"),
        Tile(show_count(sum(row["deliveries"] for row in rows)), "deliveries checked"),
        Tile(show_count(violations), "violations", TILE_MARKS[verdict]),
    ]
    if not any(promise_of(row).orders for row in rows):
        tiles[-1] = Tile(show_count(violations), "out of order, none promised")
    if late is not None:
        tiles.append(Tile(show_count(late), "late, order promised with probability"))
    if loose:
        tiles.append(Tile(show_count(loose), "without order, to compare"))
    judged = [claim.is_met for claim in material.claims if claim.is_met is not None]
    orders = [found.is_met for found in material.orderings]
    for met, label in ((judged, "figures within tolerance"), (orders, "orders as published")):
        if met:
            mark: Mark = "met" if all(met) else "missed"
            tiles.append(Tile(f"{sum(met)} of {len(met)}", label, mark))
    return tuple(tiles)


def _scenario_section(material: Material) -> Section:
    scenario = material.scenario
    models = sorted({str(row["transfer_model"]) for row in material.rows})
    prose = [f"Transfer model: {model.rstrip('.')}." for model in models]
    seeds = len({row["seed"] for row in material.rows})
    prose += _engines(material)
    prose.append(
        material.interval_reason
        or f"{seeds} seeds. Each number of a protocol and lifetime is the mean over the seeds, "
        "with its 95 % confidence interval; the mobility trace and the figures are those of the "
        "lowest seed."
    )
    if scenario.drawn and "mobility" not in scenario.drawn and seeds > 1:
        listed = " and ".join(scenario.drawn)
        prose.append(
            f"All seeds have the same mobility, from a file; they draw {listed} anew. The "
            "intervals say nothing about other mobility."
        )
    if left_out := max(row.get("left_out", 0) for row in material.rows):
        prose.append(
            f"{show_count(left_out)} broadcasts of the traffic's file are left out, because their "
            "source is absent at that time."
        )
    if mended := {kind: count for kind, count in scenario.changes.items() if count}:
        listed = ", ".join(f"{kind.replace('_', ' ')} {n:,}" for kind, n in sorted(mended.items()))
        prose.append(f"Repairs of the mobility trace before the first run: {listed}.")
    tables = [*_trace_tables(material), *_parameter_tables(scenario.parameters, scenario.versions)]
    return Section("What was run", tuple(prose), tuple(tables))


def _engines(material: Material) -> Iterator[str]:
    """Yield which engine has played how many runs, and why not the twin."""
    rows = material.rows
    twins = sum(row["engine"] == "twin" for row in rows)
    if twins:
        yield f"Played by the compiled twin of the protocol cores: {twins} of {len(rows)} runs."
    reasons = Counter(str(row["engine_why"]) for row in rows if row["engine"] == "cores")
    for reason, count in sorted(reasons.items()):
        because = f" ({reason})" if reason else ""
        yield f"Played by the protocol cores: {count} of {len(rows)} runs{because}."


def _trace_tables(material: Material) -> Iterator[Table]:
    trace = read_frame(material.directory, "trace")
    presence = material.presence
    if len(trace) and len(presence):
        span_us = int(presence["down_us"].max() - presence["up_us"].min())
        ours = {str(name): float(trace[name].iloc[0]) for name in COLUMNS["trace"]}
        yield trace_table({"span": span_us, **ours}, material.paper)


def _parameter_tables(
    parameters: Mapping[str, Any], versions: Mapping[str, str]
) -> Iterator[Table]:
    pairs = [*_flatten(parameters), *((f"version of {name}", v) for name, v in versions.items())]
    if pairs:
        rows = tuple((Cell(name), Cell(_show_parameter(name, value))) for name, value in pairs)
        data = pd.DataFrame(pairs, columns=["parameter", "value"])
        yield Table("parameters", "Parameters", ("Parameter", "Value"), rows, data, is_folded=True)


def _flatten(parameters: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in parameters.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{name}.")
        elif isinstance(value, list) and all(isinstance(item, Mapping) for item in value):
            for place, item in enumerate(value, 1):
                yield from _flatten(item, f"{prefix}{name}.{place}.")
        else:
            yield f"{prefix}{name}", value


def _show_parameter(name: str, value: object) -> str:
    if isinstance(value, list):
        return ", ".join(_show_parameter(name, item) for item in value)
    if value is None:
        return "none"
    if name.endswith("_us") and isinstance(value, int):
        return show_time(value)
    return str(value)


def _comparison_sections(material: Material) -> Iterator[Section]:
    paper, claims = material.paper, by_place(material.claims)
    numbers = paper.tables if paper else {"processing": "", "delays": ""}
    beside = (
        "Below each figure of ours: the published one, and the difference. ✓ is within the "
        "tolerance and ✗ is not; a figure without a mark is shown, not judged."
    )
    reach = (
        "A reception is the first one of a message by a node. Reach is the share of the possible "
        "receptions: each message counts for every node that was present during its life. The "
        "delivery ratio is the share of broadcast or received messages that nodes delivered. Every "
        "received message is delivered, expires, is dropped, or still waits for a predecessor at "
        "the end."
    )
    buffers = (
        "A node that evicted a message can receive it again. An evicted message that waited for a "
        "predecessor is dropped unless the node receives it again. An aborted transfer is a frame "
        "that was under way when its contact ended."
    )
    yield Section(
        "Messages",
        (reach, beside) if paper else (reach,),
        (processing_table(material.groups, claims, numbers["processing"]),),
    )
    yield Section("Buffers and links", (buffers,), (buffer_table(material.groups),))
    tables = list(delay_tables(material.groups, claims, numbers["delays"]))
    tables.append(age_table(material.groups))
    if paper and (shares := compare_shares(paper, material.by_lifetime, material.quantiles)):
        tables.append(share_table(shares))
    prose = (
        "The delay is the time from broadcast to first reception, with or without order. The "
        "latency is what order adds: the time from first reception to delivery. The age of a "
        "delivered message is the sum of its delay and its latency.",
    )
    yield Section("Delays", prose, tuple(tables))
    if material.orderings:
        met = sum(found.is_met for found in material.orderings)
        order_text = f"{met} of {len(material.orderings)} rows rank the lifetimes as published."
        yield Section(
            "Order of the lifetimes", (order_text,), (ordering_table(material.orderings),)
        )


def _figure_sections(material: Material) -> Iterator[Section]:
    if presence := presence_figure(material):
        first, last = material.presence["up_us"].min(), material.presence["down_us"].max()
        prose = f"The scenario lasts from {show_clock(first)} to {show_clock(last)}."
        yield Section("Presence", (prose,), figures=(presence,))
    if meetings := (*contact_figures(material), *meeting_figures(material)):
        yield Section("Contacts", figures=meetings)
    for title, figures in (
        ("Delay and latency", scatter_figures(material)),
        ("Distributions", cdf_figures(material)),
        ("Registries of one node", registry_figures(material)),
        ("Buffer of one node", buffer_figures(material)),
    ):
        if figures:
            yield Section(title, figures=figures)


def _prevented_sections(material: Material) -> Iterator[Section]:
    if table := prevented_table(material.groups):
        prose = (
            "A node without order delivers each message when it receives it. A delivery is out of "
            "order if the node had not delivered a message on which it causally depends. Order "
            "prevents all of these, at the price of the latency above."
        )
        yield Section("What order prevents", (prose,), (table,))


def _cost_section(material: Material) -> Section:
    prose = (
        "The traffic of the nodes, and the average number of predecessors named by a message: "
        "the cost of order on the air. A transmission is a frame; deliveries are those of all "
        "nodes.",
    )
    return Section("Cost", prose, (cost_table(material.groups), run_table(material.groups)))
