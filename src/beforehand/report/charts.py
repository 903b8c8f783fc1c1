"""The chart builders. Each maps a small table to a chart and does not read, compute or save data.

Charts contain no text sizes or text colours: the page depends on the screen and on light or dark
mode, a printed picture does not. `export` adds what each needs.
"""

from __future__ import annotations

import json

import altair as alt
import pandas as pd

from beforehand.report.content import Chart
from beforehand.report.notation import HOUR_US, MINUTE_US, SECOND_US

# Distinguishable on white and on near-black, also with common colour blindness: adjacent colours
# differ in lightness as well as in hue.
PALETTE = ["#3f7fd0", "#23a494", "#86b83a", "#dfa612", "#e0702c", "#c2448e", "#8667c7", "#8a8f98"]

DASHES = [[1, 0], [8, 3], [2, 2], [8, 3, 2, 3], [12, 4], [5, 2, 1, 2, 1, 2], [3, 5], [12, 3, 3, 3]]
MARKER_ROWS = 40
"""A distribution has a marker at every so many rows."""
SHAPES = [
    "circle",
    "square",
    "triangle-up",
    "cross",
    "diamond",
    "triangle-down",
    "triangle-right",
    "triangle-left",
]
"""The dashes and the markers of lines, beside their colours: for lines that lie on each other, and
for prints in black and white."""

STEPS_US = [
    *(step * 1_000 for step in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(step * SECOND_US for step in (1, 2, 5, 10, 20, 30)),
    *(step * MINUTE_US for step in (1, 2, 5, 10, 20, 30)),
    *(step * HOUR_US for step in (1, 2, 4, 6, 12, 24)),
]
UNITS = {"h": HOUR_US, "min": MINUTE_US, "s": SECOND_US, "ms": 1_000}
WIDE = 20
"""The ratio of the largest to the smallest swept value from which an axis is logarithmic."""
LOG_TICKS_US = (
    *(0, 1_000, 10_000, 100_000, SECOND_US, 10 * SECOND_US, MINUTE_US, 10 * MINUTE_US),
    *(HOUR_US, 10 * HOUR_US, 100 * HOUR_US),
)


def presence_chart(table: pd.DataFrame) -> Chart:
    """Draw when each node is present: one line per node, in order of arrival (node, name, row,
    ...)."""
    chart: alt.Chart = (
        alt.Chart(table)
        .mark_rule(clip=True, strokeWidth=max(1.0, 3 - len(table) / 100), color=PALETTE[0])
        .encode(
            x=_clock_x("up_us", table["up_us"].min(), table["down_us"].max()),
            x2="down_us:Q",
            y=alt.Y("row:Q", title="Nodes", scale=alt.Scale(reverse=True, nice=False)).axis(
                labels=False, ticks=False, grid=False
            ),
            tooltip=[
                alt.Tooltip("name:N", title="Node"),
                alt.Tooltip("from:N", title="From"),
                alt.Tooltip("until:N", title="Until"),
            ],
        )
        .transform_calculate(
            **{"from": clock_text("datum.up_us"), "until": clock_text("datum.down_us")},
        )
        .add_params(_zoom())
    )
    return chart


def scatter_chart(table: pd.DataFrame) -> Chart:
    """Draw the latency of each delivery against the delay of its message (delay_us, latency_us)."""
    chart: alt.Chart = (
        alt.Chart(table)
        .mark_circle(clip=True, size=18, opacity=0.6, color=PALETTE[0])
        .encode(
            x=_duration_x("delay_us", "Transmission delay", table["delay_us"].max()),
            y=_duration_y("latency_us", "Delivery latency", table["latency_us"].max()),
            tooltip=[
                alt.Tooltip("delay:N", title="Delay"),
                alt.Tooltip("latency:N", title="Latency"),
            ],
        )
        .transform_calculate(
            delay=duration_text("datum.delay_us"), latency=duration_text("datum.latency_us")
        )
        .add_params(_zoom())
    )
    return chart


def cdf_chart(
    table: pd.DataFrame,
    *,
    title: str,
    of: str,
    end_us: int,
    log_from_us: int | None = None,
) -> Chart:
    """Draw a CDF, one line per lifetime, with the published points on top.

    table: lifetime, origin (ours or published), value_us, share.
    of: what the shares are shares of.
    end_us: where the axis ends.
    log_from_us: where the axis becomes logarithmic; None for a linear axis.
    """
    order = list(dict.fromkeys(table["lifetime"]))
    chosen = alt.selection_point(fields=["lifetime"], bind="legend")
    base = (
        alt.Chart(table)
        .transform_calculate(below=duration_text("datum.value_us"))
        .encode(
            x=_value_x("value_us", title, end_us, log_from_us),
            y=_share_y(of),
            color=alt.Color("lifetime:N", title=None, sort=order).scale(
                domain=order, range=PALETTE
            ),
            opacity=alt.when(chosen).then(alt.value(1)).otherwise(alt.value(0.12)),
            tooltip=[
                alt.Tooltip("lifetime:N", title="Protocol, lifetime"),
                alt.Tooltip("share:Q", title="Share", format=".1%"),
                alt.Tooltip("below:N", title="Below"),
                alt.Tooltip("origin:N", title="From"),
            ],
        )
    )
    ours = base.transform_filter("datum.origin == 'ours'")
    line = ours.mark_line(clip=True, strokeWidth=2).encode(strokeDash=_dashes("lifetime", order))
    marks = _sparse_marks(ours, order)
    claim_marks = base.mark_point(
        clip=True, size=70, strokeWidth=2, shape="diamond"
    ).transform_filter("datum.origin == 'published'")
    # Large invisible marks, because a finger does not hit a line of two pixels.
    touch = base.mark_circle(clip=True, size=160).encode(opacity=alt.value(0))
    # A layer without rows has no extent, of which Vega warns.
    layers = [marks, claim_marks] if (table["origin"] == "published").any() else [marks]
    return alt.LayerChart(layer=[line.add_params(chosen, _zoom()), *layers, touch])


def sweep_chart(table: pd.DataFrame, *, x: str, y: str, is_number: bool) -> Chart:
    """Draw the mean of a metric against a swept key, with its confidence interval.

    table: line, value, number, mean, low, high. is_number: draw `number`, else `value` as words.
    """
    order = list(dict.fromkeys(table["line"]))
    chosen = alt.selection_point(fields=["line"], bind="legend")
    values = [float(value) for value in table["number"]] if is_number else []
    if is_number:
        is_wide = min(values) > 0 and max(values) >= WIDE * min(values)
        scale = (
            alt.Scale(type="log", padding=12)
            if is_wide
            else alt.Scale(type="linear", zero=False, padding=12)
        )
        label = "datum.value >= 1000 ? format(datum.value, '~s') : '' + datum.value"
        axis = alt.Axis(values=sorted(set(values)), labelExpr=label)
        along: alt.X = alt.X("number:Q", title=x, scale=scale, axis=axis)
    else:
        along = alt.X("value:N", title=x, sort=list(dict.fromkeys(table["value"])))
    base = alt.Chart(table).encode(
        x=along,
        color=alt.Color("line:N", title=None, sort=order).scale(domain=order, range=PALETTE),
        opacity=alt.when(chosen).then(alt.value(1)).otherwise(alt.value(0.12)),
        tooltip=[
            alt.Tooltip("line:N", title="Line"),
            alt.Tooltip("value:N", title=x),
            alt.Tooltip("mean:Q", title=y, format=",.4~g"),
            alt.Tooltip("low:Q", title="From", format=",.4~g"),
            alt.Tooltip("high:Q", title="To", format=",.4~g"),
        ],
    )
    up = alt.Y("mean:Q", title=y, scale=alt.Scale(zero=False))
    line = base.mark_line(strokeWidth=2).encode(y=up, strokeDash=_dashes("line", order))
    bars = base.mark_rule(strokeWidth=1.5).encode(y=alt.Y("low:Q", title=y), y2="high:Q")
    marks = base.mark_point(size=60, filled=True).encode(y=up, shape=_shapes("line", order))
    return alt.LayerChart(layer=[line.add_params(chosen), bars, marks])


def _zoom() -> alt.Parameter:
    """Return the parameter that lets the reader zoom and move a chart. A plain wheel and a finger
    scroll the page."""
    move = "[pointerdown[event.pointerType == 'mouse'], window:pointerup] > window:pointermove!"
    return alt.selection_interval(bind="scales", zoom="wheel![event.ctrlKey]", translate=move)


def _dashes(field: str, order: list[str]) -> alt.StrokeDash:
    scale = alt.Scale(domain=order, range=DASHES[: len(order)])
    return alt.StrokeDash(f"{field}:N", title=None, sort=order, scale=scale)


def _shapes(field: str, order: list[str]) -> alt.Shape:
    scale = alt.Scale(domain=order, range=SHAPES[: len(order)])
    return alt.Shape(f"{field}:N", title=None, sort=order, scale=scale)


def _sparse_marks(lines: alt.Chart, order: list[str]) -> alt.Chart:
    """Return few markers, at least one a line and at other places on each, so that lines on each
    other are distinguishable."""
    every = f"min({MARKER_ROWS}, datum.rows)"
    chart: alt.Chart = (
        lines.mark_point(clip=True, size=45, filled=True)
        .transform_window(n="row_number()", groupby=["lifetime"])
        .transform_joinaggregate(rows="count()", groupby=["lifetime"])
        .transform_calculate(line=f"indexof({json.dumps(order)}, datum.lifetime)")
        .transform_filter(f"datum.n % {every} == (7 * datum.line + 5) % {every}")
        .encode(shape=_shapes("lifetime", order))
    )
    return chart


def hops_chart(table: pd.DataFrame) -> Chart:
    """Draw the share of receptions by number of hops, one line per run (line, hops, share)."""
    order = list(dict.fromkeys(table["line"]))
    chosen = alt.selection_point(fields=["line"], bind="legend")
    base = alt.Chart(table).encode(
        x=alt.X("hops:Q", title="Hops").axis(tickMinStep=1, format="d"),
        y=alt.Y("share:Q", title="Share of the receptions").axis(format="%"),
        color=alt.Color("line:N", title=None, sort=order).scale(domain=order, range=PALETTE),
        opacity=alt.when(chosen).then(alt.value(1)).otherwise(alt.value(0.12)),
        tooltip=[
            alt.Tooltip("line:N", title="Protocol, lifetime"),
            alt.Tooltip("hops:Q", title="Hops"),
            alt.Tooltip("share:Q", title="Share", format=".1%"),
            alt.Tooltip("receptions:Q", title="Receptions", format=","),
        ],
    )
    line = base.mark_line(strokeWidth=2).encode(strokeDash=_dashes("line", order))
    marks = base.mark_point(size=45, filled=True).encode(shape=_shapes("line", order))
    touch = base.mark_circle(size=160).encode(opacity=alt.value(0))
    return alt.LayerChart(layer=[line.add_params(chosen), marks, touch])


def share_chart(
    table: pd.DataFrame, *, title: str, of: str, end_us: int, log_from_us: int | None
) -> Chart:
    """Draw a CDF as one line (share, value_us)."""
    chart: alt.Chart = (
        alt.Chart(table)
        .mark_line(interpolate="step-after", strokeWidth=2, color=PALETTE[0])
        .transform_calculate(below=duration_text("datum.value_us"))
        .encode(
            x=_value_x("value_us", title, end_us, log_from_us),
            y=_share_y(of),
            tooltip=[
                alt.Tooltip("share:Q", title="Share", format=".1%"),
                alt.Tooltip("below:N", title="Up to"),
            ],
        )
    )
    return chart


def registry_chart(table: pd.DataFrame, *, of: str = "Entries") -> Chart:
    """Draw the sizes of one node's registries over time (t_us, registry, value)."""
    order = list(dict.fromkeys(table["registry"]))
    colours = [PALETTE[4], PALETTE[0], PALETTE[2]] if len(order) <= 3 else PALETTE
    chosen = alt.selection_point(fields=["registry"], bind="legend")
    chart: alt.Chart = (
        alt.Chart(table)
        .mark_line(clip=True, interpolate="step-after", strokeWidth=1.5)
        .encode(
            strokeDash=_dashes("registry", order),
            x=_clock_x("t_us", table["t_us"].min(), table["t_us"].max()),
            y=alt.Y("value:Q", title=of, scale=alt.Scale(zero=True)),
            color=alt.Color("registry:N", title=None, sort=order).scale(
                domain=order, range=colours
            ),
            opacity=alt.when(chosen).then(alt.value(1)).otherwise(alt.value(0.12)),
            tooltip=[
                alt.Tooltip("registry:N", title="Line"),
                alt.Tooltip("at:N", title="At"),
                alt.Tooltip("value:Q", title=of),
            ],
        )
        .add_params(chosen, _zoom())
        .transform_calculate(at=clock_text("datum.t_us"))
    )
    return chart


def ticks(low_us: float, high_us: float, count: int = 8) -> list[int]:
    """Return at most about `count` round instants or durations within the range."""
    if high_us - low_us < STEPS_US[0]:
        return []  # below a millisecond Vega chooses the ticks
    step = next((s for s in STEPS_US if (high_us - low_us) / s <= count), STEPS_US[-1])
    first = -(-int(low_us) // step) * step
    return list(range(first, int(high_us) + 1, step))


def _clock_x(field: str, low_us: float, high_us: float) -> alt.X:
    values = ticks(low_us, high_us)
    # Without seconds, ticks less than a minute apart would have the same label.
    has_seconds = any(us % MINUTE_US for us in values)
    axis = _axis(low_us, high_us, clock_text("datum.value", has_seconds=has_seconds))
    scale = alt.Scale(domain=[low_us, high_us], nice=False)
    title = f"Time (hh:mm{':ss' if has_seconds else ''})"
    return alt.X(f"{field}:Q", title=title, scale=scale, axis=axis)


def _duration_x(field: str, name: str, high_us: float) -> alt.X:
    high_us = high_us or SECOND_US  # an axis is needed even if all values are zero
    unit, axis = _duration_axis(high_us)
    scale = alt.Scale(domain=[0, high_us], nice=False)
    return alt.X(f"{field}:Q", title=f"{name} ({unit})", scale=scale, axis=axis)


def _value_x(field: str, name: str, high_us: float, log_from_us: int | None) -> alt.X:
    if log_from_us is None:
        return _duration_x(field, name, high_us)
    return _log_x(field, name, high_us, log_from_us)


def _share_y(of: str) -> alt.Y:
    scale = alt.Scale(domain=[0, 1])
    return alt.Y("share:Q", title=f"Share of the {of}", scale=scale).axis(format="%")


def _log_x(field: str, name: str, high_us: float, from_us: int) -> alt.X:
    """Return a symlog x axis: linear below `from_us`, so that it can show zero."""
    values = [us for us in LOG_TICKS_US if (us >= from_us or not us) and us <= high_us]
    axis = alt.Axis(labelExpr=duration_text("datum.value"), values=values)
    scale = alt.Scale(type="symlog", constant=from_us, domain=[0, high_us], nice=False)
    return alt.X(f"{field}:Q", title=name, scale=scale, axis=axis)


def _duration_y(field: str, name: str, high_us: float) -> alt.Y:
    high_us = high_us or SECOND_US  # an axis is needed even if all values are zero
    unit, axis = _duration_axis(high_us)
    scale = alt.Scale(domain=[0, high_us], nice=False)
    return alt.Y(f"{field}:Q", title=f"{name} ({unit})", scale=scale, axis=axis)


def _duration_axis(high_us: float) -> tuple[str, alt.Axis]:
    """Return the unit, and an axis labelled in this unit."""
    unit = next((unit for unit, us in UNITS.items() if high_us >= 3 * us), "ms")
    return unit, _axis(0, high_us, f"format(datum.value / {UNITS[unit]}, '~g')")


def _axis(low_us: float, high_us: float, label: str) -> alt.Axis:
    values = ticks(low_us, high_us)
    return alt.Axis(labelExpr=label, values=values) if values else alt.Axis(labelExpr=label)


def clock_text(us: str, *, has_seconds: bool = False) -> str:
    """Return a Vega expression that formats hh:mm, or hh:mm:ss."""
    minutes = f"floor({us} / {MINUTE_US})"
    text = f"format(floor({minutes} / 60), '02d') + ':' + format({minutes} % 60, '02d')"
    seconds = f" + ':' + format(floor({us} / {SECOND_US}) % 60, '02d')"
    return text + seconds if has_seconds else text


def duration_text(us: str) -> str:
    """Return a Vega expression that formats a duration in the paper's notation."""
    seconds = f"round({us} / {SECOND_US})"
    hours, minutes = f"floor({seconds} / 3600)", f"floor({seconds} / 60) % 60"
    return (
        f"{us} < 1e5 ? format({us} / 1e3, '.3~r') + ' ms' : "
        f"{us} < 59.95e6 ? format({us} / 1e6, '.1~f') + '\"' : "
        f"({hours} > 0 ? {hours} + 'h' + format({minutes}, '02d') : {minutes} + '') + '\\'' + "
        f"format({seconds} % 60, '02d') + '\"'"
    )
