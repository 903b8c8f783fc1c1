"""The charts, as specifications and as pictures."""

import re

import altair as alt
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beforehand.report.charts import (
    cdf_chart,
    clock_text,
    duration_text,
    presence_chart,
    registry_chart,
    scatter_chart,
    ticks,
)
from beforehand.report.contact_charts import whole_hours
from beforehand.report.content import Figure
from beforehand.report.export import csv_text, page_spec, png_bytes, svg_text
from beforehand.report.notation import HOUR_US, MINUTE_US, SECOND_US, show_time

PRESENCE = pd.DataFrame(
    {
        "node": [4, 9],
        "name": ["L01-4", "L01-9"],
        "up_us": [6 * HOUR_US, 7 * HOUR_US],
        "down_us": [9 * HOUR_US, 20 * HOUR_US],
        "row": [0, 1],
    }
)
SCATTER = pd.DataFrame({"delay_us": [0, 50 * MINUTE_US], "latency_us": [2_000, 90 * SECOND_US]})
CDF = pd.DataFrame(
    {
        "lifetime": ["none", "none", "20'", "20'", "20'"],
        "origin": ["ours", "ours", "ours", "ours", "published"],
        "share": [0.0, 1.0, 0.0, 1.0, 0.9],
        "value_us": [0, 70 * SECOND_US, 0, 20 * SECOND_US, 8 * SECOND_US],
    }
)
REGISTRIES = pd.DataFrame(
    {
        "registry": ["causal barrier", "causal barrier", "delivered", "delivered"],
        "t_us": [6 * HOUR_US, 9 * HOUR_US] * 2,
        "value": [1, 4, 0, 30],
    }
)
CHARTS = {
    "presence": (presence_chart, PRESENCE),
    "scatter": (scatter_chart, SCATTER),
    "cdf": (
        lambda table: cdf_chart(table, title="Latency", of="deliveries", end_us=60 * SECOND_US),
        CDF,
    ),
    "registries": (registry_chart, REGISTRIES),
}


def figure(name):
    make, table = CHARTS[name]
    return Figure(name, name.title(), "", make(table), table)


@pytest.mark.slow  # the first picture starts the renderer
@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_draws_its_data(name):
    svg = svg_text(figure(name))
    wanted = {
        "presence": ["06:00", "20:00", "Time (hh:mm)", "Nodes"],
        "scatter": ["Transmission delay (min)", "Delivery latency (s)", ">50<"],
        "cdf": ["Latency (s)", "100%", ">none<", ">20&apos;<"],
        "registries": ["06:00", "09:00", ">causal barrier<", ">delivered<"],
    }[name]
    plain = svg.replace("&#39;", "&apos;").replace("20'<", "20&apos;<")
    assert [text for text in wanted if text not in plain] == []
    assert svg.count("currentColor") == 0  # a file has no text around it
    assert png_bytes(svg).startswith(b"\x89PNG")


@pytest.mark.slow
def test_published_points_are_drawn_beside_our_lines():
    ours = CDF[CDF["origin"] == "ours"]
    without = svg_text(Figure("ours", "", "", CHARTS["cdf"][0](ours), ours))
    assert svg_text(figure("cdf")).count("<path") > without.count("<path")


@pytest.mark.slow
def test_a_picture_of_many_equal_marks_has_their_shape_once_and_looks_the_same(monkeypatch):
    table = pd.concat([SCATTER] * 20, ignore_index=True)
    table["delay_us"] += 30_000_000 * table.index
    dense = Figure("dense", "", "", scatter_chart(table), table)
    small = svg_text(dense)
    monkeypatch.setattr("beforehand.report.export.SHARED_MIN", len(table) + 1)
    large = svg_text(dense)
    assert small.count("<use ") >= len(table) > large.count("<use ") == 0
    assert len(large) - len(small) > 30 * len(table)
    assert png_bytes(small) == png_bytes(large)


@pytest.mark.parametrize("name", CHARTS)
def test_a_page_gets_the_chart_without_its_data(name):
    spec = page_spec(figure(name))
    assert "datasets" not in spec
    assert spec["width"] == "container"
    assert spec["config"]["axis"]["labelColor"] == "currentColor"
    assert str(CHARTS[name][1].iloc[0, -1]) not in str(spec["data"])


def test_a_page_declares_the_column_types_of_its_csv():
    parse = page_spec(figure("cdf"))["data"]["format"]["parse"]
    assert parse == {
        "lifetime": "string",
        "origin": "string",
        "share": "number",
        "value_us": "number",
    }


def test_a_chart_of_two_tables_is_refused():
    both = alt.LayerChart(layer=[scatter_chart(SCATTER), scatter_chart(SCATTER + 1)])
    with pytest.raises(AssertionError, match="more than one table"):
        page_spec(Figure("both", "", "", both, SCATTER))


def test_tables_become_csv_without_row_numbers():
    assert csv_text(SCATTER.head(1)) == "delay_us,latency_us\n0,2000\n"


@given(st.integers(0, 100 * HOUR_US), st.integers(0, 30 * HOUR_US))
def test_ticks_are_few_and_round_and_within(low_us, span_us):
    found = ticks(low_us, low_us + span_us)
    assert len(found) <= 9
    assert all(low_us <= tick <= low_us + span_us for tick in found)
    assert all(tick % 1_000 == 0 for tick in found)
    assert len(found) >= 2 or span_us < 10_000


def test_ticks_fall_on_round_times():
    assert ticks(5.5 * HOUR_US, 19.75 * HOUR_US) == [h * HOUR_US for h in range(6, 20, 2)]
    assert ticks(0, 60 * SECOND_US) == [s * SECOND_US for s in range(0, 61, 10)]
    assert ticks(0, 1_100_000) == [ms * 1_000 for ms in range(0, 1001, 200)]


def test_an_axis_of_zeros_ends_at_one_second():
    chart = scatter_chart(SCATTER.assign(latency_us=0)).to_dict()
    assert chart["encoding"]["y"]["scale"]["domain"] == [0, SECOND_US]


def test_ticks_less_than_a_minute_apart_have_distinct_labels():
    stays = pd.DataFrame({"node": [1], "name": ["a"], "row": [0], "up_us": [0]})
    for seconds, title in ((150, "Time (hh:mm:ss)"), (3600, "Time (hh:mm)")):
        chart = presence_chart(stays.assign(down_us=seconds * SECOND_US)).to_dict()
        assert chart["encoding"]["x"]["title"] == title


def test_an_axis_ends_at_its_largest_value_in_a_suitable_unit():
    for high_us, unit in ((900, "ms"), (200_000, "ms"), (5 * SECOND_US, "s"), (9 * HOUR_US, "h")):
        axis = scatter_chart(SCATTER.assign(delay_us=high_us)).to_dict()["encoding"]["x"]
        assert axis["title"] == f"Transmission delay ({unit})"
        assert axis["scale"]["domain"] == [0, high_us]


@pytest.mark.slow
def test_a_logarithmic_axis_starts_at_zero():
    chart = cdf_chart(CDF, title="Latency", of="deliveries", end_us=HOUR_US, log_from_us=100_000)
    assert [t for t in ("0 ms", '0.1"', '1"', '10"', "10'00\"") if t not in texts_of(chart)] == []


@pytest.mark.slow
def test_the_charts_write_times_as_the_tables_do():
    seconds = [0.004, 1.2, 13, 59.9, 63, 2630, 7196, 42_428]
    table = pd.DataFrame({"us": [round(s * SECOND_US) for s in seconds]})
    chart = alt.Chart(table).transform_calculate(
        lasts=duration_text("datum.us"), at=clock_text("datum.us")
    )
    lasts = texts_of(chart.mark_text().encode(text="lasts:N", y="us:O"))
    assert set(lasts) >= {show_time(us) for us in table["us"]}
    at = texts_of(chart.mark_text().encode(text="at:N", y="us:O"))
    assert {"00:00", "00:01", "00:43", "01:59", "11:47"} <= set(at)


def texts_of(chart):
    svg = (
        svg_text(Figure("texts", "", "", chart, chart.data))
        .replace("&#39;", "'")
        .replace("&apos;", "'")
        .replace("&quot;", '"')
    )
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


@pytest.mark.parametrize(
    ("hours", "ticks"),
    [
        (0, [0]),
        (3, [0, 1, 2, 3]),
        (14, [0, 2, 4, 6, 8, 10, 12, 14]),
        (100, [0, 24, 48, 72, 96]),
        (1000, [0, 144, 288, 432, 576, 720, 864]),
    ],
)
def test_hours_of_a_trace_have_whole_ticks(hours, ticks):
    assert whole_hours(hours * HOUR_US) == [tick * HOUR_US for tick in ticks]
