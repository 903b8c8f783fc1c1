"""The page of the observer: the numbers of each line, the judgements and the texts."""

import json

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from beforehand.errors import InputError
from beforehand.lab import write_report
from beforehand.report.observer.figures import (
    GRAPHS,
    PARTS,
    observer_panels,
    panel_table,
    violations_chart,
)
from beforehand.report.observer.page import build_observer_page, show_expected

USUAL = {"processes": 10, "epsilon": 10, "delta": 10, "rate": 0.1, "law": "half", "seed": 1}
RESULT = {"received": 90, "pairs": 500, "inverted": 0, "wait_share_max": 0.9, "messages": 100}
BY_NUMBER = {graph.number: graph for graph in GRAPHS}


def measured(percent, observer="cbd", c=100, reading="all/sender", **changes):
    row = {"reading": reading, "observer": observer, "wait_percent": c}
    return USUAL | RESULT | row | {"violations_percent": percent} | changes


def claimed(claim, verdict, reading="all/sender", **changes):
    row = {"claim": claim, "figure": "2", "text": f"It is {claim}.", "note": "", "reading": reading}
    return row | {"verdict": verdict, "expected": "between 0 to 80", "measured": "3 to 3"} | changes


MEASURES = [measured(0.0), measured(0.0, "dapw"), measured(3.0, c=80)]
CLAIMS = [claimed("perfect", "held")]


def save(folder, measures=MEASURES, claims=CLAIMS, **about):
    for name, rows in (("measures", measures), ("claims", claims)):
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet")
    scenario = {"name": "toy", "world": "drift", "versions": {"beforehand": "9"}} | about
    (folder / "scenario.json").write_text(json.dumps(scenario))
    return folder


def test_a_line_is_the_mean_over_the_seeds_with_least_and_most():
    rows = [measured(p, c=40, epsilon=5, seed=s) for s, p in enumerate((1.0, 2.0, 6.0))]
    table = panel_table(BY_NUMBER[2], pd.DataFrame(rows), "half", "cbd")
    assert table.to_dict("records") == [
        {
            "reading": "to all others",
            "line": "ε = 5",
            "c": 40,
            "mean": 3.0,
            "min": 1.0,
            "max": 6.0,
            "ci95": pytest.approx(6.573, abs=1e-3),
        }
    ]


@pytest.mark.parametrize(
    "other",
    [{"law": "quarter"}, {"observer": "dapw"}, {"delta": 5}, {"processes": 50}, {"rate": 0.5}],
)
def test_runs_with_other_fixed_parameters_are_not_in_the_lines_of_a_figure(other):
    rows = [measured(1.0), measured(50.0) | other]
    table = panel_table(BY_NUMBER[2], pd.DataFrame(rows), "half", "cbd")
    assert table["mean"].tolist() == [1.0]


def test_lines_are_ordered_by_value_and_readings_by_run():
    rows = [
        measured(1.0, reading=reading, rate=rate)
        for reading in ("one/sender", "all/sender")
        for rate in (0.5, 0.01, 0.1)
    ]
    table = panel_table(BY_NUMBER[4], pd.DataFrame(rows), "half", "cbd")
    assert table["line"].tolist() == ["rate = 0.01", "rate = 0.1", "rate = 0.5"] * 2
    assert list(dict.fromkeys(table["reading"])) == ["to one other", "to all others"]


@pytest.mark.parametrize(("number", "processes"), [(6, 10), (7, 50)])
def test_partial_timestamps_are_lines_from_the_least_part_to_the_whole(number, processes):
    rows = [
        measured(n, observer, processes=n)
        for observer in (*reversed(PARTS), "dapw")
        for n in (10, 50)
    ]
    table = panel_table(BY_NUMBER[number], pd.DataFrame(rows), "half", "cbd")
    assert table["line"].tolist() == list(PARTS.values())
    assert set(table["mean"]) == {processes}


def test_panels_are_arranged_as_in_the_paper():
    frame = pd.DataFrame(
        [measured(1.0, o, law=law) for o in ("cbd", "dapw") for law in ("quarter", "half")]
    )
    titles = [figure.title for figure in observer_panels(BY_NUMBER[2], frame)]
    assert titles == [
        "Figure 2a: DAPW, delay N(δ/2, δ/4)",
        "Figure 2b: CBD, delay N(δ/2, δ/4)",
        "Figure 2c: DAPW, delay N(δ/4, δ/8)",
        "Figure 2d: CBD, delay N(δ/4, δ/8)",
    ]
    titles = [figure.title for figure in observer_panels(BY_NUMBER[6], frame)]
    assert titles == ["Figure 6a: CBD, delay N(δ/2, δ/4)", "Figure 6b: CBD, delay N(δ/4, δ/8)"]


@pytest.mark.parametrize(("readings", "is_asked"), [(["one/sender"], False), (["a", "b"], True)])
def test_a_chart_of_several_readings_has_a_selection(readings, is_asked):
    frame = pd.DataFrame([measured(1.0, reading=reading) for reading in readings])
    table = panel_table(BY_NUMBER[2], frame, "half", "cbd")
    params = violations_chart(table).to_dict()["params"]
    (reading,) = [param for param in params if param["name"] == "reading"]
    assert ("bind" in reading) == is_asked
    assert reading["value"] == table["reading"].iloc[0]


@pytest.mark.parametrize(
    ("observer", "c", "verdict"),
    [
        ("cbd", 100, "invalid"),
        ("dapw", 100, "invalid"),
        ("cbd", 80, "valid"),
        ("dpc1", 100, "valid"),
    ],
)
def test_the_verdict_is_on_the_full_wait_with_the_full_timestamp(tmp_path, observer, c, verdict):
    page = build_observer_page(
        save(tmp_path, [*MEASURES, measured(1.0, observer, c, inverted=1234)])
    )
    assert page.verdict == verdict
    exact = next(t for section in page.sections for t in section.tables if t.slug == "exact")
    assert exact.data["inverted"].tolist() == [1234 if verdict == "invalid" else 0]
    assert ("1,234 pairs" in page.headline) == (verdict == "invalid")


def test_every_claim_has_its_verdict_under_every_reading(tmp_path):
    claims = [
        claimed("high", "held", measured="3 to 3"),
        claimed("high", "not held", "one/sender", measured="1 to 2"),
        claimed("low", "unknown", note="Or so they say.", measured=""),
        claimed("low", "held", "one/sender", measured="+0 to +0 points"),
        claimed("flat", "held"),
    ]
    page = build_observer_page(save(tmp_path, claims=claims))
    table = page.sections[-1].tables[0]
    assert table.head == ("The paper says", "Figure", "to all others", "to one other")
    assert [[(cell.text, cell.mark) for cell in row[2:]] for row in table.rows] == [
        [("3", "met"), ("1 to 2", "missed")],
        [("unknown", ""), ("+0 points", "met")],
        [("3", "met"), ("unknown", "")],
    ]
    assert table.rows[0][0].published == "0 to 80"
    assert table.notes == ("It is low. Or so they say.",)
    held = {tile.label: tile.value for tile in page.tiles if "claims" in tile.label}
    assert held == {"claims held, to all others": "2 of 3", "claims held, to one other": "1 of 2"}


@pytest.mark.parametrize(
    ("expected", "shown"),
    [
        ("between 0 to 0", "exactly 0"),
        ("between 0 to 80", "0 to 80"),
        ("between 0 to 0.999", "0 to 0.999"),
        ("ratio 1 to inf", "ratio at least 1"),
        ("apart -2 to 2", "apart by −2 to 2"),
        ("rises along epsilon", "rises with ε"),
        ("falls along wait_percent", "falls with the wait"),
        ("falls along observer", "falls with each part"),
        ("rises along rate", "rises with the rate"),
    ],
)
def test_the_expected_value_of_a_claim_is_shown_in_words(expected, shown):
    assert show_expected(expected) == shown


def test_the_report_of_a_drift_folder_is_the_observer_page(tmp_path):
    page = write_report(save(tmp_path, title="Watched"))
    assert "Watched" in page.read_text()
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert {"claims.csv", "exact.csv", "figure-2a.svg", "figure-2b.png", "figure-6a.csv"} <= names
    assert "figure-2c.csv" not in names  # nothing was measured under that law


def test_a_folder_without_measures_or_of_another_world_is_refused(tmp_path):
    save(tmp_path)
    (tmp_path / "measures.parquet").unlink()
    with pytest.raises(InputError, match="no measures"):
        write_report(tmp_path)
    with pytest.raises(InputError, match="no such world: `moon`"):
        write_report(save(tmp_path, world="moon"))


def test_the_tiles_agree_with_the_headline(tmp_path):
    page = build_observer_page(save(tmp_path))
    tiles = {tile.label: tile for tile in page.tiles}
    assert page.headline.startswith(f"All {tiles['deliveries at the full wait'].value} deliveries")
    assert tiles["pairs in the wrong order there"].mark == "met"
    page = build_observer_page(save(tmp_path, [*MEASURES, measured(9.0, inverted=7)]))
    tiles = {tile.label: tile for tile in page.tiles}
    assert (page.verdict, page.headline[:7]) == ("invalid", "7 pairs")
    wrong = tiles["pairs in the wrong order there"]
    assert (wrong.value, wrong.mark) == ("7", "missed")


def test_without_a_full_wait_the_verdict_is_unknown(tmp_path):
    page = build_observer_page(save(tmp_path, [measured(3.0, c=80)]))
    assert page.verdict == "unknown"
    assert page.headline.startswith("No observer waited in full")
    assert {tile.label: tile.mark for tile in page.tiles}["pairs in the wrong order there"] == ""


def test_a_point_has_its_interval_and_a_lone_seed_none(tmp_path):
    rows = [measured(p, c=40, seed=s) for s, p in enumerate((1.0, 2.0))] + [measured(5.0, c=60)]
    table = panel_table(BY_NUMBER[2], pd.DataFrame(rows), "half", "cbd").set_index("c")
    assert table.loc[40, "ci95"] == pytest.approx(12.706 * 0.5)
    assert table.loc[60, "ci95"] != table.loc[60, "ci95"]
    drawn = violations_chart(table.reset_index()).to_dict()
    assert any(layer["mark"]["type"] == "rule" for layer in drawn["layer"])
