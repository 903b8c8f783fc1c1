"""The page about hosts that walk between cells: the verdict, the MOB and MOB-TR claims, figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

import pandas as pd

from beforehand.interval import margin_of
from beforehand.papers.claims import read_claims, read_source
from beforehand.report.content import TILE_MARKS, Cell, Mark, Page, Section, Table, Tile, Verdict
from beforehand.report.mobile.claims import Judged, claims_table, judge_all
from beforehand.report.mobile.data import RUN, SYSTEMS, CellResults, read_cells
from beforehand.report.mobile.figures import (
    buffer_figures,
    report_figures,
    sent_figures,
    throughput_figure,
)
from beforehand.report.mobile.readings import readings_section
from beforehand.report.notation import TIMES_US, show_count, show_plain, unit_of

COLUMNS = {
    "delay_us_avg": "Delay",
    "lost_percent": "Lost (%)",
    "heard_lost_percent": "Lost in range (%)",
    "kept_avg": "Kept",
    "early_avg": "Early",
    "sent_per_delivery": "Frames per delivery",
}
INTERVALS = tuple(f"{name}_ci95" for name in COLUMNS)
Figures = Mapping[str, Sequence[float]]
"""One value per seed, by column of the runs."""


def build_mobile_page(directory: Path) -> Page:
    """Build the page from the datasets `cells_...` in this folder."""
    cells = read_cells(directory)
    claims = read_claims("mobile")
    readings = cells.readings()
    first = cells.under(readings[0])
    judged = judge_all(first, claims)
    sections = tuple(_sections(first, judged))
    if len(readings) > 1:
        sections = (readings_section(cells, claims), *sections)
    return Page(
        title=cells.scenario.title,
        subtitle=f"Scenario {cells.scenario.name}",
        verdict=_verdict(cells.runs),
        headline=_headline(cells.runs),
        summary=(
            "Hosts walk between the cells of stations and communicate with them by radio; the "
            "stations "
            "form a tree of wires. All systems of a seed see the same walks and the same "
            "broadcasts."
        ),
        tiles=_tiles(cells.runs, judged),
        sections=sections,
        footer=f"Written by Beforehand. Published figures: {read_source('mobile')}.",
    )


def _verdict(runs: pd.DataFrame) -> Verdict:
    if _wrong(runs):
        return "invalid"
    is_known = runs["deliveries"].sum() and not runs["broken"].sum()
    return "valid" if is_known else "unknown"


def _wrong(runs: pd.DataFrame) -> int:
    return int(runs["violations"].sum() + runs["duplicates"].sum())


def _headline(runs: pd.DataFrame) -> str:
    deliveries, broken = show_count(int(runs["deliveries"].sum())), int(runs["broken"].sum())
    if wrong := _wrong(runs):
        return f"{show_count(wrong)} of {deliveries} deliveries are wrong."
    if broken:
        return (
            f"All {deliveries} deliveries kept causal order, and none came twice. "
            f"{show_count(broken)} are missing at the end: lost, or still on their way where "
            "the load exceeds the capacity of the radio."
        )
    if not runs["deliveries"].sum():
        return "Nothing was delivered, so the order is unknown."
    return (
        f"All {deliveries} deliveries of {len(runs)} runs kept causal order, none came twice, and "
        "none is missing."
    )


def _tiles(runs: pd.DataFrame, judged: Sequence[Judged]) -> tuple[Tile, ...]:
    broken = int(runs["broken"].sum())
    tiles = [
        Tile(show_count(len(runs)), "runs"),
        Tile(show_count(int(runs["deliveries"].sum())), "deliveries checked"),
        Tile(show_count(broken), "wrong or missing", TILE_MARKS[_verdict(runs)]),
    ]
    known = [found.judgement for found in judged if found.judgement != "unknown"]
    if known:
        held = known.count("held")
        unknown = sum(found.is_covered for found in judged) - len(known)
        mark: Mark = "met" if held == len(known) else "missed"
        label = f"published claims held{f', {unknown} unknown' if unknown else ''}"
        tiles.append(Tile(f"{held} of {len(known)}", label, mark))
    return tuple(tiles)


def _sections(cells: CellResults, judged: Sequence[Judged]) -> Iterator[Section]:
    yield Section("What was run", SETTING, (_runs_table(cells),))
    if judged:
        others = _mac_table(cells) is not None
        prose = f"{CLAIMS} {OTHER_MACS if others else ONE_MAC} {UNKNOWN}"
        covered = [found for found in judged if found.is_covered]
        more = len(judged) - len(covered)
        rest = (NOT_COVERED.format(more),) if more else ()
        yield Section("Beside the papers", (prose, *rest), (claims_table(covered),))
    if figure := throughput_figure(cells):
        yield Section("Throughput", figures=(figure,))
    if figures := sent_figures(cells):
        yield Section("What is sent", figures=figures)
    if figures := buffer_figures(cells):
        yield Section("What stations keep", figures=figures)
    if figures := report_figures(cells):
        yield Section("The technical report", figures=figures)
    if (table := _mac_table(cells)) is not None:
        yield Section("The effect of the MAC", MACS, (table,))


def _runs_table(cells: CellResults) -> Table:
    runs = cells.runs.assign(rate_per_s=cells.runs["rate_per_s"].where(~cells.runs["is_search"]))
    groups = [
        (key, part, _figures(part)) for key, part in runs.groupby(RUN, sort=False, dropna=False)
    ]
    heads, sizes = _columns([figures for *_, figures in groups])
    rows, data = [], []
    for key, part, figures in groups:
        experiment, system, stations, hosts, rate, mac = key
        broken, seeds = int(part["broken"].sum()), part["seed"].nunique()
        shown_rate = "highest" if part["is_search"].any() else f"{rate:g}"
        mark: Mark = "missed" if broken else "met"
        words = (experiment, SYSTEMS[str(system)], stations, hosts, shown_rate, mac, seeds)
        wrong = Cell(show_count(broken), mark=mark)
        rows.append((*(Cell(str(word)) for word in words), *_cells(figures, sizes), wrong))
        data.append((*key, seeds, *_machine(figures), broken))
    names = ("Experiment", "System", "Stations", "Hosts", "Rate (1/s)", "MAC", "Seeds")
    head = (*names, *heads, "Wrong or missing")
    frame = pd.DataFrame(data, columns=[*RUN, "seeds", *COLUMNS, *INTERVALS, "broken"])
    return Table("runs", "Runs", head, tuple(rows), frame, words=(0, 1, 5), is_wide=True)


def _figures(part: pd.DataFrame) -> Figures:
    return {name: part[name].dropna().tolist() for name in COLUMNS}


def _columns(groups: Sequence[Figures]) -> tuple[list[str], list[float]]:
    """Return the heading of each column with its unit, and the size of that unit."""
    delays = [fmean(figures["delay_us_avg"]) for figures in groups if figures["delay_us_avg"]]
    unit, size = unit_of(delays, TIMES_US)
    heads = {**COLUMNS, "delay_us_avg": f"{COLUMNS['delay_us_avg']} ({unit})"}
    return list(heads.values()), [size if name == "delay_us_avg" else 1.0 for name in COLUMNS]


def _cells(figures: Figures, sizes: Sequence[float]) -> Iterator[Cell]:
    """Yield the mean of each column over the seeds, with its confidence interval."""
    for values, size in zip(figures.values(), sizes, strict=True):
        margin = margin_of(values)
        spread = f"± {show_plain(margin / size)}" if margin else ""
        yield Cell(show_plain(fmean(values) / size) if values else "–", spread=spread)


def _machine(figures: Figures) -> Iterator[float | None]:
    """Yield all means, then half of the confidence interval of each."""
    yield from (fmean(values) if values else None for values in figures.values())
    yield from map(margin_of, figures.values())


def _mac_table(cells: CellResults) -> Table | None:
    """Return a table of the experiments that were run with more than one MAC, if there are any."""
    counts = cells.runs.groupby("experiment")["mac"].nunique()
    chosen = [name for name in counts.index if counts[name] > 1]
    if not chosen:
        return None
    part_of = cells.runs[cells.runs["experiment"].isin(chosen)]
    keys = ["experiment", "system", "mac"]
    groups = [(key, _figures(part)) for key, part in part_of.groupby(keys, sort=False)]
    heads, sizes = _columns([figures for _, figures in groups])
    rows, data = [], []
    for key, figures in groups:
        name, system, mac = (str(word) for word in key)
        rows.append((*map(Cell, (name, SYSTEMS[system], mac)), *_cells(figures, sizes)))
        data.append((*key, *_machine(figures)))
    head = ("Experiment", "System", "MAC", *heads)
    frame = pd.DataFrame(data, columns=[*keys, *COLUMNS, *INTERVALS])
    return Table("macs", "By MAC", head, tuple(rows), frame, words=(0, 1, 2), is_wide=True)


SETTING = (
    "Delay is from a broadcast to a delivery, lost is the share of frames by radio that did "
    "not reach one that they were meant for, lost in range the same at all "
    "nodes in range, kept are messages in the send buffer of a station, "
    "early those in the receive buffer of a host. Means over the seeds, with "
    "half of their 95 % confidence interval (Student's t) where there are several. Highest: the "
    "rate was searched for.",
)
CLAIMS = "A range is as the papers print it; around a single figure it is a quarter up and down."
OTHER_MACS = (
    "The papers do not name their MAC: ours is the one that comes first in the table of the runs, "
    "and what others would change stands at the end of this page."
)
ONE_MAC = "The papers do not name their MAC; what another would change was not run here."
UNKNOWN = (
    "Runs of which deliveries are missing do not count: where it says 1 of 3, two have collapsed. "
    "Where our runs do not decide, the verdict is unknown."
)
NOT_COVERED = (
    "{} more claims about these experiments need systems, rates or sizes that this scenario does "
    "not run: mobile-figures and mobile-throughput have them."
)
MACS = (
    "dcf: carrier sense with backoff, as 802.11; csma: carrier sense, one draw; none: a node "
    "transmits without sensing the carrier.",
)
