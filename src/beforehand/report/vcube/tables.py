"""VCU tables 1 to 3 and the sentences of its text, beside our values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

import pandas as pd

from beforehand.papers.claims import find_claim
from beforehand.papers.vcube import Published, number
from beforehand.report.content import Cell, Table
from beforehand.report.notation import show_count, show_difference, show_spread
from beforehand.report.vcube.data import Found, OverlayResults, machine_rows

FOCUS = 256
"""The number of nodes of Tables 2 and 3 and of figure 6."""
QUANTITIES = {
    "reduction": " nodes, reduction",
    "packed": " nodes, with several messages",
    "of_all": ", of all packets",
    "of_packed": ", of those with several",
    "plain": " bytes, without aggregation",
    "aggregated": " bytes, with aggregation",
    "share": " causes",
}
TRIED_SHARES = ("worst", "causes_none", "causes_many")


def packet_claims(overlay: OverlayResults, published: Published) -> list[Found]:
    """Return Table 1: for each size the reduction, and the share of packets with several
    messages."""
    rows = {int(row["nodes"]): row for row in published.table("packets")}
    claim = find_claim("vcube", "table-1")
    return [
        Found(
            str(nodes),
            quantity,
            values,
            claim.about(number(rows[nodes][quantity]) if nodes in rows else None),
        )
        for nodes in overlay.sizes
        for quantity, values in _packet_shares(overlay, nodes)
    ]


def _packet_shares(overlay: OverlayResults, nodes: int) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Yield the values per seed: both systems of a seed used the same random numbers."""
    both = overlay.of("aggregated", nodes).merge(
        overlay.of("plain", nodes), on="seed", suffixes=("", "_plain")
    )
    yield "reduction", tuple(100 * (1 - both["packets"] / both["packets_plain"]))
    yield "packed", tuple(100 * both["packed"] / both["packets"])


def packet_table(overlay: OverlayResults, published: Published) -> Table:
    claims = packet_claims(overlay, published)
    rows = {int(row["nodes"]): row for row in published.table("packets")}
    shown = []
    for nodes, reduction, packed in zip(overlay.sizes, claims[::2], claims[1::2], strict=True):
        counts = []
        for system in ("plain", "aggregated"):
            ours = overlay.of(system, nodes)["packets"].tolist()
            published_value = float(rows[nodes][system]) if nodes in rows else None
            counts.append(_count_cell(ours, published_value))
        shown.append((Cell(str(nodes)), *counts, reduction.share_cell(), packed.share_cell()))
    head = ("Nodes", "Without aggregation", "With", "Reduction", "With several messages")
    return Table(
        "table-1",
        "Table 1: packets sent",
        head,
        tuple(shown),
        machine_rows(claims),
        notes=_outside(claims),
        is_wide=True,
    )


def _count_cell(values: Sequence[float], published_value: float | None) -> Cell:
    ours, spread = fmean(values), show_spread(values, "{:,.0f}")
    if published_value is None:
        return Cell(show_count(ours), spread=spread)
    difference = show_difference(ours, published_value)
    return Cell(show_count(ours), show_count(published_value), difference, spread=spread)


def _outside(claims: Sequence[Found]) -> tuple[str, ...]:
    missed = [claim for claim in claims if claim.is_met is False]
    if not missed:
        return ()
    listed = "; ".join(
        f"{claim.place}{QUANTITIES[claim.quantity]} {claim.difference:+.2f}".replace("-", "−")
        for claim in missed
    )
    return (
        f"Outside {missed[0].claim.tolerance}: {listed}. The fits tried are at the end of "
        "this page.",
    )


def per_packet_table(overlay: OverlayResults, published: Published, nodes: int) -> Table:
    """Return Table 2: the number of messages per packet."""
    packets = overlay.histogram("per_packet", "aggregated", nodes)
    claim, claims = find_claim("vcube", "table-2"), []
    for row in published.table("per_packet"):
        name, least, most = _range_of(row)
        for quantity, of in (("of_all", 1), ("of_packed", 2)):
            if least >= of:
                published_value = _published(row, quantity, nodes)
                values = packets.shares(least, most, of=of)
                claims.append(Found(name, quantity, values, claim.about(published_value)))
    head = ("Messages", "Of all packets", "Of those with several")
    title = f"Table 2: messages per packet, {nodes} nodes"
    return _range_table("table-2", title, head, claims, ("of_all", "of_packed"))


def size_table(overlay: OverlayResults, published: Published, nodes: int) -> Table:
    """Return Table 3: the sizes of the packets."""
    claim, claims = find_claim("vcube", "table-3"), []
    for row in published.table("sizes"):
        name, least, most = _range_of(row)
        for system in ("plain", "aggregated"):
            published_value = _published(row, system, nodes)
            values = overlay.histogram("size", system, nodes).shares(least, most)
            claims.append(Found(name, system, values, claim.about(published_value)))
    head = ("Bytes", "Without aggregation", "With")
    title = f"Table 3: sizes of the packets, {nodes} nodes"
    return _range_table("table-3", title, head, claims, ("plain", "aggregated"))


def cause_table(overlay: OverlayResults, published: Published, nodes: int) -> Table:
    """Return the values that the text states about figure 6."""
    claim, claims = find_claim("vcube", "causes"), []
    for row in published.table("causes"):
        name, least, most = _range_of(row)
        published_value = _published(row, "share", nodes)
        values = overlay.histogram("causes", "aggregated", nodes).shares(least, most)
        claims.append(Found(name, "share", values, claim.about(published_value)))
    title = f"Causes that a message carries, {nodes} nodes"
    return _range_table("causes", title, ("Causes", "Messages"), claims, ("share",))


def _published(row: dict[str, str], column: str, nodes: int) -> float | None:
    """Return a published value; None for another size than that of the paper's table."""
    return number(row[column]) if nodes == FOCUS else None


def _range_of(row: dict[str, str]) -> tuple[str, int, int | None]:
    least, most = int(row["least"]), int(row["most"]) if row["most"] else None
    if most is None:
        return f"{least} and more", least, None
    return (str(least) if least == most else f"{least} to {most}"), least, most


def _range_table(
    slug: str,
    title: str,
    head: tuple[str, ...],
    claims: Sequence[Found],
    quantities: tuple[str, ...],
) -> Table:
    cells = {(claim.place, claim.quantity): claim.share_cell() for claim in claims}
    places = list(dict.fromkeys(claim.place for claim in claims))
    rows = tuple(
        (Cell(place), *(cells.get((place, name), Cell("–")) for name in quantities))
        for place in places
    )
    notes = _outside(claims)
    is_wide = len(quantities) > 1
    return Table(slug, title, head, rows, machine_rows(claims), notes, is_wide=is_wide)


def tried_table(published: Published) -> Table:
    """Return the table of the distributions that were tried where the paper leaves them open."""
    tried = published.table("tried")
    rows = tuple(
        (
            Cell(row["starts"]),
            Cell(row["deviation"]),
            *(Cell(f"{float(row[name]):+.2f} pt".replace("-", "−")) for name in TRIED_SHARES),
            Cell(f"{float(row['causes_max']):.1f}", "54"),
        )
        for row in tried
    )
    head = (
        "Broadcast times (u.t.)",
        "Deviation of a hop",
        "Worst of Table 1",
        "Without a cause",
        "More than 12 causes",
        "Most causes",
    )
    return Table(
        "tried",
        "What was tried",
        head,
        rows,
        pd.DataFrame(tried),
        words=(0, 1),
        is_wide=True,
        notes=("5 seeds, 16 to 256 nodes, by benchmarks/fit_vcube.py.",),
    )
