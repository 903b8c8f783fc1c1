"""The search for the highest sustained rate: the rates that it tries, and its end."""

import msgspec
import pytest

from beforehand.sim.cells import search
from beforehand.sim.cells.measure import measure_cells
from beforehand.sim.cells.spec import SECOND_US, CellsSpec
from beforehand.sim.cells.world import run

SPEC = CellsSpec(
    stations=1, hosts=3, rate_per_s=4.0, duration_us=8 * SECOND_US, settle_us=2 * SECOND_US
)


@pytest.fixture
def limit(monkeypatch):
    """Return a system that sustains rates up to a limit, without running it."""
    limits = {"rate": 0.0}
    measure = measure_cells(SPEC, 1, run(SPEC, 1))
    monkeypatch.setattr(search, "run", lambda spec, _: spec)
    monkeypatch.setattr(
        search,
        "measure_cells",
        lambda spec, *_: msgspec.structs.replace(measure, rate_per_s=spec.rate_per_s),
    )
    monkeypatch.setattr(search, "is_sustained", lambda m: m.rate_per_s <= limits["rate"])
    return limits


@pytest.mark.parametrize("rate", [0.3, 3.9, 4.0, 17.0, 70.0])
def test_the_search_finds_a_rate_just_below_the_limit(limit, rate):
    limit["rate"] = rate
    found = search.find_sustained(SPEC, 1, rate_max=1000.0)
    assert found.is_sustained
    assert rate / search.PRECISION <= found.best.rate_per_s <= rate
    assert len(found.tried) < 16


def test_the_search_does_not_exceed_the_highest_rate(limit):
    limit["rate"] = 1e9
    found = search.find_sustained(SPEC, 1, rate_max=20.0)
    assert [tried.rate_per_s for tried in found.tried] == [4.0, 5.657, 8.0, 11.314, 16.0, 20.0]
    assert found.best.rate_per_s == 20.0


def test_a_system_that_sustains_nothing_ends_the_search(limit):
    found = search.find_sustained(SPEC, 1, rate_max=20.0)
    assert not limit["rate"]
    assert not found.is_sustained
    assert found.best.rate_per_s == min(tried.rate_per_s for tried in found.tried) < 0.2


def test_rates_with_missing_deliveries_or_growing_delays_are_not_sustained():
    measure = measure_cells(SPEC, 1, run(SPEC, 1))
    assert search.is_sustained(measure)
    change = msgspec.structs.replace
    assert not search.is_sustained(change(measure, missing=1))
    growing = change(measure, delay_us_thirds=(200_000.0, 300_000.0, 400_001.0))
    assert not search.is_sustained(growing)
    assert search.is_sustained(change(growing, delay_us_thirds=(200_000.0, 0.0, 400_000.0)))
    assert not search.is_sustained(change(measure, delay_us_thirds=(None, None, None)))
