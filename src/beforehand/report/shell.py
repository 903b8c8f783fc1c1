"""Render a page as HTML. This module knows tables and figures, but not their subject."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from html import escape as escape_markup
from importlib.resources import files
from string import Template
from urllib.parse import quote

from beforehand.report.content import Cell, Figure, Page, Section, Table, Tile
from beforehand.report.export import csv_text, page_spec, script

PARTS = files("beforehand.report.web")
MARKS = {"met": ("✓", "within the tolerance"), "missed": ("✗", "outside the tolerance")}
VERDICTS = {"valid": "✓ Valid", "invalid": "✗ Invalid", "unknown": "? Unknown"}
PLAY_WORDS = "nodes and messages in time, and why a message waits"


def render_page(page: Page, stills: Mapping[str, str], *, play: str = "") -> str:
    """Return one self-contained HTML document.

    stills: each figure as SVG by slug, for browsers without scripts and for download.
    play: the address of a page that plays a run; empty if there is none.
    """
    template = Template((PARTS / "page.html").read_text())
    figures = [figure for section in page.sections for figure in section.figures]
    return template.substitute(
        style=(PARTS / "page.css").read_text().strip(),
        title=escape(page.title),
        subtitle=escape(page.subtitle),
        verdict=page.verdict,
        verdict_word=VERDICTS[page.verdict],
        headline=escape(page.headline),
        summary=escape(page.summary),
        play=_play_link(play),
        tiles=_tiles(page.tiles),
        contents=_contents(page.sections),
        sections="\n".join(_section(section, stills) for section in page.sections),
        footer=escape(page.footer),
        embedded=_embedded(figures),
        library=script() if figures else "",
        script=(PARTS / "page.js").read_text().strip(),
    )


def _play_link(address: str) -> str:
    """Return the link to a page that plays a run, and a frame that loads it once it is opened."""
    if not address:
        return ""
    link = quote(address)
    return (
        f'<p class="play"><a href="{link}">▶ Play a run</a>: {PLAY_WORDS}</p>\n'
        '<details class="preview"><summary>Preview</summary>'
        f'<iframe data-src="{link}" title="A run that plays"></iframe></details>'
    )


def escape(text: str) -> str:
    """Escape text for the page; keep a number and its unit on one line."""
    return re.sub(r"(?<=\d) (?=(?:%|pt|ms|s|k?B|MB|GB)(?!\w))", "\u00a0", escape_markup(text))


def _tiles(tiles: Sequence[Tile]) -> str:
    items = (
        f'<li><b class="{tile.mark}">{escape(tile.value)}</b><span>{escape(tile.label)}</span></li>'
        for tile in tiles
    )
    return f'<ul class="tiles">{"".join(items)}</ul>'


def _contents(sections: Sequence[Section]) -> str:
    links = (f'<a href="#{_anchor(s.title)}">{escape(s.title)}</a>' for s in sections)
    return f'<nav aria-label="Contents">{"".join(links)}</nav>'


def _section(section: Section, stills: Mapping[str, str]) -> str:
    prose = "".join(f"<p>{escape(text)}</p>" for text in section.prose)
    tables = "\n".join(_table(table) for table in section.tables)
    figures = "\n".join(_figure(figure, stills[figure.slug]) for figure in section.figures)
    grid = f'<div class="figures">{figures}</div>' if figures else ""
    anchor = _anchor(section.title)
    return f'<section id="{anchor}"><h2>{escape(section.title)}</h2>{prose}{tables}{grid}</section>'


def _table(table: Table) -> str:
    heads = "".join(
        f'<th scope="col"{_words(table, column)}>{escape(head)}</th>'
        for column, head in enumerate(table.head)
    )
    rows = "\n".join(_row(table, row) for row in table.rows)
    kinds = [k for k, is_so in (("wide", table.is_wide), ("long", table.is_long)) if is_so]
    kind = f' class="{" ".join(kinds)}"' if kinds else ""
    # Explicit roles: with `display: block`, assistive technology no longer sees a table.
    grid = (
        f'<div class="scroll"><table role="table"{kind}><thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )
    notes = "".join(f"<li>{escape(note)}</li>" for note in table.notes)
    body = grid + (f'<ul class="notes">{notes}</ul>' if notes else "")
    files_of = _files(table.slug, {"csv": _csv_link(table)})
    if table.is_folded:
        summary = f"<summary>{escape(table.title)}</summary>"
        return f'<details class="block" id="{table.slug}">{summary}{files_of}{body}</details>'
    title = f"<header><h3>{escape(table.title)}</h3>{files_of}</header>"
    return f'<div class="block" id="{table.slug}">{title}{body}</div>'


def _row(table: Table, row: Sequence[Cell]) -> str:
    cells = "".join(
        f'<td role="cell" data-label="{escape(table.head[column])}"{_words(table, column)}>'
        f"{_cell(cell)}</td>"
        for column, cell in enumerate(row)
    )
    return f'<tr role="row">{cells}</tr>'


def _cell(cell: Cell) -> str:
    sign, meaning = MARKS.get(cell.mark, ("", ""))
    mark = f' <span class="mark {cell.mark}" title="{meaning}">{sign}</span>' if sign else ""
    parts = [escape(part) for part in (cell.published, cell.difference) if part]
    published = "<i> · </i>".join(f"<span>{part}</span>" for part in parts)
    below = f'<span class="theirs">{published}</span>' if parts else ""
    spread = f' <span class="spread">{escape(cell.spread)}</span>' if cell.spread else ""
    return f"<span>{escape(cell.text)}{spread}{mark}</span>{below}"


def _words(table: Table, column: int) -> str:
    return ' class="words"' if column in table.words else ""


def _figure(figure: Figure, svg: str) -> str:
    picture = f"data:image/svg+xml;base64,{_base64(svg.encode())}"
    title, caption = escape(figure.title), escape(figure.caption)
    links = {
        "csv": _csv_link(figure),
        # Both are made from the picture for browsers without scripts; do not embed it again.
        "svg": f"#{figure.slug}",
        "png": f"#{figure.slug}",
    }
    return (
        f'<figure id="{figure.slug}" class="block">'
        f"<header><h3>{title}</h3></header>"
        f'<div class="chart" data-chart="{figure.slug}" role="img" aria-label="{title}"></div>'
        f'<noscript><img alt="{title}" src="{picture}"></noscript>'
        f"<figcaption>{caption} {_files(figure.slug, links)}</figcaption></figure>"
    )


def _files(slug: str, links: Mapping[str, str]) -> str:
    found = "".join(
        f'<a href="{address}" download="{slug}.{kind}" data-slug="{slug}" data-kind="{kind}">'
        f"{kind.upper()}</a>"
        for kind, address in links.items()
    )
    return f'<span class="files">{found}</span>'


def _csv_link(part: Table | Figure) -> str:
    """Return the whole table as a data URL, for downloads and for the script of the page."""
    return f"data:text/csv;charset=utf-8,{quote(csv_text(part.data), safe=',:;()')}"


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _embedded(figures: Sequence[Figure]) -> str:
    """Return every chart's specification as an embedded script element, for the script of the
    page."""
    return "\n".join(
        f'<script type="application/json" id="spec-{figure.slug}">'
        f"{_json(page_spec(figure))}</script>"
        for figure in figures
    )


def _json(value: object) -> str:
    # Within a script element only `<` is dangerous, because it can end the element.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
