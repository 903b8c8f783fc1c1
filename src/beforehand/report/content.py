"""The content of a page as data. The modules that build a page do not depend on HTML."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import altair as alt
import pandas as pd

Chart = alt.Chart | alt.LayerChart
Mark = Literal["met", "missed", ""]
Verdict = Literal["valid", "invalid", "unknown"]
CLAIM_MARKS: dict[str, Mark] = {"held": "met", "not held": "missed"}
"""The mark of a claim by its judgement; the other judgements have none."""
TILE_MARKS: dict[Verdict, Mark] = {"valid": "met", "invalid": "missed", "unknown": ""}
"""The mark of the tile that counts errors, so that it agrees with the headline."""


@dataclass(frozen=True)
class Cell:
    """One value, optionally with the published value and the difference."""

    text: str
    published: str = ""
    difference: str = ""
    mark: Mark = ""
    spread: str = ""
    """Half the confidence interval of the mean over the seeds, as text."""


@dataclass(frozen=True)
class Table:
    """A table as shown, and its content as plain numbers for programs."""

    slug: str
    """The name of its file and its anchor in the page."""
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    data: pd.DataFrame
    notes: tuple[str, ...] = ()
    words: tuple[int, ...] = (0,)
    """The columns with text, aligned left; columns with numbers are aligned right."""
    is_wide: bool = False
    """Whether it is too wide for a phone, which then shows each row as a card."""
    is_folded: bool = False
    """Whether it is collapsed until the reader opens it, because it is long reference material."""
    is_long: bool = False
    """Whether it gets a search field, because it has too many rows to read."""


@dataclass(frozen=True)
class Figure:
    """A chart of one small table."""

    slug: str
    title: str
    caption: str
    chart: Chart
    data: pd.DataFrame

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The chart as Vega-Lite, with its data. Altair checks it, which takes longest."""
        with alt.data_transformers.disable_max_rows():
            found: dict[str, Any] = self.chart.to_dict()
        return found


@dataclass(frozen=True)
class Section:
    title: str
    prose: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()


@dataclass(frozen=True)
class Tile:
    """A number at the top of the page."""

    value: str
    label: str
    mark: Mark = ""


@dataclass(frozen=True)
class Page:
    title: str
    subtitle: str
    verdict: Verdict
    headline: str
    summary: str
    tiles: tuple[Tile, ...]
    sections: tuple[Section, ...]
    footer: str
