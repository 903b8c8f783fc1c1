from __future__ import annotations

import msgspec
import pytest

from beforehand.papers.claims import Claim, read_claims
from beforehand.papers.observer import PARAMETERS, Verdict, check_claims
from beforehand.protocols.observer.observer import cbd, dapw
from beforehand.sim.drift import Drift, Measure, measure
from beforehand.sim.drift_figures import figure_dials, figure_specs

BASE = Measure(
    processes=10,
    epsilon=10,
    delta=10,
    rate=0.1,
    law="half",
    fan_out=9,
    delay_clock="sender",
    messages=100,
    seed=1,
    observer="cbd",
    wait_percent=100,
    received=98,
    lost=2,
    backward=0,
    forward=0,
    violations_percent=0.0,
    pairs=0,
    inverted=0,
    pairs_percent=0.0,
    overtaken=0,
    wait_mean=20.0,
    wait_share_max=1.0,
    c_share_max=0.5,
    events_per_tick=3,
    kn_share_max=0.5,
    size_bytes=7,
)


def row(value: float, **changes: object) -> Measure:
    return msgspec.structs.replace(BASE, violations_percent=value, **changes)


def curve(values: list[float], **changes: object) -> list[Measure]:
    return [
        row(value, wait_percent=wait, **changes)
        for wait, value in zip((100, 80, 60, 40, 20, 0), values, strict=True)
    ]


CHOICE = {"select", "against", "along", "values", "by", "until"}


def claim(comparison: str, **fields: object) -> Claim:
    points = {"select": {}, **{name: fields.pop(name) for name in CHOICE & fields.keys()}}
    given = {"key": "x", "paper": "OBS", "figure": "0", "text": "t", "comparison": comparison}
    metric = {"metric": "violations_percent", "points": points}
    return msgspec.convert({**given, **metric, **fields}, Claim)


def verdict(rows: list[Measure], kind: str, **fields: object) -> tuple[str, str]:
    (found,) = check_claims(rows, [claim(kind, **fields)])
    return found.verdict, found.measured


@pytest.mark.parametrize(
    ("values", "expected"),
    [([0, 1, 2], "held"), ([0, 1, 2.1], "not held"), ([-0.1, 1, 2], "not held")],
)
def test_between_looks_at_every_point(values, expected):
    rows = [row(v, wait_percent=w) for v, w in zip(values, (80, 60, 40), strict=True)]
    assert verdict(rows, "between", low=0, high=2)[0] == expected


def test_a_point_is_the_mean_over_the_seeds():
    rows = [row(value, wait_percent=0, seed=seed) for seed, value in enumerate((1.0, 2.0, 6.0))]
    assert verdict(rows, "between", low=3, high=3) == ("held", "3 to 3")


@pytest.mark.parametrize(
    ("values", "rises", "falls"),
    [
        ([1, 2, 3], "held", "not held"),
        ([3, 2, 2], "not held", "held"),
        ([1, 3, 2], *["not held"] * 2),
    ],
)
def test_a_trend_holds_step_by_step(values, rises, falls):
    rows = [row(v, epsilon=e, wait_percent=0) for v, e in zip(values, (5, 10, 20), strict=True)]
    along = {"along": "epsilon", "values": [5, 10, 20]}
    assert verdict(rows, "rises", **along)[0] == rises
    assert verdict(rows, "falls", **along)[0] == falls


def test_a_trend_must_hold_for_each_law_by_itself():
    rows = [row(e, epsilon=e, wait_percent=0, law="half") for e in (5, 10)]
    rows += [row(100 - 10 * e, epsilon=e, wait_percent=0, law="quarter") for e in (5, 10)]
    found = verdict(rows, "rises", along="epsilon", values=[5, 10])
    assert found == ("not held", "half: 5, 10; quarter: 50, 0")


@pytest.mark.parametrize(("gap", "expected"), [(1.9, "held"), (2.1, "not held")])
def test_apart_compares_point_by_point(gap, expected):
    rows = curve([0, 1, 2, 3, 4, 5]) + curve([0, 1, 2, 3, 4, 5 + gap], observer="dapw")
    fields = {"select": {"observer": ["dapw"]}, "against": {"observer": ["cbd"]}}
    assert verdict(rows, "apart", low=-2, high=2, **fields)[0] == expected


@pytest.mark.parametrize(("share", "expected"), [(0.09, "held"), (0.11, "not held")])
def test_ratio_compares_whole_curves(share, expected):
    rows = curve([0, share, share, share, share, share])
    rows += curve([0, 1, 1, 1, 1, 1], observer="dapw")
    fields = {"select": {"observer": ["cbd"]}, "against": {"observer": ["dapw"]}}
    assert verdict(rows, "ratio", low=0, high=0.1, **fields) == (expected, f"half {share}")


def test_low_until_measures_the_share_of_the_maximum():
    rows = curve([0, 0, 1, 2, 8, 10])
    assert verdict(rows, "low_until", until=40, high=0.25)[0] == "held"
    assert verdict(rows, "low_until", until=20, high=0.25)[0] == "not held"


def test_a_claim_without_runs_is_unknown():
    for kind, fields in [
        ("between", {}),
        ("rises", {"along": "epsilon", "values": [5, 10]}),
        ("apart", {"against": {}}),
        ("ratio", {"against": {}}),
        ("low_until", {"until": 40}),
    ]:
        assert verdict([row(1, processes=7)], kind, **fields) == ("unknown", "")


def test_readings_are_judged_separately():
    rows = [row(1, wait_percent=0), row(5, wait_percent=0, delay_clock="steps")]
    rows += [row(9, wait_percent=0, fan_out=1)]
    found = check_claims(rows, [claim("between", low=0, high=2)])
    assert [(v.reading, v.verdict) for v in found] == [
        ("all/sender", "held"),
        ("all/steps", "not held"),
        ("one/sender", "not held"),
    ]


def test_the_shipped_claims_are_well_formed():
    claims = read_claims("observer")
    assert len({c.key for c in claims}) == len(claims) >= 30
    for c in claims:
        chosen = c.points
        assert {*chosen.select, *chosen.against, *chosen.by, chosen.along or "law"} <= {*PARAMETERS}
        assert c.metric in Measure.__struct_fields__
        is_trend = c.comparison in ("rises", "falls")
        assert (chosen.along != "") == is_trend == (chosen.values != [])


@pytest.fixture(scope="module")
def table() -> dict[str, Verdict]:
    """A smaller sweep than the published one, read as G2 says: to all, on the sender's clock."""
    specs = figure_specs([1, 2, 3], messages=4000)
    rows = [row for spec in specs for row in measure(spec, figure_dials(spec))]
    return {found.claim: found for found in check_claims(rows, read_claims("observer"))}


SURE = [
    "perfect",
    "wait-bound",
    "c-bound",
    "kn-bound",
    "size",
    "waiting-helps-cbd",
    "fig2-dapw-graph",
    "fig2-dapw-rises",
    "fig2-cbd-falls",
    "fig2-cbd-quick",
    "fig2-similar",
    "fig3-cbd-rises",
    "fig4-dapw-rises",
    "fig4-cbd-rises",
    "fig5-dapw-graph",
    "fig5-dapw-rises",
    "fig5-cbd-rises",
    "fig6-six",
    "fig6-continuum",
]


@pytest.mark.slow
def test_every_claim_is_measured(table):
    assert set(table) == {claim.key for claim in read_claims("observer")}
    assert [v.claim for v in table.values() if v.verdict == "unknown"] == []


@pytest.mark.slow
@pytest.mark.parametrize("id", SURE)
def test_a_claim_that_we_can_reproduce_holds(table, id):
    assert table[id].verdict == "held", table[id].measured


@pytest.mark.slow
def test_check_before_delivery_is_close_to_an_order_of_magnitude_better_at_large_drift():
    spec = Drift(epsilon=30, law="quarter", messages=4000)
    waits = (80, 60, 40, 20, 0)
    dials = [("dapw", dapw(wait)) for wait in waits] + [("cbd", cbd(wait)) for wait in waits]
    rows = list(measure(spec, dials))
    total = {
        name: sum(r.violations_percent for r in rows if r.observer == name) for name, _ in dials
    }
    assert total["cbd"] < total["dapw"] / 10
