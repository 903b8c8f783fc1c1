"""Charts of contacts, readable in black and white: lines differ in dashes and markers too."""

from __future__ import annotations

import altair as alt
import pandas as pd

from beforehand.report.charts import LOG_TICKS_US, PALETTE, clock_text, duration_text
from beforehand.report.content import Chart
from beforehand.report.notation import HOUR_US

DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3]]
SHAPES = ["circle", "square", "triangle-up", "diamond"]
DAY = 24
HOURS_APART = (1, 2, 3, 6, 12, DAY)
MARKED_EVERY = 12
"""Every so many points of a line get a marker."""


def survival_chart(table: pd.DataFrame) -> Chart:
    """Draw complementary distributions with two logarithmic axes (line, value_us, share)."""
    order = list(dict.fromkeys(table["line"]))
    chosen = alt.selection_point(fields=["line"], bind="legend")
    low, high = int(table["value_us"].min()), int(table["value_us"].max())
    ticks = [us for us in LOG_TICKS_US if low <= us <= high]
    labels = duration_text("datum.value")
    axis = alt.Axis(labelExpr=labels, values=ticks) if ticks else alt.Axis(labelExpr=labels)
    base = (
        alt.Chart(table)
        .transform_calculate(longer=duration_text("datum.value_us"))
        .encode(
            x=alt.X("value_us:Q", title="Time", scale=alt.Scale(type="log"), axis=axis),
            y=alt.Y("share:Q", title="Share that takes longer", scale=alt.Scale(type="log")).axis(
                format="~g"
            ),
            color=alt.Color("line:N", title=None, sort=order).scale(domain=order, range=PALETTE),
            opacity=alt.when(chosen).then(alt.value(1)).otherwise(alt.value(0.12)),
            tooltip=[
                alt.Tooltip("line:N", title="Line"),
                alt.Tooltip("share:Q", title="Share", format=".3~g"),
                alt.Tooltip("longer:N", title="Longer than"),
            ],
        )
    )
    dash = alt.StrokeDash("line:N", title=None, sort=order).scale(
        domain=order, range=DASHES[: len(order)]
    )
    shape = alt.Shape("line:N", title=None, sort=order).scale(
        domain=order, range=SHAPES[: len(order)]
    )
    line = base.mark_line(interpolate="step-after", strokeWidth=1.5).encode(strokeDash=dash)
    marks = (
        base.mark_point(size=45, filled=True)
        .transform_window(n="row_number()", groupby=["line"])
        .transform_filter(f"datum.n % {MARKED_EVERY} == 1")
        .encode(shape=shape)
    )
    return alt.LayerChart(layer=[line.add_params(chosen), marks])


def whole_hours(last_us: int) -> list[int]:
    """Return the ticks of an axis from 0 to this time: whole hours, at most nine."""
    step = next((step for step in HOURS_APART if last_us <= 8 * step * HOUR_US), None)
    step = step or -(-last_us // (8 * DAY * HOUR_US)) * DAY
    return list(range(0, last_us + HOUR_US, step * HOUR_US))


def hours_chart(table: pd.DataFrame) -> Chart:
    """Draw counts per hour, one line per count (line, from_us, count)."""
    order = list(dict.fromkeys(table["line"]))
    chart: alt.Chart = (
        alt.Chart(table)
        .mark_line(interpolate="step-after", strokeWidth=1.5, point=True)
        .transform_calculate(at=clock_text("datum.from_us"))
        .encode(
            x=alt.X("from_us:Q", title="Hour of the trace").axis(
                values=whole_hours(int(table["from_us"].max())),
                labelExpr="format(datum.value / 3600000000, '~g')",
            ),
            y=alt.Y("count:Q", title="Per hour", scale=alt.Scale(zero=True)),
            color=alt.Color("line:N", title=None, sort=order).scale(domain=order, range=PALETTE),
            strokeDash=alt.StrokeDash("line:N", title=None, sort=order).scale(
                domain=order, range=DASHES[: len(order)]
            ),
            shape=alt.Shape("line:N", title=None, sort=order).scale(
                domain=order, range=SHAPES[: len(order)]
            ),
            tooltip=[
                alt.Tooltip("line:N", title="Line"),
                alt.Tooltip("at:N", title="From"),
                alt.Tooltip("count:Q", title="Count", format=","),
            ],
        )
    )
    return chart
