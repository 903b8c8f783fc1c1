"""A page on disk, and the same tables and figures as files beside it."""

from __future__ import annotations

from pathlib import Path

from beforehand.report.content import Page
from beforehand.report.export import csv_text, png_bytes, svg_text
from beforehand.report.shell import render_page


def write_page(page: Page, directory: Path) -> Path:
    """Write any page: it needs no network and no other file, and figures/ has its parts."""
    folder = directory / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    stills: dict[str, bytes] = {}
    for section in page.sections:
        for table in section.tables:
            (folder / f"{table.slug}.csv").write_text(csv_text(table.data))
        for figure in section.figures:
            svg = svg_text(figure.chart)
            stills[figure.slug] = png_bytes(svg)
            (folder / f"{figure.slug}.csv").write_text(csv_text(figure.data))
            (folder / f"{figure.slug}.svg").write_text(svg)
            (folder / f"{figure.slug}.png").write_bytes(stills[figure.slug])
    target = directory / "report.html"
    target.write_text(render_page(page, stills))
    return target
