"""Export a chart for the page or for a file: as a specification, SVG, PNG or CSV."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import altair as alt
import pandas as pd
import vl_convert

from beforehand.report.content import Figure

VEGALITE = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
PICTURE_WIDTH, HEIGHT = 560, 300
PICTURE_SCALE = 2.0
PICTURE_LEGEND_COLUMNS = 4  # the page sets its own number by its width
MARK_WORDS = re.compile(r' (?:aria-label|aria-roledescription|role|aria-hidden)="[^"]*"')
UNSEEN = re.compile(r'<path[^>]* opacity="0"[^>]*/>')
LONG_DECIMALS = re.compile(r"(\d\.\d)\d+")
PARSE = {"i": "number", "u": "number", "f": "number", "b": "boolean"}


def csv_text(table: pd.DataFrame) -> str:
    return table.to_csv(index=False, lineterminator="\n")


def page_spec(figure: Figure) -> dict[str, Any]:
    """Return the chart without its data, as wide as its container, in the colour of the page's
    text.

    The page holds the data once, as the CSV that the reader can also save. The script of the page
    joins the two.
    """
    spec = _specify(figure, width="container", ink="currentColor")
    # One table per chart: the CSV would lack the data of a second one.
    assert len(spec.pop("datasets")) == 1, f"{figure.slug} draws more than one table"
    kinds = {
        str(name): PARSE.get(dtype.kind, "string") for name, dtype in figure.data.dtypes.items()
    }
    spec["data"] = {"format": {"type": "csv", "parse": kinds}}
    return spec


def svg_text(figure: Figure) -> str:
    """Return the chart as a picture. It has a tenth of a pixel as its resolution, no words for
    single marks, which take more room than the marks, and no marks that cannot be seen."""
    svg = str(vl_convert.vegalite_to_svg(_picture(figure), vl_version=VEGALITE))
    return LONG_DECIMALS.sub(r"\1", UNSEEN.sub("", MARK_WORDS.sub("", svg)))


def png_bytes(svg: str) -> bytes:
    return bytes(vl_convert.svg_to_png(svg, scale=PICTURE_SCALE))


@cache
def script() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script to embed in the page."""
    library = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGALITE)
    # A string within the library must not close the surrounding script element.
    return library.replace("</script", "<\\/script")


def _picture(figure: Figure) -> dict[str, Any]:
    spec = _specify(figure, width=PICTURE_WIDTH, ink="#1d2330")
    return {**spec, "background": "white", "padding": 12}


def _specify(figure: Figure, *, width: int | str, ink: str) -> dict[str, Any]:
    # Replace Altair's default configuration of a fixed size and a white background.
    return {**figure.spec, "width": width, "height": HEIGHT, "config": _config(ink)}


def _config(ink: str) -> dict[str, Any]:
    return {
        "background": None,
        "font": FONT,
        "view": {"stroke": None},
        "axis": {
            **dict.fromkeys(("labelColor", "titleColor", "gridColor", "domainColor"), ink),
            "tickColor": ink,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": 500,
            "titlePadding": 8,
            "labelOpacity": 0.85,
            "gridOpacity": 0.12,
            "domainOpacity": 0.4,
            "tickOpacity": 0.4,
        },
        "legend": {
            "labelColor": ink,
            "titleColor": ink,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": 500,
            "orient": "top",
            "symbolStrokeWidth": 3,
            "labelLimit": 300,
            "columns": PICTURE_LEGEND_COLUMNS,
        },
    }
