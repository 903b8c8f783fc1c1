"""The tables of the opportunistic papers: our values, with the published ones where they exist."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import pandas as pd

from beforehand.papers.opportunistic import COUNTS_OF_A_TRACE, PROCESSING, Paper
from beforehand.protocols.registry import find_protocol
from beforehand.report.content import Cell, Mark, Table
from beforehand.report.datasets import STATISTICS
from beforehand.report.notation import (
    SIZES_B,
    TIMES_US,
    show_count,
    show_difference,
    show_lifetime,
    show_plain,
    show_points,
    show_ratio,
    show_time,
    unit_of,
)
from beforehand.report.opportunistic.compare import RATIOS, Claim, Ordering, ShareClaim
from beforehand.report.opportunistic.measured import Group, is_of_the_paper

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
UNEXPLAINED = "Not explained yet."
MARKS: dict[bool | None, Mark] = {True: "met", False: "missed", None: ""}

WHO = "Protocol, lifetime"

Show = Callable[[float], str]
Claims = Mapping[tuple[int | None, str], Claim]


def by_place(claims: Iterable[Claim]) -> dict[tuple[int | None, str], Claim]:
    return {(claim.lifetime_us, claim.quantity): claim for claim in claims}


def processing_table(groups: Sequence[Group], claims: Claims, number: str) -> Table:
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


def delay_tables(groups: Sequence[Group], claims: Claims, number: str) -> tuple[Table, ...]:
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
    groups: Sequence[Group],
    quantities: Sequence[str],
    heads: Sequence[str],
    claims: Claims,
    *,
    is_wide: bool = False,
) -> Table:
    shows = [_column(groups, name, claims) for name in quantities]
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
        head=(WHO, *(f"{head}{unit}" for head, (unit, _) in zip(heads, shows, strict=True))),
        rows=rows,
        data=pd.DataFrame([_machine_row(*place) for place in flat]),
        notes=(*_excuses(claim for *_, claim in flat), *interval_note(groups)),
        is_wide=is_wide,
    )


def name_group(group: Group) -> str:
    """Return the protocol and the lifetime, which together identify a row."""
    found = find_protocol(group.protocol)
    protocol = (found and found.label) or group.protocol
    return f"{protocol}, {'no lifetime' if group.lifetime_us is None else group.label}"


def interval_note(groups: Sequence[Group]) -> tuple[str, ...]:
    """Return the note that explains the ± in a table."""
    most = max((len(group.runs) for group in groups), default=0)
    if most < 2:
        return ()
    return (f"Means over {most} seeds, ± half of their 95 % confidence interval (Student's t).",)


def _column(groups: Sequence[Group], quantity: str, claims: Claims) -> tuple[str, Show]:
    """Return the unit to append to a column's heading, and the format of its values."""
    if quantity in (*RATIOS, "reach"):
        return "", show_ratio
    if "_us_" not in quantity:
        return "", show_count
    published = [claim.published for (_, name), claim in claims.items() if name == quantity]
    values = [group.mean(quantity) for group in groups]
    return column_unit([*values, *published], TIMES_US)


def column_unit(values: Sequence[float], units: Mapping[str, float]) -> tuple[str, Show]:
    """Return the unit to append to a column's heading, and the format of values in that unit."""
    unit, size = unit_of(values, units)
    return f" ({unit})", lambda value: show_plain(value / size)


def _claim(claims: Claims, group: Group, quantity: str) -> Claim | None:
    is_paper = is_of_the_paper(group.protocol)
    return claims.get((group.lifetime_us, quantity)) if is_paper else None


def _cell(group: Group, quantity: str, claim: Claim | None, show: Show) -> Cell:
    if group.lifetime_us is None and quantity.startswith("exp"):
        return Cell("–")  # without a lifetime no message can expire
    spread = show_margin(group, quantity, show)
    if claim is None:
        return Cell(show(group.mean(quantity)), spread=spread)
    ours, theirs = show(claim.ours), show(claim.published)
    return Cell(ours, theirs, _difference(claim), MARKS[claim.is_met], spread)


def show_margin(group: Group, quantity: str, show: Show) -> str:
    """Format the margin as `± 3`; empty for one seed or equal values."""
    margin = group.margin(quantity)
    return f"± {show(margin)}" if margin else ""


def _difference(claim: Claim) -> str:
    show = show_points if claim.quantity in RATIOS else show_difference
    return show(claim.ours, claim.published)


def _excuses(claims: Iterable[Claim | None]) -> tuple[str, ...]:
    """Return one note for each quantity and reason, not one for each lifetime."""
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
        "ours_ci95": group.margin(quantity),
        "published": claim.published if claim else None,
        "difference": claim.ours - claim.published if claim else None,
        "tolerance": str(claim.tolerance) if claim and claim.tolerance else None,
        "is_met": claim.is_met if claim else None,
    }


def trace_table(ours: Mapping[str, float], paper: Paper | None) -> Table:
    """Return the statistics of the mobility trace (OPP, Tables I and IV)."""
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


def share_table(claims: Sequence[ShareClaim]) -> Table:
    """Return the table of the paper's sentences about its distributions."""
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
            *(
                Cell(show(group.mean(name)), spread=show_margin(group, name, show))
                for name, (_, (_, show)) in columns.items()
            ),
        )
        for group in groups
    )
    data = pd.DataFrame(
        {
            "protocol": group.protocol,
            "lifetime_us": group.lifetime_us,
            "seeds": len(group.runs),
            **{name: group.mean(name) for name in columns},
            **{f"{name}_ci95": group.margin(name) for name in columns},
        }
        for group in groups
    )
    head = (WHO, "Seeds", *(f"{name}{unit}" for name, (unit, _) in columns.values()))
    notes = interval_note(groups)
    return Table("cost", "By protocol and lifetime", head, rows, data, notes, is_wide=True)


def run_table(groups: Sequence[Group]) -> Table:
    """Return the table of single runs, with measurements and verdicts."""
    singles = [
        (group, Group(group.protocol, group.lifetime_us, (run,)), run)
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
    head = (WHO, "Seed", *(name for name, _ in columns.values()), "Verdict")
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


def _titled(name: str, number: str) -> str:
    return f"Table {number}: {name}" if number else name
