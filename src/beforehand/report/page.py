"""Write a page to disk, with its tables and figures as files beside it."""

from __future__ import annotations

from pathlib import Path

from beforehand.events import PLAY_FILE
from beforehand.files import write_bytes, write_text
from beforehand.report.content import Page
from beforehand.report.export import csv_text, png_bytes, svg_text
from beforehand.report.shell import render_page


def write_page(page: Page, directory: Path) -> Path:
    """Write any page as one self-contained file, and its tables and figures into figures/."""
    slugs = [table.slug for section in page.sections for table in section.tables]
    slugs += [figure.slug for section in page.sections for figure in section.figures]
    # Slugs are file names and element ids, so a duplicate would overwrite another part.
    assert len(set(slugs)) == len(slugs), f"the same name twice: {sorted(slugs)}"
    folder = directory / "figures"
    stills: dict[str, str] = {}
    for section in page.sections:
        for table in section.tables:
            write_text(folder / f"{table.slug}.csv", csv_text(table.data))
        for figure in section.figures:
            svg = svg_text(figure)
            stills[figure.slug] = svg
            write_text(folder / f"{figure.slug}.csv", csv_text(figure.data))
            write_text(folder / f"{figure.slug}.svg", svg)
            write_bytes(folder / f"{figure.slug}.png", png_bytes(svg))
    target = directory / "report.html"
    play = PLAY_FILE if (directory / PLAY_FILE).is_file() else ""
    write_text(target, render_page(page, stills, play=play))
    return target
