"""Measurements for the claims of the papers, from tables small enough to compute by hand."""

import pandas as pd
import pytest

from beforehand.papers.claims import find_claim, read_claims
from beforehand.report.datasets import Scenario
from beforehand.report.mobile.claims import ANSWERS, Failure, Judged, claims_table, judge_all
from beforehand.report.mobile.data import CellResults

CLAIMS = read_claims("mobile")
SCENARIO = Scenario("s", "s", "mob", {}, {}, {}, "cells")
NAMES = {"run": "r", "seed": 1, "stations": 3, "hosts": 100, "rate_per_s": 20.0, "mac": "dcf"}


def cells(runs=(), flows=(), series=(), outages=()):
    base = {"is_search": False, "is_sustained": None, "broken": 0}
    tables = [[{**NAMES, **base, **run} for run in runs]]
    tables += [[{**NAMES, **row} for row in rows] for rows in (flows, series, outages)]
    columns = ["experiment", "system", "run", "hosts", "mac", "network", "kind", "t_s"]
    frames = [pd.DataFrame(rows) if rows else pd.DataFrame(columns=columns) for rows in tables]
    return CellResults(SCENARIO, *frames)


def found(system, hosts, rate, is_sustained=True, seed=1):
    return {
        "experiment": "throughput",
        "system": system,
        "hosts": hosts,
        "rate_per_s": rate,
        "is_search": True,
        "delay_us_avg": 1e6,
        "is_sustained": is_sustained,
        "seed": seed,
    }


def test_throughput_is_compared_at_the_same_number_of_hosts():
    some = cells([found("was", 100, 150), found("ck", 100, 15), found("was", 400, 120)])
    assert ANSWERS["throughput"](some) == 10
    assert ANSWERS["throughput_400"](some) is None


def test_a_rate_not_sustained_with_every_seed_gives_no_measurement():
    runs = [found("was", 100, 150), found("ck", 100, 15), found("ck", 100, 9, False, seed=2)]
    assert ANSWERS["throughput"](cells(runs)) is None


def test_the_throughput_loss_of_was_is_compared_with_that_of_ck():
    rates = {("was", 100): 200, ("was", 400): 100, ("ck", 100): 20, ("ck", 400): 5}
    some = cells([found(*key, rate) for key, rate in rates.items()])
    assert ANSWERS["throughput_falls"](some) == 2


def flow(system, hosts, frames, kind="ack", at_station=0, size=0, network="radio"):
    return {
        "experiment": "scale",
        "system": system,
        "hosts": hosts,
        "network": network,
        "kind": kind,
        "frames": frames,
        "at_station": at_station,
        "bytes": size,
    }


def test_frames_are_counted_by_network_and_purpose():
    some = cells(
        flows=[
            flow("was", 100, 10, at_station=8),
            flow("was", 100, 30, "repetition"),
            flow("was", 100, 7, network="wire"),
            flow("ck", 100, 200, at_station=160),
            flow("ck", 100, 60, "repetition"),
            flow("ck", 100, 70, network="wire"),
        ]
    )
    assert ANSWERS["acks"](some) == 20
    assert ANSWERS["repetitions"](some) == 2
    assert ANSWERS["radio_messages"](some) == 260 / 40
    assert ANSWERS["wire_messages"](some) == 10
    assert ANSWERS["radio_messages_growth"](some) is None


def test_bytes_of_a_system_without_whole_runs_are_unknown_and_not_zero():
    alone = {**flow("was_flood", 70, 10, size=9), "experiment": "static"}
    assert ANSWERS["static_bytes"](cells(flows=[alone])) is None


def moment(t_s, kept, experiment="failures", system="was"):
    rest = sorted(kept)[:-1]
    return {
        "experiment": experiment,
        "system": system,
        "t_s": float(t_s),
        "kept": kept,
        "kept_max": max(kept),
        "kept_rest_avg": sum(rest) / len(rest),
        "kept_rest_deviation": 1.0,
    }


def test_a_central_discard_keeps_as_much_as_the_fullest_station():
    series = [moment(10, (90, 90, 90), "cache"), moment(30, (20, 10, 10), "cache")]
    series += [moment(31, (60, 15, 15), "cache")]
    some = cells(series=series)
    assert ANSWERS["cache_less"](some) == 100 * (1 - 12.5 / 40)
    assert ANSWERS["cache_most"](some) == 4


OUTAGE = {"experiment": "failures", "system": "was", "station": 1, "from_s": 10.0, "to_s": 14.0}
SERIES = [
    *(moment(t, (4, 4, 4)) for t in (6, 8, 9)),
    *(moment(t, (4, 10 * (t - 9), 6)) for t in (10, 12, 14)),
    moment(15, (4, 30, 4)),
    moment(16, (4, 12, 4)),
]


def test_a_failure_fills_the_buffer_of_its_station_until_some_time_after_it():
    failure = Failure(pd.Series(OUTAGE), pd.DataFrame(SERIES))
    assert (failure.peak, failure.rest, failure.rest_before) == (50, 5, 4)
    assert failure.recovery_s == 2
    some = cells(series=SERIES, outages=[OUTAGE])
    assert ANSWERS["failure_ratio"](some) == 10
    assert ANSWERS["failure_others"](some) == 5 / 4


def test_a_short_failure_ends_when_the_buffer_of_the_station_is_back_to_normal():
    series = [moment(9, (20, 20)), moment(12, (20, 40)), moment(14, (20, 60)), moment(15, (20, 30))]
    assert Failure(pd.Series(OUTAGE), pd.DataFrame(series)).recovery_s == 1


def test_a_host_that_never_recovered_counts_in_the_average_unless_it_failed_last():
    late = {**OUTAGE, "from_s": 14.5, "to_s": 15.0}
    later = {**OUTAGE, "from_s": 16.0, "to_s": 16.0}
    assert ANSWERS["failure_recovery"](cells(series=SERIES, outages=[OUTAGE, later])) == 2
    some = cells(series=SERIES[:-1], outages=[OUTAGE, late, later])
    assert ANSWERS["failure_recovery"](some) is None


def test_claims_without_runs_are_not_shown_and_those_without_an_answer_are_unknown():
    some = cells([found("was", 100, 150)])
    judged = judge_all(some, CLAIMS)
    assert {claim.runs for claim, *_ in judged} == {("throughput",)}
    table = claims_table(judged)
    assert [row[-1].text for row in table.rows] == ["unknown"] * 4
    assert {row[2].mark for row in table.rows} == {""}


def test_a_collapsed_run_meets_no_claim_and_is_mentioned():
    run = {"experiment": "cache", "system": "was"}
    runs = [{**run, "run": "sound"}, {**run, "run": "collapsed", "seed": 2, "broken": 9}]
    calm = [moment(30, (20, 10, 10), "cache"), moment(31, (60, 15, 15), "cache")]
    burst = [moment(30, (900, 10, 10), "cache")]
    series = [{**row, "run": "sound"} for row in calm]
    series += [{**row, "run": "collapsed"} for row in burst]
    judged = {found.claim.key: found for found in judge_all(cells(runs, series=series), CLAIMS)}
    assert judged["cache_most"][1:] == (4, 1, 2)
    row = claims_table([judged["cache_most"]]).rows[0]
    assert [cell.text for cell in row[2:4]] == ["4 ×", "1 of 2"]
    only = judge_all(cells(runs[1:], series=series[-1:]), CLAIMS)
    assert {(found.ours, found.whole, found.runs) for found in only} == {(None, 0, 1)}


@pytest.mark.parametrize(
    ("ours", "verdict", "mark"), [(12.0, "held", "met"), (21.0, "not held", "missed")]
)
def test_a_claim_is_met_missed_or_unknown(ours, verdict, mark):
    claim = find_claim("mobile", "throughput")
    (row,) = claims_table([Judged(claim, ours, 3, 3)]).rows
    assert (row[2].mark, row[5].text) == (mark, verdict)
