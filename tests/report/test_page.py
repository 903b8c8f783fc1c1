"""The whole page, as text; how it looks is for tests/browser."""

import re
from base64 import b64decode
from dataclasses import replace
from urllib.parse import unquote_to_bytes

import pandas as pd
import pyarrow.parquet as pq
import pytest

from beforehand.errors import InputError
from beforehand.lab import write_report
from beforehand.report.charts import scatter_chart
from beforehand.report.content import Cell, Figure, Page, Section, Table, Tile
from beforehand.report.export import csv_text
from beforehand.report.opportunistic.page import build_opportunistic_page
from beforehand.report.page import write_page
from beforehand.report.shell import render_page
from tests.report.made_up import TRANSFER, write_datasets

DATASETS = (
    "quantiles",
    "scatter",
    "presence",
    "gauges",
    "trace",
    "meetings",
    "hops",
    "survival",
    "hours",
)


def build(folder, **options):
    return build_opportunistic_page(write_datasets(folder, **options))


def texts(page):
    """All words of a page in one string."""
    found = [page.headline, page.summary, page.footer, *(t.value + t.label for t in page.tiles)]
    for section in page.sections:
        found += [section.title, *section.prose]
        found += [figure.title + figure.caption for figure in section.figures]
        for table in section.tables:
            found += [table.title, *table.notes, *table.head]
            found += [f"{c.text} {c.published}" for row in table.rows for c in row]
    return "\n".join(found)


def figures_of(page, prefix):
    return [f for section in page.sections for f in section.figures if f.slug.startswith(prefix)]


def table_of(page, slug):
    (table,) = (t for section in page.sections for t in section.tables if t.slug == slug)
    return table


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return write_report(write_datasets(tmp_path_factory.mktemp("run")))


@pytest.mark.slow
def test_every_table_and_figure_has_its_files(report):
    figures = {"presence", "scatter-causal-none", "scatter-delta-20m", "cdf-delay", "cdf-latency"}
    figures |= {"registries-causal-none", "registries-delta-20m", "buffer"}
    figures |= {"meetings-duration", "meetings-between", "hop-shares"}
    figures |= {"contact-times", "contacts-per-hour"}
    tables = {"trace", "parameters", "processing", "delay", "latency", "age", "shares"}
    tables |= {"buffers", "ages", "orderings", "cost", "runs", "nodes", "messages", "hops"}
    files = {path.name for path in (report.parent / "figures").iterdir()}
    wanted = {f"{name}.csv" for name in figures | tables}
    assert files == wanted | {f"{name}.{kind}" for name in figures for kind in ("svg", "png")}


@pytest.mark.slow
def test_a_figure_and_its_csv_hold_the_same_rows(report):
    table = pd.read_csv(report.parent / "figures" / "scatter-delta-20m.csv")
    rows = pq.read_table(report.parent / "scatter.parquet").to_pandas()
    rows = rows[rows["run"] == "delta-20-0"][["delay_us", "latency_us"]]
    assert table.to_numpy().tolist() == rows.to_numpy().tolist()


@pytest.mark.slow
def test_the_page_refers_to_no_other_file(report):
    # The library inside has markup in its strings; tests/browser sees what it really asks for.
    html = re.sub(r"<script>.*?</script>", "", report.read_text(), flags=re.DOTALL)
    assert re.findall(r'<(?:script|img|link|iframe)[^>]+(?:src|href)="(?!data:)', html) == []
    assert re.findall(r"url\(|@import", html) == []
    assert re.findall(r'href="(?!data:|#)', html) == []


@pytest.mark.slow
def test_every_file_beside_the_page_is_inside_of_it_as_well(report):
    html = report.read_text()
    saved = r'<a href="data:([^,"]*),([^"]*)" download="([^"]+)"'
    held = {
        name: b64decode(content) if kind.endswith("base64") else unquote_to_bytes(content)
        for kind, content, name in re.findall(saved, html)
    }
    pictures = re.findall(
        r'alt="[^"]*" src="data:image/svg\+xml;base64,([^"]*)".*?data-slug="([^"]*)"', html
    )
    held |= {f"{slug}.svg": b64decode(content) for content, slug in pictures}
    every = (report.parent / "figures").iterdir()
    # The page makes the PNG from the SVG when the reader asks for it.
    files = {path.name: path.read_bytes() for path in every if path.suffix != ".png"}
    assert sorted(held) == sorted(files)
    assert [name for name in files if held[name] != files[name]] == []


def test_the_verdict_comes_first(tmp_path):
    page = build(tmp_path)
    assert page.verdict == "valid"
    assert page.headline == "All 460,365 deliveries of 6 runs kept causal order."
    assert [(tile.value, tile.label) for tile in page.tiles] == [
        ("6", "runs"),
        ("460,365", "deliveries checked"),
        ("0", "violations"),
        ("12 of 12", "figures within tolerance"),
        ("10 of 12", "orders as published"),
    ]


def test_a_violation_is_a_headline(tmp_path):
    page = build(tmp_path, verdict="invalid", violations=2)
    assert page.verdict == "invalid"
    assert page.headline == "12 of 460,365 deliveries broke causal order."


def test_a_page_of_unknown_runs_is_unknown(tmp_path):
    assert build(tmp_path, verdict="unknown").verdict == "unknown"


def test_runs_without_a_promised_order_do_not_change_the_verdict(tmp_path):
    folder = write_datasets(tmp_path, protocols=("none",))
    runs = pq.read_table(folder / "runs.parquet").to_pandas()
    runs.loc[runs["protocol"] == "none", ["verdict", "violations"]] = ["invalid", 31]
    runs["lifetime_us"] = runs["lifetime_us"].astype("Int64")
    runs.to_parquet(folder / "runs.parquet")
    page = build_opportunistic_page(folder)
    assert page.verdict == "valid"
    assert "up to 31 would have come out of order" in page.summary
    assert page.headline == "All 460,365 deliveries of 6 runs kept causal order."
    assert [(tile.value, tile.label) for tile in page.tiles[:4]] == [
        ("6", "runs that promise order"),
        ("460,365", "deliveries checked"),
        ("0", "violations"),
        ("6", "without order, to compare"),
    ]


def test_the_headline_of_runs_without_a_promised_order_claims_no_order(tmp_path):
    folder = write_datasets(tmp_path, protocols=("none",))
    runs = pq.read_table(folder / "runs.parquet").to_pandas()
    runs = runs[runs["protocol"] == "none"].assign(violations=31)
    runs["lifetime_us"] = runs["lifetime_us"].astype("Int64")
    runs.to_parquet(folder / "runs.parquet")
    page = build_opportunistic_page(folder)
    assert page.verdict == "valid"
    assert page.headline.startswith("No run promised an order: ")
    assert "kept causal order" not in page.headline
    assert page.tiles[2] == Tile("186", "out of order, none promised")


def test_late_deliveries_that_a_promise_with_probability_allows_are_shown(tmp_path):
    folder = write_datasets(tmp_path, protocols=("plausible-8",))
    runs = pq.read_table(folder / "runs.parquet").to_pandas()
    runs.loc[runs["protocol"] == "plausible-8", "violations"] = 31
    runs["lifetime_us"] = runs["lifetime_us"].astype("Int64")
    runs.to_parquet(folder / "runs.parquet")
    page = build_opportunistic_page(folder)
    assert page.verdict == "valid"
    assert page.headline.endswith("186 came late where order was promised with probability only.")
    assert [(tile.value, tile.label) for tile in page.tiles[2:4]] == [
        ("0", "violations"),
        ("186", "late, order promised with probability"),
    ]


def test_an_unknown_promise_is_refused(tmp_path):
    folder = write_datasets(tmp_path)
    runs = pq.read_table(folder / "runs.parquet").to_pandas().assign(promise="casual")
    runs.to_parquet(folder / "runs.parquet")
    with pytest.raises(InputError, match="no such promise: `casual`"):
        build_opportunistic_page(folder)


def test_the_page_shows_the_settings_of_the_runs(tmp_path):
    words = texts(build(tmp_path, seeds=2))
    for wanted in (
        f"Transfer model: {TRANSFER}.",
        "merged overlap 12",
        "2 seeds",
        "network.range_m",
        "protocols.2.lifetimes \n20m, 10m",
        "Guidec",
        "Figure 5b: Delivery latency, cumulated",
        "The delivered registry had at most 40 entries; it only grew.",
        "The delivered registry had at most 40 entries and shrank 6 times.",
        "Node L01-3",
    ):
        assert wanted in words
    assert "self contact" not in words  # it did not occur


def test_a_number_that_differs_between_runs_is_shown_as_a_range(tmp_path):
    folder = write_datasets(tmp_path, seeds=2)
    runs = pq.read_table(folder / "runs.parquet").to_pandas()
    runs.loc[runs["seed"] == 1, "contacts"] = 8000
    runs["lifetime_us"] = runs["lifetime_us"].astype("Int64")
    runs.to_parquet(folder / "runs.parquet")
    words = build_opportunistic_page(folder).summary
    assert words.startswith("12 nodes met 8,000 to 8,731 times and broadcast 2,004 messages")


def test_protocols_without_waiting_are_not_listed_as_waiting(tmp_path):
    words = build(tmp_path, latency_us_avg=0.0).summary
    assert "never waited for its causes" in words
    assert "waited 0" not in words


def test_another_scenario_gets_the_same_page_without_published_figures(tmp_path):
    page = build(tmp_path, paper=None)
    words = texts(page)
    assert [word for word in ("Published", "Guidec", "Table I", "Figure 3") if word in words] == []
    assert {section.title for section in page.sections} >= {"Messages", "Delays", "Distributions"}
    assert not any(cell.mark for s in page.sections for t in s.tables for r in t.rows for cell in r)


def test_the_pedestrians_have_their_own_tables_and_window(tmp_path):
    page = build(tmp_path, paper="opp-ostermalm")
    words = texts(page)
    assert "Table V: What became of the messages" in words
    assert "Figure 11b: Registries, delta, 20'" in words
    assert "The first 2 of 12 are shown." in words  # 13 minutes apart, of 20 shown


@pytest.mark.parametrize("missing", DATASETS)
def test_figures_of_missing_datasets_are_left_out(missing, tmp_path):
    folder = write_datasets(tmp_path)
    (folder / f"{missing}.parquet").unlink()
    figures = {
        f.slug for section in build_opportunistic_page(folder).sections for f in section.figures
    }
    gone = {
        "quantiles": {"cdf-delay", "cdf-latency"},
        "scatter": {"scatter-causal-none", "scatter-delta-20m"},
        "presence": {"presence"},
        "gauges": {"registries-causal-none", "registries-delta-20m", "buffer"},
        "survival": {"contact-times"},
        "hours": {"contacts-per-hour"},
        "meetings": {"meetings-duration", "meetings-between"},
        "hops": {"hop-shares"},
        "trace": set(),
    }[missing]
    assert not figures & gone
    assert len(figures) == 13 - len(gone)


def test_long_lines_are_thinned_and_keep_their_peaks(tmp_path):
    folder = write_datasets(tmp_path)
    gauges = pq.read_table(folder / "gauges.parquet").to_pandas()
    one = gauges[(gauges["run"] == "causal-none-0") & (gauges["node"] == 3)]
    many = pd.concat([one.assign(t_us=one["t_us"] + i) for i in range(40)])
    many = many.sort_values("t_us").reset_index(drop=True)
    many.loc[many[many["gauge"] == "pending"].index[777], "value"] = 99
    many.to_parquet(folder / "gauges.parquet")
    (figure,) = figures_of(build_opportunistic_page(folder), "registries-")
    pending = figure.data[figure.data["registry"] == "pending"]
    assert len(pending) <= 1002
    assert pending["value"].max() == 99


def test_distributions_are_whole_where_no_paper_cuts_them(tmp_path):
    for figure in figures_of(build(tmp_path, paper=None), "cdf-"):
        end_us = figure.chart.to_dict()["layer"][0]["encoding"]["x"]["scale"]["domain"][1]
        assert end_us == figure.data["value_us"].max()
        assert "The axis ends" not in figure.caption


def test_an_axis_cut_as_in_the_paper_is_stated_in_the_caption(tmp_path):
    folder = write_datasets(tmp_path)
    quantiles = pq.read_table(folder / "quantiles.parquet").to_pandas()
    longest = (quantiles["metric"] == "latency") & (quantiles["share"] == 1)
    quantiles.loc[longest, "value_us"] = 3600 * 1_000_000
    quantiles.to_parquet(folder / "quantiles.parquet")
    (latency,) = figures_of(build_opportunistic_page(folder), "cdf-latency")
    assert "The axis ends at" in latency.caption
    assert "; the longest latency is 1h. " in latency.caption


def test_contact_and_inter_contact_times_are_shown_in_full(tmp_path):
    duration, between = figures_of(build(tmp_path), "meetings-")
    assert duration.title == "Contact duration, cumulated"
    assert 'Half of them take at most 50".' in duration.caption
    assert between.title == "Inter-contact time, cumulated"
    assert between.caption.endswith('The axis is logarithmic from 0.1" on.')
    scale = between.chart.to_dict()["encoding"]["x"]["scale"]
    assert (scale["type"], scale["domain"][1]) == ("symlog", 24 * 3600 * 1_000_000)


def test_the_delay_levels_off_at_the_reach(tmp_path):
    page = build_opportunistic_page(write_datasets(tmp_path, reach=0.75))
    (delay,), (latency,) = figures_of(page, "cdf-delay"), figures_of(page, "cdf-latency")
    ends = delay.chart.to_dict()["layer"][0]["encoding"]["x"]["scale"]["domain"]
    for name in ("causal, no lifetime", "delta, 120'"):
        line = delay.data[(delay.data["lifetime"] == name) & (delay.data["origin"] == "ours")]
        assert line["share"].max() == pytest.approx(0.75)
        assert line["share"].is_monotonic_increasing
        assert line["value_us"].iloc[-1] == ends[1]
        said = delay.data[(delay.data["lifetime"] == name) & (delay.data["origin"] != "ours")]
        assert (said["share"] <= 0.75).all()
    assert "levels off at the reach" in delay.caption
    assert latency.data["share"].max() == 1


def test_the_parts_of_the_age_are_in_one_unit_and_add_up(tmp_path):
    ages = table_of(build(tmp_path), "ages")
    assert ages.head[1:] == ("Delay (min)", "+ Latency (min)", "= Age (min)")
    for row in ages.rows:
        delay, latency, age = (float(cell.text) for cell in row[1:])
        assert delay + latency == pytest.approx(age, abs=0.11)


def test_a_figure_that_an_engine_does_not_count_is_a_dash(tmp_path):
    folder = write_datasets(tmp_path, evictions=None, frames_aborted=None)
    row = table_of(build_opportunistic_page(folder), "buffers").rows[0]
    assert [cell.text for cell in row] == ["causal, no lifetime", "0", "–", "–", "0", "4", "–"]


def test_the_buffer_of_a_node_has_a_line_for_each_protocol_and_lifetime(tmp_path):
    (figure,) = figures_of(build(tmp_path), "buffer")
    assert list(figure.data["registry"].unique())[:2] == ["causal, no lifetime", "delta, 120'"]
    assert figure.caption == "Messages that node L01-3 keeps to pass them on: at most 1,770."


def test_every_node_and_message_of_one_run_is_in_a_table(tmp_path):
    page = build(tmp_path)
    nodes, messages = table_of(page, "nodes"), table_of(page, "messages")
    assert [cell.text for cell in nodes.rows[1]] == ["L01-1", "9.00", "11", "0", "899", *"––––"]
    # The unit of the average over all runs, as in the tables of delays and latencies.
    assert nodes.head[-4:-2] == ("Delay, average (min)", "Delay of delivered (min)")
    assert nodes.head[-2:] == ("Latency, average (s)", "Age, average (min)")
    assert messages.rows[13][0].text == "L01-1"
    assert (len(messages.rows), len(messages.data)) == (200, 300)
    assert messages.notes == ("The first 200 of 300; the CSV has all.",)


NASTY = "</script><script>alert(1)</script>"


def small_page(title):
    table = pd.DataFrame({"delay_us": [1, 2], "latency_us": [3, 4], "name": [title, title]})
    return Page(
        title=title,
        subtitle=title,
        verdict="valid",
        headline=title,
        summary=title,
        tiles=(),
        sections=(
            Section(
                title,
                (title,),
                (Table("t", title, (title,), ((Cell(title, title, title),),), table, (title,)),),
                (Figure("f", title, title, scatter_chart(table), table),),
            ),
        ),
        footer=title,
    )


@pytest.mark.slow
def test_names_from_a_trace_stay_text():
    html = render_page(small_page(NASTY), {"f": "<svg/>"})
    # Counted, because pytest takes minutes to show where one long text is not in another.
    assert html.count("<script>alert") == 0
    assert html.count("&lt;/script&gt;&lt;script&gt;alert(1)") >= 10


@pytest.mark.slow
def test_a_number_and_its_unit_stay_on_one_line():
    html = render_page(small_page("99.99 % of 20 pt in 4 ms, 5 seconds, 6 %x"), {"f": "<svg/>"})
    assert html.count("99.99\u00a0% of 20\u00a0pt in 4\u00a0ms, 5 seconds, 6 %x") >= 10


@pytest.mark.slow
def test_a_page_of_another_package_can_be_written(tmp_path):
    path = write_page(small_page("Six lines in a grid"), tmp_path)
    html = path.read_text()
    assert html.count('<section id="six-lines-in-a-grid">') == 1
    assert (tmp_path / "figures" / "t.csv").read_text() == csv_text(
        small_page("Six lines in a grid").sections[0].tables[0].data
    )
    assert (tmp_path / "figures" / "f.png").read_bytes().startswith(b"\x89PNG")


def test_hops_have_their_average_over_the_seeds_and_their_distribution(tmp_path):
    folder = write_datasets(tmp_path, seeds=2)
    hops = pq.read_table(folder / "hops.parquet").to_pandas()
    second = hops["run"].unique()[1]
    hops = hops[(hops["run"] != second) | (hops["hops"] == 1)]  # all from the origin itself
    hops.to_parquet(folder / "hops.parquet")
    page = build_opportunistic_page(folder)
    section = next(section for section in page.sections if section.title == "Hops")
    table = section.tables[0]
    average, most, direct = table.rows[0][1:]
    assert (average.text, average.spread) == ("1.33", "± 4.24")  # 5/3 and 1, 12.706 by Student
    assert (most.text, direct.text) == ("3", "66.67 %")  # 60 of 90
    assert table.rows[1][1].spread == ""  # both seeds agree
    first = section.figures[0].data
    first = first[first["line"] == first["line"].iloc[0]]
    assert first["share"].tolist() == pytest.approx([1 / 2, 1 / 3, 1 / 6])


def test_receptions_with_unknown_hops_are_counted_and_not_averaged(tmp_path):
    folder = write_datasets(tmp_path)
    hops = pq.read_table(folder / "hops.parquet").to_pandas()
    hops.loc[hops["hops"] == 3, "hops"] = -1
    hops.to_parquet(folder / "hops.parquet")
    section = next(s for s in build_opportunistic_page(folder).sections if s.title == "Hops")
    assert "Of 60 receptions it is not known." in section.prose
    assert section.tables[0].rows[0][1].text == "1.40"


def test_a_caption_counts_the_lines_that_a_figure_leaves_out(tmp_path):
    page = build_opportunistic_page(write_datasets(tmp_path, protocols=("vector", "none")))
    captions = {f.slug: f.caption for section in page.sections for f in section.figures}
    for slug, more in {"cdf-delay": 12, "buffer": 10, "hop-shares": 10}.items():  # of 18
        assert captions[slug].endswith(f" {more} more are not shown."), captions[slug]
    few = build_opportunistic_page(write_datasets(tmp_path))
    captions = [figure.caption for section in few.sections for figure in section.figures]
    assert not any("not shown" in caption for caption in captions)


def test_two_sections_with_one_name_are_refused(tmp_path):
    page = build_opportunistic_page(write_datasets(tmp_path))
    section = page.sections[0]
    with pytest.raises(AssertionError, match="the same name twice"):
        write_page(replace(page, sections=(section, section)), tmp_path)
    assert not (tmp_path / "figures").exists()
