"""What a page is made of. A page is data: whoever builds one knows nothing of HTML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import altair as alt
import pandas as pd

Chart = alt.Chart | alt.LayerChart
Mark = Literal["met", "missed", ""]
Verdict = Literal["valid", "invalid", "unknown"]
TILE_MARKS: dict[Verdict, Mark] = {"valid": "met", "invalid": "missed", "unknown": ""}
"""Of the tile that counts what is wrong, so that it says what the headline says."""


@dataclass(frozen=True)
class Cell:
    """One figure, and beside it the published one with the difference."""

    text: str
    published: str = ""
    difference: str = ""
    mark: Mark = ""
    spread: str = ""
    """How far the mean of other seeds may be from this one."""


@dataclass(frozen=True)
class Table:
    """What is shown, and the same as plain numbers for a machine."""

    slug: str
    """Name of its file and of its place in the page."""
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    data: pd.DataFrame
    notes: tuple[str, ...] = ()
    words: tuple[int, ...] = (0,)
    """The columns that hold words and start at the left; numbers end at the right."""
    is_wide: bool = False
    """Too wide for a phone, where each row becomes a card."""
    is_folded: bool = False
    """Long and for reference: closed until it is asked for."""
    is_long: bool = False
    """Too long to be read: it can be searched."""


@dataclass(frozen=True)
class Figure:
    """A chart of one small table."""

    slug: str
    title: str
    caption: str
    chart: Chart
    data: pd.DataFrame


@dataclass(frozen=True)
class Section:
    title: str
    prose: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()


@dataclass(frozen=True)
class Tile:
    """A number to be seen first."""

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
