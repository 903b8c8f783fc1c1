"""The tables of the opportunistic papers: ours, and where there is one the published figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import pandas as pd

from beforehand.papers.opportunistic import COUNTS_OF_A_TRACE, PROCESSING, Paper
from beforehand.report.content import Cell, Mark, Table
from beforehand.report.datasets import STATISTICS
from beforehand.report.notation import (
    show_bytes,
    show_count,
    show_difference,
    show_lifetime,
    show_points,
    show_ratio,
    show_time,
)
from beforehand.report.opportunistic.compare import RATIOS, Claim, Ordering, ShareClaim
from beforehand.report.opportunistic.measured import UNORDERED, Group

METRICS = {"delay": "Transmission delay", "latency": "Delivery latency", "age": "Age at delivery"}
STATISTIC_NAMES = {"min": "shortest", "max": "longest", "avg": "average", "stdev": "deviation"}
QUANTITIES = {
    "broadcasts": "Broadcast",
    "receptions": "Received",
    "deliveries": "Delivered",
    "delivery_ratio": "Delivery ratio",
    "expired": "Expired",
    "expiry_ratio": "Expiry ratio",
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
UNEXPLAINED = "Not explained yet."
MARKS: dict[bool | None, Mark] = {True: "met", False: "missed", None: ""}

Claims = Mapping[tuple[int | None, str], Claim]


def by_place(claims: Iterable[Claim]) -> dict[tuple[int | None, str], Claim]:
    return {(claim.lifetime_us, claim.quantity): claim for claim in claims}


def processing_table(groups: Sequence[Group], claims: Claims, number: str) -> Table:
    """What became of the messages (OPP, Tables II and V)."""
    return _grouped_table(
        "processing",
        _titled("What became of the messages", number),
        groups,
        PROCESSING,
        [QUANTITIES[quantity] for quantity in PROCESSING],
        claims,
        is_wide=True,
    )


def delay_tables(groups: Sequence[Group], claims: Claims, number: str) -> tuple[Table, ...]:
    """Transmission delay, delivery latency and their sum (OPP, Tables III and VI)."""
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
    groups: Sequence[Group],
    quantities: Sequence[str],
    heads: Sequence[str],
    claims: Claims,
    *,
    is_wide: bool = False,
) -> Table:
    places = [
        [(group, name, _claim(claims, group, name)) for name in quantities] for group in groups
    ]
    rows = tuple(
        (Cell(name_group(row[0][0])), *(_cell(group, name, claim) for group, name, claim in row))
        for row in places
    )
    flat = [place for row in places for place in row]
    return Table(
        slug=slug,
        title=title,
        head=("Lifetime", *heads),
        rows=rows,
        data=pd.DataFrame([_machine_row(*place) for place in flat]),
        notes=_excuses(claim for *_, claim in flat),
        is_wide=is_wide,
    )


def name_group(group: Group) -> str:
    """The lifetime; other protocols than the paper's two say which they are."""
    if group.protocol in ("causal", "delta"):
        return group.label
    protocol = "no order" if group.protocol == UNORDERED else group.protocol
    return f"{group.label} ({protocol})"


def _claim(claims: Claims, group: Group, quantity: str) -> Claim | None:
    is_paper = group.protocol in ("causal", "delta")
    return claims.get((group.lifetime_us, quantity)) if is_paper else None


def _cell(group: Group, quantity: str, claim: Claim | None) -> Cell:
    if group.lifetime_us is None and quantity.startswith("exp"):
        return Cell("–")  # without a lifetime nothing can expire
    show = shower(quantity)
    if claim is None:
        return Cell(show(group.mean(quantity)))
    return Cell(show(claim.ours), show(claim.published), _difference(claim), MARKS[claim.is_met])


def shower(quantity: str) -> Callable[[float], str]:
    """How figures of this quantity are printed."""
    if quantity in RATIOS:
        return show_ratio
    return show_time if "_us_" in quantity else show_count


def _difference(claim: Claim) -> str:
    show = show_points if claim.quantity in RATIOS else show_difference
    return show(claim.ours, claim.published)


def _excuses(claims: Iterable[Claim | None]) -> tuple[str, ...]:
    """One note for each quantity and reason, not one for each lifetime."""
    missed: dict[tuple[str, str], list[Claim]] = {}
    for claim in claims:
        if claim and claim.is_met is False:
            reason = claim.reason or UNEXPLAINED
            missed.setdefault((claim.quantity, reason), []).append(claim)
    return tuple(
        f"{QUANTITIES[quantity]}, outside {found[0].tolerance}: "
        + ", ".join(f"{show_lifetime(c.lifetime_us)} {_difference(c)}" for c in found)
        + f". {reason}"
        for (quantity, reason), found in missed.items()
    )


def _machine_row(group: Group, quantity: str, claim: Claim | None) -> dict[str, object]:
    values = group.values(quantity)
    return {
        "protocol": group.protocol,
        "lifetime_us": group.lifetime_us,
        "quantity": quantity,
        "seeds": len(values),
        "ours": group.mean(quantity),
        "ours_min": min(values),
        "ours_max": max(values),
        "published": claim.published if claim else None,
        "difference": claim.ours - claim.published if claim else None,
        "tolerance": str(claim.tolerance) if claim and claim.tolerance else None,
        "is_met": claim.is_met if claim else None,
    }


def trace_table(ours: Mapping[str, float], paper: Paper | None) -> Table:
    """The mobility trace in figures (OPP, Tables I and IV)."""
    published = paper.trace if paper else {}
    rows, data = [], []
    for quantity, name in TRACE_QUANTITIES.items():
        show = show_count if quantity in COUNTS_OF_A_TRACE else show_time
        theirs = published.get(quantity)
        row = [Cell(name), Cell(show(ours[quantity]))]
        if theirs is not None:
            row += [Cell(show(theirs)), Cell(show_difference(ours[quantity], theirs))]
        rows.append(tuple(row))
        data.append({"quantity": quantity, "ours": ours[quantity], "published": theirs})
    beside = ("Published", "Difference") if paper else ()
    number = paper.tables["trace"] if paper else ""
    frame = pd.DataFrame(data).dropna(axis="columns", how="all")
    return Table(
        "trace", _titled("The mobility trace", number), ("", "Ours", *beside), tuple(rows), frame
    )


def ordering_table(orderings: Sequence[Ordering]) -> Table:
    """Which lifetime has more of what."""
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


def share_table(claims: Sequence[ShareClaim]) -> Table:
    """What the paper says of its distributions, sentence by sentence."""
    rows = tuple(
        (
            Cell(show_lifetime(claim.lifetime_us)),
            Cell(f"{METRICS[claim.metric]} below {show_time(claim.limit_us)}"),
            Cell(
                f"{100 * claim.ours:.1f} %",
                f"{100 * claim.published:g} %",
                show_points(claim.ours, claim.published),
            ),
        )
        for claim in claims
    )
    columns = ["lifetime_us", "metric", "limit_us", "ours", "published"]
    data = pd.DataFrame([{name: getattr(c, name) for name in columns} for c in claims])
    head = ("Lifetime", "Messages with a", "Share")
    return Table("shares", "Shares below a limit", head, rows, data, words=(0, 1))


def cost_table(groups: Sequence[Group]) -> Table:
    """What was sent for it, by whom it was checked and what it took."""
    columns = {
        "frames": ("Frames sent", show_count),
        "bytes": ("Bytes sent", show_bytes),
        "past_entries_avg": ("Entries in a message", lambda value: f"{value:.1f}"),
        "violations": ("Violations", show_count),
        "cpu_s": ("Computing time", lambda value: show_time(value * 1e6)),
    }
    rows = tuple(
        (
            Cell(group.label),
            Cell(group.protocol),
            Cell(str(len(group.runs))),
            *(Cell(show(group.mean(name))) for name, (_, show) in columns.items()),
        )
        for group in groups
    )
    data = pd.DataFrame(
        {
            "protocol": group.protocol,
            "lifetime_us": group.lifetime_us,
            "seeds": len(group.runs),
            **{name: group.mean(name) for name in columns},
        }
        for group in groups
    )
    head = ("Lifetime", "Protocol", "Seeds", *(name for name, _ in columns.values()))
    return Table("cost", "By lifetime and protocol", head, rows, data, words=(0, 1), is_wide=True)


def _titled(name: str, number: str) -> str:
    return f"Table {number}: {name}" if number else name
