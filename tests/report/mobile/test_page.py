"""The page of hosts and stations, from runs made up so that every figure is known."""

import json
import re

import pytest
from tests.report.made_up import write_rows

from beforehand.report.datasets import COLUMNS
from beforehand.report.mobile.page import build_mobile_page

RUN = {
    "run": "r",
    "reading": "",
    "experiment": "scale",
    "system": "was",
    "seed": 1,
    "stations": 3,
    "hosts": 9,
    "rate_per_s": 5.0,
    "mac": "dcf",
    "broadcasts": 10,
    "deliveries": 90,
    "violations": 0,
    "duplicates": 0,
    "missing": 0,
    "missing_at_returned": 0,
    "delay_us_avg": 2e6,
    "lost_percent": 1.0,
    "heard_lost_percent": 2.0,
    "kept_avg": 3.0,
    "early_avg": 0.5,
    "sent_per_delivery": 2.0,
    "handoffs": 4,
    "is_search": False,
    "is_sustained": None,
}
FLOW = {
    **{
        name: RUN[name]
        for name in ("run", "reading", "experiment", "system", "seed", "stations", "hosts")
    },
    "rate_per_s": 5.0,
    "mac": "dcf",
    "network": "radio",
    "kind": "data",
    "frames": 5,
    "control_bytes": 1,
    "payload_bytes": 1,
    "header_bytes": 1,
    "to_station": [1],
}


def page_of(folder, *runs):
    write_rows(folder, "cells_runs", [RUN | run for run in runs], as_folder=False)
    write_rows(folder, "cells_flows", [FLOW], as_folder=False)
    about = {"name": "toy", "world": "cells", "versions": {"beforehand": "9"}}
    (folder / "scenario.json").write_text(json.dumps(about))
    return build_mobile_page(folder)


def test_the_runs_made_up_here_have_the_columns_of_the_contract():
    assert set(RUN) == set(COLUMNS["cells_runs"])
    assert set(FLOW) == set(COLUMNS["cells_flows"])


@pytest.mark.parametrize(
    ("fault", "verdict", "headline"),
    [
        ("violations", "invalid", "7 of "),
        ("duplicates", "invalid", "7 of "),
        ("missing", "unknown", "7 are missing at the end"),
        ("missing_at_returned", "unknown", "7 are missing at the end"),
    ],
)
def test_the_tile_agrees_with_the_headline_for_every_fault(tmp_path, fault, verdict, headline):
    page = page_of(tmp_path, {fault: 7}, {"seed": 2})
    assert page.verdict == verdict
    assert headline in page.headline
    tiles = {tile.label: tile for tile in page.tiles}
    mark = "missed" if verdict == "invalid" else ""
    assert (tiles["wrong or missing"].value, tiles["wrong or missing"].mark) == ("7", mark)


def test_a_run_without_deliveries_is_unknown(tmp_path):
    page = page_of(tmp_path, {"deliveries": 0})
    assert page.verdict == "unknown"
    assert page.headline.startswith("Nothing was delivered")
    assert {tile.label: tile.mark for tile in page.tiles}["wrong or missing"] == ""


def test_a_figure_has_its_interval_over_the_seeds_and_a_lone_seed_none(tmp_path):
    alone = {"system": "ck", "kept_avg": 8.0, "lost_percent": None}
    page = page_of(tmp_path, {"kept_avg": 3.0}, {"kept_avg": 5.0, "seed": 2}, alone)
    (table,) = page.sections[0].tables
    kept = table.head.index("Kept")
    assert [(row[kept].text, row[kept].spread) for row in table.rows] == [
        ("4.00", "± 12.7"),  # 12.706 by Student's t, for two seeds that are 2 apart
        ("8.00", ""),
    ]
    assert table.rows[1][table.head.index("Lost (%)")].text == "–"
    assert table.data["kept_avg_ci95"].tolist()[0] == pytest.approx(12.706)
    assert table.data["kept_avg_ci95"].isna().tolist() == [False, True]


def test_a_column_has_one_unit(tmp_path):
    page = page_of(tmp_path, {"delay_us_avg": 72_000.0}, {"system": "ck", "delay_us_avg": 3e6})
    (table,) = page.sections[0].tables
    delay = table.head.index("Delay (s)")
    assert [row[delay].text for row in table.rows] == ["0.0720", "3.00"]
    assert not any("*" in text for text in page.sections[0].prose)


def test_claims_that_a_short_scenario_does_not_run_were_shown_as_unknown(tmp_path):
    page = page_of(tmp_path, {"experiment": "static", "system": "was_flood"})
    (tile,) = [tile for tile in page.tiles if "claims" in tile.label]
    held, known = map(int, tile.value.split(" of "))
    assert "unknown" not in tile.label
    section = next(section for section in page.sections if section.title == "Beside the papers")
    counts = section.tables[0].data["verdict"].value_counts()
    assert (held, known) == (counts.get("held", 0), len(section.tables[0].data))
    assert "unknown" not in counts
    assert re.match(r"\d+ more claims about these experiments need", section.prose[1])


def test_claims_about_runs_that_collapsed_are_neither_held_nor_missed(tmp_path):
    page = page_of(tmp_path, {"experiment": "static", "system": "was_flood", "missing": 3})
    section = next(section for section in page.sections if section.title == "Beside the papers")
    counts = section.tables[0].data["verdict"].value_counts()
    assert set(counts.index) == {"unknown"}


@pytest.mark.parametrize("macs", [("dcf",), ("dcf", "none")])
def test_the_section_on_other_macs_is_referred_to_only_if_present(tmp_path, macs):
    page = page_of(tmp_path, *({"experiment": "static", "mac": mac} for mac in macs))
    claims = next(section for section in page.sections if section.title == "Beside the papers")
    is_there = any(section.title == "The effect of the MAC" for section in page.sections)
    assert ("at the end of this page" in claims.prose[0]) == is_there == (len(macs) > 1)


@pytest.mark.parametrize("has_failures", [False, True])
def test_buffers_are_drawn_with_and_without_failures(tmp_path, has_failures):
    names = {
        name: RUN[name]
        for name in ("run", "reading", "seed", "stations", "hosts", "rate_per_s", "mac")
    }
    names |= {"experiment": "cache", "system": "was"}
    kept = {"kept": [3, 1], "kept_max": 3, "kept_avg": 2.0, "kept_rest_avg": 1.0}
    moment = {**names, **kept, "kept_rest_deviation": 0.5, "early_avg": 0.0}
    moment |= dict.fromkeys(("radio_frames", "radio_bytes", "received", "lost"), 1)
    write_rows(
        tmp_path, "cells_series", [{**moment, "t_s": t} for t in (1.0, 2.0)], as_folder=False
    )
    if has_failures:
        outage = {**names, "node": 4, "station": 0, "from_s": 1.0, "to_s": 1.5}
        write_rows(tmp_path, "cells_outages", [outage], as_folder=False)
    page = page_of(tmp_path, {"experiment": "cache"})
    (figure,) = next(s.figures for s in page.sections if s.title == "What stations keep")
    assert len(figure.data) == 3 * 2 + has_failures
    assert ("Shaded" in figure.caption) == has_failures
