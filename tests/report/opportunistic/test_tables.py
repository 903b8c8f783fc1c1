"""The cells of the tables: measured value, published value, difference and reason."""

import pytest
from tests.report.made_up import HOUR_US, MINUTE_US, make_run, make_trace

from beforehand.papers.opportunistic import read_paper
from beforehand.report.content import Cell
from beforehand.report.opportunistic.compare import ComparedShare, compare, rank
from beforehand.report.opportunistic.costs import cost_table, run_table
from beforehand.report.opportunistic.measured import causal_by_lifetime, group_runs
from beforehand.report.opportunistic.tables import (
    UNEXPLAINED,
    by_place,
    delay_tables,
    ordering_table,
    processing_table,
    share_table,
    trace_table,
)

PAPER = read_paper("opp-buses")


def make_groups(*changed, extra=()):
    rows = [
        make_run("causal" if minutes is None else "delta", minutes, 0) for minutes in (None, 20)
    ]
    for place, column, value in changed:
        rows[place][column] = value
    return group_runs([*rows, *extra])


def processing(groups):
    claims = by_place(compare(PAPER, causal_by_lifetime(groups)))
    return processing_table(groups, claims, "II")


def test_a_cell_has_both_figures_the_difference_and_a_mark():
    table = processing(make_groups())
    assert table.title == "Table II: What became of the messages"
    assert table.rows[0][:3] == (
        Cell("causal, no lifetime"),
        Cell("2,004", "2,004", "±0"),
        Cell("104,120", "106,580", "−2.3 %", "met"),
    )
    assert table.rows[1][5] == Cell("99.99 %", "99.99 %", "±0", "met")
    assert table.notes == ()


def test_a_value_outside_its_tolerance_has_its_reason():
    table = processing(make_groups((1, "receptions", 20_000)))
    assert table.rows[1][2] == Cell("20,000", "50,365", "−60.3 %", "missed")
    (note,) = table.notes
    assert note.startswith("Received, outside ±25 %: 20' −60.3 %. ")
    assert note.endswith(PAPER.reasons["receptions"])


def test_a_reason_is_given_once_for_all_its_lifetimes():
    (note,) = processing(make_groups((0, "receptions", 9), (1, "receptions", 9))).notes
    assert note.startswith("Received, outside ±25 %: none −100.0 %, 20' −100.0 %. ")


def test_a_deviation_without_a_known_reason_is_marked_unexplained():
    (note,) = processing(make_groups((0, "delivery_ratio", 0.9))).notes
    assert note.endswith(UNEXPLAINED)


def test_nothing_expires_without_a_lifetime():
    assert [cell.text for cell in processing(make_groups()).rows[0][6:]] == ["–", "–"]


def test_other_protocols_stand_in_the_table_but_are_not_compared():
    groups = make_groups(extra=[make_run("vector", None, 0), make_run("none", None, 0)])
    labels = [row[0].text for row in processing(groups).rows]
    assert labels == [
        *("causal, no lifetime", "no order, no lifetime", "vector, no lifetime", "delta, 20'")
    ]
    assert processing(groups).rows[1][2] == Cell("104,120")


def test_the_data_of_a_table_has_measured_and_published_numbers():
    groups = make_groups(extra=[make_run("delta", 20, 1)])
    data = processing(groups).data.set_index(["protocol", "quantity"])
    row = data.loc[("delta", "receptions")]
    assert (row["ours"], row["ours_min"], row["ours_max"], row["seeds"]) == (
        47_753,
        47_703,
        47_803,
        2,
    )
    assert row["published"] == 50_365
    assert row["difference"] == 47_753 - 50_365
    assert bool(row["is_met"])


def test_delays_are_three_tables_of_four_columns():
    groups = make_groups()
    claims = by_place(compare(PAPER, causal_by_lifetime(groups)))
    delay, latency, age = delay_tables(groups, claims, "III")
    assert delay.head == (
        *("Protocol, lifetime", "Min (ms)", "Max (min)", "Avg (min)", "Stdev (min)"),
    )
    assert delay.rows[0][3] == Cell("44.9", "43.8", "+2.4 %")
    assert latency.title == "Table III: Delivery latency"
    assert age.slug == "age"


@pytest.mark.parametrize("paper", [PAPER, None])
def test_a_trace_stands_beside_the_published_one(paper):
    table = trace_table({"span": 14 * HOUR_US, **make_trace()}, paper)
    assert len(table.rows) == 12
    assert [cell.text for cell in table.rows[7][:2]] == ["Contacts", "8,731"]
    if paper:
        assert table.head == ("", "Ours", "Published", "Difference")
        assert [cell.text for cell in table.rows[7][2:]] == ["8,892", "−1.8 %"]
    else:
        assert table.head == ("", "Value")
        assert list(table.data) == ["quantity", "value"]


def test_an_order_that_was_not_kept_is_shown_with_its_reason():
    groups = causal_by_lifetime(make_groups((1, "latency_us_max", 9e12)))
    table = ordering_table(rank(PAPER, compare(PAPER, groups)))
    rows = {row[0].text: row[1] for row in table.rows}
    assert rows["Received"] == Cell("none > 20'", mark="met")
    assert rows["Delivery latency, longest"] == Cell("20' > none", "none > 20'", mark="missed")
    assert table.notes == (f"Delivery latency, longest: {PAPER.reasons['order/latency_us_max']}",)


def test_tables_of_shares_and_of_costs_have_their_cells():
    (quantile,) = (said for said in PAPER.quantiles if said.lifetime_us == 20 * MINUTE_US)
    shares = share_table([ComparedShare(quantile, 0.9821, 0.99)])
    texts = ["20'", 'Delivery latency below 1.2"', "98.2 %"]
    assert [cell.text for cell in shares.rows[0]] == texts
    assert shares.rows[0][2].difference == "−0.79 pt"
    cost = cost_table(make_groups())
    assert [cell.text for cell in cost.rows[0][:5]] == [
        *("causal, no lifetime", "1", "312,360", "2.94", "42.9")
    ]
    assert cost.head[2:6] == (
        *("Transmissions", "Transmissions per delivery", "Sent (MB)", "Sent per delivery (B)"),
    )


def test_a_mean_over_seeds_has_its_confidence_interval():
    groups = make_groups(extra=[make_run("delta", 20, 1)])
    table = processing(groups)
    assert [row[2].spread for row in table.rows] == ["", "± 640"]  # 12.706 × 50, by Student's t
    assert table.notes[-1].startswith("Means over 2 seeds, ± half of their 95 % confidence")
    data = table.data.set_index(["protocol", "quantity"])["ours_ci95"]
    assert data["delta", "receptions"] == pytest.approx(12.706 * 50)
    assert data.isna()["causal", "receptions"]


def test_every_run_has_its_reach_and_its_cost_per_delivery():
    table = run_table(make_groups((1, "deliveries", 0)))
    first, second = (dict(zip(table.head, row, strict=True)) for row in table.rows)
    assert first["Protocol, lifetime"].text == "causal, no lifetime"
    assert first["Reach"].text == "100.00 %"
    assert first["Transmissions per delivery"].text == "2.94"
    assert first["Sent per delivery (B)"].text == "404"
    assert second["Sent per delivery (B)"].text == "–"  # for nothing there is no price
