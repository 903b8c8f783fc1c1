"""Readings of MOB and MOB-TR side by side: the claims that each one holds, and those that conflict.

A reading is one way to fill in what the papers leave open (`pipeline.cells.experiments`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import pandas as pd

from beforehand.papers.claims import Claim
from beforehand.report.content import CLAIM_MARKS, Cell, Section, Table
from beforehand.report.mobile.claims import IN_RANGE, Judged, judge_all, show_value
from beforehand.report.mobile.data import CellResults

MEANT, RANGE = "at the receivers that are meant", "at all in range"
Row = tuple[str, str]
"""The key of a claim, and the count of losses with which it was judged."""


class ByReading(NamedTuple):
    """All verdicts under all readings."""

    rows: Mapping[Row, Claim]
    """A claim about losses has two rows, because the papers do not define their count."""
    found: Mapping[str, Mapping[Row, Judged]]
    """By reading; without the claims that the scenario does not cover."""

    def held(self, reading: str, losses: str = MEANT) -> set[str]:
        """Return the keys of the claims that a reading holds with this count of losses."""
        return {
            key
            for (key, count), judged in self.found[reading].items()
            if judged.judgement == "held" and (count == losses or (key, losses) not in self.rows)
        }


def judge_readings(cells: CellResults, claims: Sequence[Claim]) -> ByReading:
    """Judge every claim under every reading; the claims about losses with both counts."""
    found: dict[str, dict[Row, Judged]] = {}
    for reading in cells.readings():
        chosen = cells.under(reading)
        judged = {(item.claim.key, MEANT): item for item in judge_all(chosen, claims)}
        about_losses = [claim for claim in claims if claim.key in IN_RANGE]
        judged |= {
            (item.claim.key, RANGE): item for item in judge_all(chosen, about_losses, IN_RANGE)
        }
        found[reading] = {row: item for row, item in judged.items() if item.is_covered}
    known = {row for judged in found.values() for row in judged}
    order = [(claim, (claim.key, count)) for claim in claims for count in (MEANT, RANGE)]
    return ByReading({row: claim for claim, row in order if row in known}, found)


def readings_section(cells: CellResults, claims: Sequence[Claim]) -> Section:
    by_reading = judge_readings(cells, claims)
    tables = (_summary(cells, by_reading), _claims(by_reading), _conflicts(by_reading))
    return Section("Readings", tuple(_prose(by_reading, len(claims))), tables)


def _prose(by_reading: ByReading, claims: int) -> Iterator[str]:
    keys = {key for key, _ in by_reading.rows}
    best = max(by_reading.found, key=lambda name: len(by_reading.held(name)))
    union = set[str]().union(*(by_reading.held(name) for name in by_reading.found))
    yield (
        "A reading is one way to fill in what the papers leave open. Every reading has the same "
        "seeds, walks and broadcasts. A reading of which the evidence says that something was "
        "fitted had that chosen by the published numbers: that it holds them shows nothing."
    )
    yield (
        f"{len(keys)} of {claims} claims were run. The most that one reading holds are "
        f"{len(by_reading.held(best))} ({best}); {len(union)} are held by some reading. The papers "
        "do not say whether their losses are those at the receivers that a frame is meant for, or "
        "at all in range: both counts are shown for all claims about losses."
    )


def _summary(cells: CellResults, by_reading: ByReading) -> Table:
    about = cells.scenario.parameters.get("readings") or {}
    rows, data = [], []
    for reading, judged in by_reading.found.items():
        keys = {key for key, _ in judged}
        own = cells.under(reading).runs
        broken = int((own["broken"] > 0).sum())
        held = [len(by_reading.held(reading, losses)) for losses in (MEANT, RANGE)]
        evidence = str(about.get(reading, {}).get("evidence", ""))
        shown = (reading, *(f"{count} of {len(keys)}" for count in held), f"{broken} of {len(own)}")
        rows.append(tuple(map(Cell, (*shown, evidence))))
        data.append((reading, len(keys), *held, len(own), broken, evidence))
    columns = ["reading", "claims", "held_meant", "held_in_range", "runs", "collapsed", "evidence"]
    head = ("Reading", f"Held, losses {MEANT}", f"Held, losses {RANGE}", "Collapsed", "Evidence")
    frame = pd.DataFrame(data, columns=columns)
    return Table("readings", "Readings", head, tuple(rows), frame, words=(0, 4), is_wide=True)


def _claims(by_reading: ByReading) -> Table:
    """Return a row per claim with what each reading gives."""
    rows, data = [], []
    for row, claim in by_reading.rows.items():
        key, losses = row
        text = f"{claim.text} ({losses})" if (key, RANGE) in by_reading.rows else claim.text
        cells = [Cell(text), Cell(f"{claim.paper} {claim.figure}")]
        cells.append(Cell(f"{claim.bounds} {claim.unit}".strip()))
        for reading, judged in by_reading.found.items():
            found = judged.get(row)
            cells.append(_verdict(found))
            if found is not None:
                result = (found.ours, found.whole, found.runs, found.judgement)
                data.append((key, losses, reading, *result))
        rows.append(tuple(cells))
    columns = ["key", "losses", "reading", "ours", "whole", "runs", "verdict"]
    head = ("What", "Figure", "Held if", *by_reading.found)
    frame = pd.DataFrame(data, columns=columns)
    title = "Claims by reading"
    return Table("by-reading", title, head, tuple(rows), frame, words=(0, 1), is_wide=True)


def _verdict(found: Judged | None) -> Cell:
    if found is None:
        return Cell("–")
    shown = "–" if found.ours is None else show_value(found.ours, found.claim.unit)
    lost = found.runs - found.whole
    spread = f"{lost} of {found.runs} collapsed" if lost else ""
    return Cell(shown, mark=CLAIM_MARKS.get(found.judgement, ""), spread=spread)


def _conflicts(by_reading: ByReading) -> Table:
    """Return the claims that some reading holds, each with those that never hold beside it."""
    held = {reading: by_reading.held(reading) for reading in by_reading.found}
    keys = dict.fromkeys(key for key, _ in by_reading.rows)
    holders = {key: {name for name in held if key in held[name]} for key in keys}
    holders = {key: names for key, names in holders.items() if names}
    rivals: dict[str, list[str]] = {key: [] for key in holders}
    for one, other in combinations(holders, 2):
        if not holders[one] & holders[other]:
            rivals[one].append(other)
            rivals[other].append(one)
    rows, data = [], []
    for key, others in rivals.items():
        if others:
            names = [name for name in by_reading.found if name in holders[key]]
            shown = (key, ", ".join(names), ", ".join(others))
            rows.append(tuple(map(Cell, shown)))
            data.append(shown)
    columns = ["key", "held_by", "never_with"]
    head = ("Claim", "Held by", "Never together with")
    title = "Claims that no reading holds together"
    frame = pd.DataFrame(data, columns=columns)
    return Table("conflicts", title, head, tuple(rows), frame, words=(0, 1, 2), is_wide=True)
