"""From a chart to what a page or a folder holds: a specification, an SVG, a PNG, a CSV."""

from __future__ import annotations

from functools import cache
from typing import Any

import altair as alt
import pandas as pd
import vl_convert

from beforehand.report.content import Chart, Figure

VEGALITE = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
PICTURE_WIDTH, HEIGHT = 560, 300
PICTURE_SCALE = 2.0
PICTURE_LEGEND_COLUMNS = 4  # a page sets its own, by the width that it has
PARSE = {"i": "number", "u": "number", "f": "number", "b": "boolean"}


def csv_text(table: pd.DataFrame) -> str:
    return table.to_csv(index=False, lineterminator="\n")


def page_spec(figure: Figure) -> dict[str, Any]:
    """The chart without its data, as wide as its place, in the colour of the text around it.

    The page holds the data once, as the CSV that can also be saved; its script joins the two.
    """
    spec = _specify(figure.chart.properties(width="container", height=HEIGHT), ink="currentColor")
    # One table per chart: what else it shows would be missing in the CSV beside it.
    assert len(spec.pop("datasets")) == 1, f"{figure.slug} draws more than one table"
    kinds = {
        str(name): PARSE.get(dtype.kind, "string") for name, dtype in figure.data.dtypes.items()
    }
    spec["data"] = {"format": {"type": "csv", "parse": kinds}}
    return spec


def svg_text(chart: Chart) -> str:
    return str(vl_convert.vegalite_to_svg(_picture(chart), vl_version=VEGALITE))


def png_bytes(svg: str) -> bytes:
    return bytes(vl_convert.svg_to_png(svg, scale=PICTURE_SCALE))


@cache
def script() -> str:
    """Vega, Vega-Lite and Vega-Embed in one piece, to be put into the page."""
    library = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGALITE)
    # What a string of the library says must not end the script element around it.
    return library.replace("</script", "<\\/script")


def _picture(chart: Chart) -> dict[str, Any]:
    spec = _specify(chart.properties(width=PICTURE_WIDTH, height=HEIGHT), ink="#1d2330")
    return {**spec, "background": "white", "padding": 12}


def _specify(chart: Chart, *, ink: str) -> dict[str, Any]:
    with alt.data_transformers.disable_max_rows():
        spec: dict[str, Any] = chart.to_dict()
    # Altair's own default of a fixed size and a white ground is replaced, not added to.
    spec["config"] = _config(ink)
    return spec


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
            "columns": PICTURE_LEGEND_COLUMNS,
        },
    }
