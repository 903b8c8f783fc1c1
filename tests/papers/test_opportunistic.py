"""The published figures were typed in by hand: they must be consistent with each other."""

import pytest

from beforehand.errors import InputError
from beforehand.papers.opportunistic import read_paper
from beforehand.report.opportunistic.tables import TRACE_QUANTITIES

PAPERS = ["opp-buses", "opp-ostermalm"]
SECOND = 1_000_000


@pytest.mark.parametrize("key", PAPERS)
def test_the_published_ratios_follow_from_the_published_counts(key):
    for row in read_paper(key).runs.values():
        handed = row["broadcasts"] + row["receptions"]
        assert row["delivery_ratio"] == pytest.approx(row["deliveries"] / handed, abs=0.51e-4)
        if "expired" in row:
            ratio = row["expired"] / row["receptions"]
            assert row["expiry_ratio"] == pytest.approx(ratio, abs=0.6e-4)


@pytest.mark.parametrize("key", PAPERS)
def test_the_published_age_is_the_sum_of_delay_and_latency(key):
    for row in read_paper(key).runs.values():
        total = row["delay_us_avg"] + row["latency_us_avg"]
        # Delays count every reception, ages only deliveries: seconds apart, not more.
        assert row["age_us_avg"] == pytest.approx(total, abs=2 * SECOND)


@pytest.mark.parametrize("key", PAPERS)
def test_no_published_message_outlives_its_lifetime(key):
    for lifetime_us, row in read_paper(key).runs.items():
        for metric in ("delay", "latency", "age"):
            low, high = row[f"{metric}_us_min"], row[f"{metric}_us_max"]
            assert low <= row[f"{metric}_us_avg"] <= high
            if lifetime_us is not None:
                assert high <= lifetime_us


@pytest.mark.parametrize("key", PAPERS)
def test_every_row_of_the_tables_is_there(key):
    paper = read_paper(key)
    assert paper.trace.keys() == TRACE_QUANTITIES.keys()
    assert len(paper.runs) == {"opp-buses": 6, "opp-ostermalm": 4}[key]
    for lifetime_us, row in paper.runs.items():
        assert len(row) == 12 + (6 if lifetime_us is not None else 4)
    assert set(paper.spotlight_us) <= paper.runs.keys()
    assert {said.lifetime_us for said in paper.quantiles} <= paper.runs.keys()


def test_single_figures_as_printed():
    buses, walkers = read_paper("opp-buses"), read_paper("opp-ostermalm")
    assert buses.runs[None]["receptions"] == 106_580
    assert buses.runs[None]["delay_us_avg"] == (43 * 60 + 50) * SECOND
    assert buses.trace["contacts"] == 8892
    assert walkers.runs[1200 * SECOND]["delivery_ratio"] == 0.9519
    assert walkers.trace["duration_avg"] == 45 * SECOND
    assert walkers.claim("delivery_ratio").points_off == 3


def test_an_unknown_paper_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match="no published figures for `opp-trams`") as caught:
        read_paper("opp-trams")
    assert "`opp-buses`" in caught.value.hint
    with pytest.raises(InputError):
        read_paper("source")  # a key of the file, but not of an experiment


def test_the_most_exact_reason_is_given():
    paper = read_paper("opp-buses")
    assert paper.reason("receptions/20'") == paper.reasons["receptions"]
    assert paper.reason("order/latency_us_max") == paper.reasons["order/latency_us_max"]
    assert paper.reason("order/receptions") == ""
    assert paper.reason("deliveries/20'") == ""
