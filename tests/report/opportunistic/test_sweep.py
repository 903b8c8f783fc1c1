"""The page of a sweep, and of seeds that are no replications."""

from __future__ import annotations

import json

import pytest
from tests.report.made_up import make_run, write_datasets, write_rows

from beforehand.commands.experiments.diff import compare
from beforehand.pipeline.worlds.contacts import COMPARED
from beforehand.report.opportunistic.page import build_opportunistic_page

POINTS = [
    (f"capacity {capacity}, period {period}", capacity, period)
    for capacity in (50, 100, 1000)
    for period in ("1m", "5m")
]


def swept(folder, seeds=3):
    """A sweep of two keys: the reach grows with the capacity, and differs between the seeds."""
    write_datasets(folder, paper="opp-buses")
    runs = [
        {
            **make_run("causal", None, seed),
            "run": f"{at}-{seed}",
            "point": point,
            "evictions": 9000 // capacity,
            "reach": 0.3 + 0.1 * at + 0.01 * seed,
        }
        for at, (point, capacity, _) in enumerate(POINTS)
        for seed in range(seeds)
    ]
    (folder / "runs.parquet").unlink()
    write_rows(folder, "runs", runs, as_folder=False)
    rows = []
    for point, capacity, period in POINTS:
        number = 60.0 * int(period[0])
        rows += [
            ("network.capacity", str(capacity), float(capacity), "", point),
            ("traffic.period", period, number, "s", point),
        ]
    names = ("key", "value", "number", "unit", "point")
    write_rows(
        folder, "points", [dict(zip(names, row, strict=True)) for row in rows], as_folder=False
    )
    return folder


def sections_of(page, title):
    return [section for section in page.sections if section.title.startswith(title)]


def set_drawn(folder, drawn):
    path = folder / "scenario.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "drawn": drawn}))


def test_a_sweep_has_a_figure_of_every_metric_that_changes_against_each_key(tmp_path):
    page = build_opportunistic_page(swept(tmp_path))
    by_capacity, by_period = sections_of(page, "Against")
    assert (by_capacity.title, by_period.title) == ("Against capacity", "Against period")
    reach = next(f for f in by_capacity.figures if f.slug == "sweep-network-capacity-reach")
    assert [f.slug for f in by_capacity.figures if "evictions" in f.slug]
    assert not [f.slug for f in by_capacity.figures if "-again" in f.slug]  # 0 everywhere
    lines = ["period 1m", "period 5m"]
    assert list(dict.fromkeys(reach.data["line"])) == lines
    first = reach.data[reach.data["line"] == lines[0]]
    assert first["number"].tolist() == [50, 100, 1000]
    assert first["mean"].tolist() == pytest.approx([31, 51, 71])
    margin = 4.303 * 1 / 3**0.5  # Student's t, three seeds with a deviation of one per cent
    assert (first["high"] - first["mean"]).tolist() == pytest.approx([margin] * 3)
    assert reach.chart.to_dict()["layer"][0]["encoding"]["x"]["scale"]["type"] == "log"
    period = next(f for f in by_period.figures if f.slug == "sweep-traffic-period-reach")
    assert period.chart.to_dict()["layer"][0]["encoding"]["x"]["title"] == "period (s)"


def test_the_tables_of_a_sweep_have_a_row_for_each_point_in_its_order(tmp_path):
    page = build_opportunistic_page(swept(tmp_path))
    (table,) = sections_of(page, "Messages")[0].tables
    names = [row[0].text for row in table.rows]
    assert names == [f"causal, no lifetime, {point}" for point, *_ in POINTS]
    assert set(table.data["point"]) == {point for point, *_ in POINTS}
    assert page.sections  # a sweep is not compared with the single runs of a paper
    assert not [tile for tile in page.tiles if "published" in tile.label]


@pytest.mark.parametrize(
    ("drawn", "has_intervals", "words"),
    [
        ([], False, "They are no replications, so there are no confidence intervals."),
        (
            ["traffic"],
            True,
            "the same mobility, from a file; they draw traffic anew.",
        ),
        (["mobility", "traffic"], True, "95 % confidence interval"),
    ],
)
def test_an_interval_was_printed_where_the_seeds_change_nothing(
    tmp_path, drawn, has_intervals, words
):
    folder = swept(tmp_path)
    set_drawn(folder, drawn)
    page = build_opportunistic_page(folder)
    prose = " ".join(text for section in page.sections for text in section.prose)
    assert words in prose
    cells = [
        cell
        for section in page.sections
        for table in section.tables
        for row in table.rows
        for cell in row
    ]
    assert any(cell.spread for cell in cells) == has_intervals
    notes = [n for s in page.sections for t in s.tables for n in t.notes if "interval" in n]
    assert bool(notes) == has_intervals
    reach = sections_of(page, "Against")[0].figures[0].data
    assert (reach["high"] > reach["mean"]).all() == has_intervals
    data = sections_of(page, "Messages")[0].tables[0].data
    assert data["ours_ci95"].notna().any() == has_intervals


def test_a_comparison_keeps_the_points_apart_and_has_no_interval_without_replications(tmp_path):
    runs = [
        {**make_run("causal", None, seed), "point": point, "reach": 0.5 + 0.1 * seed}
        for point in ("capacity 5", "capacity 9")
        for seed in range(2)
    ]
    found = compare(COMPARED, runs, runs, replicated=(True, False))
    reach = [row for row in found if row.figure == "reach"]
    assert [row.group["point"] for row in reach] == ["capacity 5", "capacity 9"]
    assert all(row.first.half and row.second.half is None for row in reach)
