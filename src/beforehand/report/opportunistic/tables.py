"""The tables of the opportunistic papers: our values, with the published ones where they exist."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import pandas as pd

from beforehand.papers.opportunistic import COUNTS_OF_A_TRACE, PROCESSING, Paper
from beforehand.protocols.registry import find_protocol
from beforehand.report.content import Cell, Mark, Table
from beforehand.report.datasets import DELAYS, STATISTICS
from beforehand.report.notation import (
    TIMES_US,
    In,
    show_count,
    show_difference,
    show_interval,
    show_lifetime,
    show_points,
    show_ratio,
    show_time,
    unit_of,
)
from beforehand.report.opportunistic.compare import RATIOS, Compared, ComparedShare, Ordering
from beforehand.report.opportunistic.measured import RunGroup, is_of_the_paper

METRICS = {"delay": "Transmission delay", "latency": "Delivery latency", "age": "Age at delivery"}
STATISTIC_NAMES = {"min": "shortest", "max": "longest", "avg": "average", "stdev": "deviation"}
QUANTITIES = {
    "broadcasts": "Broadcast",
    "receptions": "Received",
    "deliveries": "Delivered",
    "delivery_ratio": "Delivery ratio",
    "reach": "Reach",
    "expired": "Expired",
    "expiry_ratio": "Expiry ratio",
    "again": "Received again",
    "evictions": "Evicted",
    "held_us_avg": "Time in buffer until eviction, average",
    "dropped": "Dropped",
    "waiting": "Still waiting",
    "frames_aborted": "Aborted transfers",
    "delivered_delay_us_avg": "Delay of delivered messages",
    **{
        f"{metric}_us_{kind}": f"{name}, {STATISTIC_NAMES[kind]}"
        for metric, name in METRICS.items()
        for kind in STATISTICS
    },
}
TRACE_QUANTITIES = {
    "span": "Duration of the scenario",
    "nodes": "Nodes",
    "max_at_once": "Nodes present at once, most",
    **{f"activity_{kind}": f"Activity of a node, {STATISTIC_NAMES[kind]}" for kind in STATISTICS},
    "contacts": "Contacts",
    **{
        f"duration_{kind}": f"Duration of a contact, {STATISTIC_NAMES[kind]}" for kind in STATISTICS
    },
}
MESSAGES = (*PROCESSING[:2], "reach", *PROCESSING[2:])
BUFFERS = ("again", "evictions", "held_us_avg", "dropped", "waiting", "frames_aborted")
AGES = ("delivered_delay_us_avg", "latency_us_avg", "age_us_avg")
UNEXPLAINED = "Not explained yet."
MARKS: dict[bool | None, Mark] = {True: "met", False: "missed", None: ""}

GROUP_HEAD = "Protocol, lifetime"

Show = Callable[[float], str]
Claims = Mapping[tuple[int | None, str], Compared]


def by_place(claims: Iterable[Compared]) -> dict[tuple[int | None, str], Compared]:
    return {(claim.lifetime_us, claim.quantity): claim for claim in claims}


def processing_table(groups: Sequence[RunGroup], claims: Claims, number: str) -> Table:
    """Return the table of message counts (OPP, Tables II and V)."""
    return _grouped_table(
        "processing",
        _titled("What became of the messages", number),
        groups,
        MESSAGES,
        [QUANTITIES[quantity] for quantity in MESSAGES],
        claims,
        is_wide=True,
    )


def buffer_table(groups: Sequence[RunGroup]) -> Table:
    """Return the table of what the sizes of the buffers and the ends of the contacts cost."""
    heads = [QUANTITIES[quantity] for quantity in BUFFERS]
    title = "Buffers and links"
    return _grouped_table("buffers", title, groups, BUFFERS, heads, {}, is_wide=True)


def age_table(groups: Sequence[RunGroup]) -> Table:
    """Return the table in which the delay and the latency of delivered messages add up to the
    age."""
    unit, show = time_column(groups, AGES[0])
    rows = tuple(
        (
            Cell(name_group(group)),
            *(mean_cell(group, quantity, show) for quantity in AGES),
        )
        for group in groups
    )
    data = pd.DataFrame([_machine_row(group, q, None) for group in groups for q in AGES])
    heads = (GROUP_HEAD, *(f"{name}{unit}" for name in ("Delay", "+ Latency", "= Age")))
    notes = interval_note(groups)
    return Table("ages", "Averages of delivered messages", heads, rows, data, notes)


def delay_tables(groups: Sequence[RunGroup], claims: Claims, number: str) -> tuple[Table, ...]:
    """Return the tables of transmission delay, delivery latency and their sum (OPP, Tables III and
    VI)."""
    return tuple(
        _grouped_table(
            metric,
            _titled(name, number),
            groups,
            [f"{metric}_us_{kind}" for kind in STATISTICS],
            [kind.capitalize() for kind in STATISTICS],
            claims,
        )
        for metric, name in METRICS.items()
    )


def _grouped_table(
    slug: str,
    title: str,
    groups: Sequence[RunGroup],
    quantities: Sequence[str],
    heads: Sequence[str],
    claims: Claims,
    *,
    is_wide: bool = False,
) -> Table:
    shows = [_column(groups, name) for name in quantities]
    rows = tuple(
        (
            Cell(name_group(group)),
            *(
                _cell(group, name, _claim(claims, group, name), show)
                for name, (_, show) in zip(quantities, shows, strict=True)
            ),
        )
        for group in groups
    )
    flat = [(g, name, _claim(claims, g, name)) for g in groups for name in quantities]
    return Table(
        slug=slug,
        title=title,
        head=(GROUP_HEAD, *(f"{head}{unit}" for head, (unit, _) in zip(heads, shows, strict=True))),
        rows=rows,
        data=pd.DataFrame([_machine_row(*place) for place in flat]),
        notes=(*_excuses(claim for *_, claim in flat), *interval_note(groups)),
        is_wide=is_wide,
    )


def name_group(group: RunGroup, *, with_point: bool = True) -> str:
    """Return the protocol, the lifetime and the point of the sweep, which together identify a
    row."""
    found = find_protocol(group.protocol)
    protocol = (found and found.label) or group.protocol
    lifetime = "no lifetime" if group.lifetime_us is None else group.label
    point = (group.point,) if group.point and with_point else ()
    return ", ".join((protocol, lifetime, *point))


def interval_note(groups: Sequence[RunGroup]) -> tuple[str, ...]:
    """Return the note that explains the ± in a table."""
    most = max((len(group.runs) for group in groups), default=0)
    if most < 2 or not all(group.is_replicated for group in groups):
        return ()
    return (f"Means over {most} seeds, ± half of their 95 % confidence interval (Student's t).",)


def _column(groups: Sequence[RunGroup], quantity: str) -> tuple[str, Show]:
    """Return the unit to append to a column's heading, and the format of its values."""
    if quantity in (*RATIOS, "reach"):
        return "", show_ratio
    if "_us_" not in quantity:
        return "", show_count
    return time_column(groups, quantity)


def time_column(groups: Sequence[RunGroup], quantity: str) -> tuple[str, Show]:
    """Return the unit to append to a column's heading, and the format of its values.

    A quantity has one unit on the whole page, that of its average: delays and ages have the same.
    Only minima, which are far smaller, have their own.
    """
    unit_from = quantity
    if not quantity.endswith("_min"):
        measure = next((m for m in DELAYS if quantity.startswith(f"{m}_us")), "")
        of = "latency" if measure == "latency" else "delay"
        unit_from = f"{of}_us_avg" if measure else quantity
    return column_unit([group.mean(unit_from) for group in groups], TIMES_US)


def column_unit(values: Sequence[float], units: Mapping[str, float]) -> tuple[str, Show]:
    """Return the unit to append to a column's heading, and the format of values in that unit."""
    unit, size = unit_of(values, units)
    return f" ({unit})", In(size)


def _claim(claims: Claims, group: RunGroup, quantity: str) -> Compared | None:
    is_paper = is_of_the_paper(group.protocol)
    return claims.get((group.lifetime_us, quantity)) if is_paper else None


def _cell(group: RunGroup, quantity: str, claim: Compared | None, show: Show) -> Cell:
    if group.lifetime_us is None and quantity.startswith("exp"):
        return Cell("–")  # without a lifetime no message can expire
    ours, spread = show_interval(group.mean(quantity), group.margin(quantity), show)
    if claim is None:
        return Cell(ours, spread=spread)
    return Cell(ours, show(claim.published), _difference(claim), MARKS[claim.is_met], spread)


def mean_cell(group: RunGroup, quantity: str, show: Show) -> Cell:
    """Return the mean over the seeds, rounded to what its interval allows."""
    text, spread = show_interval(group.mean(quantity), group.margin(quantity), show)
    return Cell(text, spread=spread)


def _difference(claim: Compared) -> str:
    show = show_points if claim.quantity in RATIOS else show_difference
    return show(claim.ours, claim.published)


def _excuses(claims: Iterable[Compared | None]) -> tuple[str, ...]:
    """Return one note for each quantity and reason, not one for each lifetime."""
    missed: dict[tuple[str, str], list[Compared]] = {}
    for claim in claims:
        if claim and claim.is_met is False:
            reason = claim.claim.note or UNEXPLAINED
            missed.setdefault((claim.quantity, reason), []).append(claim)
    return tuple(
        f"{QUANTITIES[quantity]}, outside {found[0].claim.tolerance}: "
        + ", ".join(f"{show_lifetime(c.lifetime_us)} {_difference(c)}" for c in found)
        + f". {reason}"
        for (quantity, reason), found in missed.items()
    )


def _machine_row(group: RunGroup, quantity: str, claim: Compared | None) -> dict[str, object]:
    values = group.values(quantity)
    return {
        "protocol": group.protocol,
        "lifetime_us": group.lifetime_us,
        **({"point": group.point} if group.point else {}),
        "quantity": quantity,
        "seeds": len(values),
        "ours": group.mean(quantity),
        "ours_min": min(values),
        "ours_max": max(values),
        "ours_ci95": group.margin(quantity),
        "published": claim.published if claim else None,
        "difference": claim.ours - claim.published if claim else None,
        "tolerance": (claim.claim.tolerance or None) if claim else None,
        "is_met": claim.is_met if claim else None,
    }


def trace_table(ours: Mapping[str, float], paper: Paper | None) -> Table:
    """Return the statistics of the mobility trace (OPP, Tables I and IV)."""
    published = paper.trace if paper else {}
    rows, data = [], []
    for quantity, name in TRACE_QUANTITIES.items():
        show = show_count if quantity in COUNTS_OF_A_TRACE else show_time
        published_value = published.get(quantity)
        row = [Cell(name), Cell(show(ours[quantity]))]
        if published_value is not None:
            row += [
                Cell(show(published_value)),
                Cell(show_difference(ours[quantity], published_value)),
            ]
        rows.append(tuple(row))
        data.append({"quantity": quantity, "ours": ours[quantity], "published": published_value})
    beside = ("Ours", "Published", "Difference") if paper else ("Value",)
    number = paper.tables["trace"] if paper else ""
    frame = pd.DataFrame(data).dropna(axis="columns", how="all")
    if not paper:
        frame = frame.rename(columns={"ours": "value"})
    return Table("trace", _titled("The mobility trace", number), ("", *beside), tuple(rows), frame)


def ordering_table(orderings: Sequence[Ordering]) -> Table:
    """Return the table that ranks the lifetimes by each quantity."""
    orderings = sorted(orderings, key=lambda found: list(QUANTITIES).index(found.quantity))
    rows = tuple(
        (
            Cell(QUANTITIES[found.quantity]),
            Cell(found.published, mark="met")
            if found.is_met
            else Cell(found.ours, found.published, mark="missed"),
        )
        for found in orderings
    )
    notes = tuple(
        f"{QUANTITIES[found.quantity]}: {found.reason or UNEXPLAINED}"
        for found in orderings
        if not found.is_met
    )
    columns = ["quantity", "published", "ours", "is_met"]
    data = pd.DataFrame([{name: getattr(o, name) for name in columns} for o in orderings])
    head = ("Quantity", "Lifetimes, from most to least")
    return Table("orderings", "Every row of the tables", head, rows, data, notes, words=(0, 1))


def share_table(claims: Sequence[ComparedShare]) -> Table:
    """Return the table of the paper's sentences about its distributions."""
    rows = tuple(
        (
            Cell(show_lifetime(claim.quantile.lifetime_us)),
            Cell(
                f"{METRICS[claim.quantile.claim.metric]} below {show_time(claim.quantile.limit_us)}"
            ),
            Cell(
                f"{100 * claim.ours:.1f} %",
                f"{100 * claim.published:g} %",
                show_points(claim.ours, claim.published),
            ),
        )
        for claim in claims
    )
    data = pd.DataFrame([claim.row for claim in claims])
    head = ("Lifetime", "Messages with a", "Share")
    return Table("shares", "Shares below a limit", head, rows, data, words=(0, 1))


def _titled(name: str, number: str) -> str:
    return f"Table {number}: {name}" if number else name
