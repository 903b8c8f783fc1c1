"""Compare the single values in the text of VCU with our runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

import numpy as np
import pandas as pd

from beforehand.papers.claims import Claim, read_claims
from beforehand.report.content import Cell, Table
from beforehand.report.notation import show_difference
from beforehand.report.vcube.data import UT_US, OverlayResults

AGGREGATED, PLAIN, SINGLE = "aggregated", "plain", "single"


def statement_table(overlay: OverlayResults) -> Table | None:
    """Return a table with one row for each sentence that our runs can measure."""
    rows, data = [], []
    for claim in statements():
        if claim.published is None or not _answers(overlay, claim.runs):
            continue
        ours, published_value = STATEMENTS[claim.key](overlay), claim.published
        difference = (
            f"{ours - published_value:+.1f} pt".replace("-", "−")
            if claim.unit == "%"
            else show_difference(ours, published_value)
        )
        values = (Cell(f"{value:.3g} {claim.unit}".strip()) for value in (ours, published_value))
        rows.append((Cell(claim.text), Cell(claim.figure), *values, Cell(difference)))
        data.append((claim.key, claim.figure, ours, published_value, claim.unit))
    if not rows:
        return None
    head = ("What", "Figure", "Ours", "Published", "Difference")
    frame = pd.DataFrame(data, columns=["key", "figure", "ours", "published", "unit"])
    return Table(
        "said", "Statement of the paper", head, tuple(rows), frame, words=(0, 1), is_wide=True
    )


def statements() -> list[Claim]:
    """Return the claims of the text that have one published number each."""
    return [claim for claim in read_claims("vcube") if claim.comparison == "beside"]


def _answers(overlay: OverlayResults, needs: Sequence[str]) -> bool:
    """Return whether the required runs exist: sizes, `single`, or messages of 5 bytes (`5B`)."""
    there = {str(nodes) for nodes in overlay.sizes} | set(overlay.runs["system"])
    there |= {f"{size}B" for size in overlay.runs["payload_bytes"].unique()}
    return set(needs) <= there


def _less(overlay: OverlayResults, quantity: str, nodes: int, one: str, other: str) -> float:
    """Return by how many per cent `one` is below `other`."""
    ours, base = overlay.means(one, quantity), overlay.means(other, quantity)
    return 100 * (1 - ours[nodes] / base[nodes])


def _least_fewer(overlay: OverlayResults, quantity: str) -> float:
    """Return the smallest reduction of one tree against many, over the sizes with non-zero
    values."""
    single, many = overlay.means(SINGLE, quantity), overlay.means(AGGREGATED, quantity)
    return min(
        100 * (1 - single[nodes] / many[nodes]) for nodes in single if nodes > 8 and many[nodes]
    )


def _growth(overlay: OverlayResults, system: str, quantity: str) -> float:
    means = overlay.means(system, quantity)
    return means[1024] / means[8]


def _apart(overlay: OverlayResults) -> float:
    """Return the largest difference of the two systems' delivery latencies, up to 512 nodes."""
    return max(
        abs(_less(overlay, "delivery_us_avg", nodes, AGGREGATED, PLAIN))
        for nodes in overlay.sizes
        if nodes <= 512
    )


def _pair_later(overlay: OverlayResults) -> float:
    ours = overlay.means(AGGREGATED, "pair_reception_us_avg")
    base = overlay.means(PLAIN, "pair_reception_us_avg")
    return max(100 * (ours[nodes] / base[nodes] - 1) for nodes in ours if nodes > 8)


def _pair_held(overlay: OverlayResults, nodes: int) -> float:
    held = {
        system: overlay.means(system, "pair_delivery_us_avg")[nodes]
        - overlay.means(system, "pair_reception_us_avg")[nodes]
        for system in (AGGREGATED, PLAIN)
    }
    return 100 * (1 - held[AGGREGATED] / held[PLAIN])


def _nodes_with(
    overlay: OverlayResults,
    histogram: str,
    system: str,
    least: int,
    most: int,
    payload_bytes: int | None = None,
) -> float:
    """Return how many of 1024 nodes lie in a range, on average over the seeds."""
    found = overlay.histogram(histogram, system, 1024, payload_bytes)
    return float(found.within(least, most).mean())


def _larger(overlay: OverlayResults) -> float:
    """Return the share of aggregated packets that are larger than every plain packet of the
    seed."""
    ours, plain = (overlay.histogram("size", system, 256) for system in (AGGREGATED, PLAIN))
    is_larger = ours.values > plain.most()[:, None]
    larger = np.where(is_larger, ours.counts, 0).sum(axis=1)
    return float((100 * larger / ours.counts.sum(axis=1)).mean())


def _over(overlay: OverlayResults, size: int) -> float:
    return fmean(overlay.histogram("size", AGGREGATED, 256).shares(size + 1))


def _most(overlay: OverlayResults, histogram: str, nodes: int) -> float:
    """Return the largest value of a seed, on average over the seeds."""
    return float(overlay.histogram(histogram, AGGREGATED, nodes).most().mean())


STATEMENTS: dict[str, Callable[[OverlayResults], float]] = {
    "single_packed_fewer": lambda o: _least_fewer(o, "packed"),
    "single_delayed_fewer": lambda o: _least_fewer(o, "delayed"),
    "causes_max": lambda o: _most(o, "causes", 256),
    "larger_than_plain": _larger,
    "over_1400": lambda o: _over(o, 1400),
    "reception_growth_aggregated": lambda o: _growth(o, AGGREGATED, "reception_us_avg"),
    "reception_growth_plain": lambda o: _growth(o, PLAIN, "reception_us_avg"),
    "longest_growth_aggregated": lambda o: _growth(o, AGGREGATED, "reception_us_max"),
    "longest_growth_plain": lambda o: _growth(o, PLAIN, "reception_us_max"),
    "reception_later_256": lambda o: -_less(o, "reception_us_avg", 256, AGGREGATED, PLAIN),
    "reception_sooner_1024": lambda o: _less(o, "reception_us_avg", 1024, AGGREGATED, PLAIN),
    "delivery_apart_512": _apart,
    "delivery_sooner_1024": lambda o: _less(o, "delivery_us_avg", 1024, AGGREGATED, PLAIN),
    "held_shorter_16": lambda o: _less(o, "held_us_avg", 16, AGGREGATED, PLAIN),
    "held_shorter_1024": lambda o: _less(o, "held_us_avg", 1024, AGGREGATED, PLAIN),
    "queue_longer_1024": lambda o: -_less(o, "queue_us_avg", 1024, PLAIN, AGGREGATED),
    "queue_1024": lambda o: o.means(PLAIN, "queue_us_avg")[1024] / UT_US,
    "pair_reception_later": _pair_later,
    "pair_held_shorter_512": lambda o: _pair_held(o, 512),
    "pair_held_shorter_64": lambda o: _pair_held(o, 64),
    "buffer_50_aggregated": lambda o: _nodes_with(o, "buffered", AGGREGATED, 0, 50),
    "buffer_250_aggregated": lambda o: _nodes_with(o, "buffered", AGGREGATED, 251, 1024),
    "buffer_250_plain": lambda o: _nodes_with(o, "buffered", PLAIN, 251, 1024),
    "packed_7_11": lambda o: _nodes_with(o, "most_packed", AGGREGATED, 7, 11) / 10.24,
    "packed_max": lambda o: _most(o, "most_packed", 1024),
    "packed_8_12_small": lambda o: _nodes_with(o, "most_packed", AGGREGATED, 8, 12, 5) / 10.24,
}
