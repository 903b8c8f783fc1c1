"""Positions: hexagons without holes, the nearest station, walks that stay inside."""

from itertools import pairwise
from math import dist, nextafter, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beforehand.protocols.mobile.station_tree import routes
from beforehand.sim.cells.layout import StationGrid, lattice, place_hosts, tree
from beforehand.sim.cells.spec import CellsSpec, Route, Walk
from beforehand.sim.cells.walk import Walker

RANGE_M = 120.0


def test_hexagons_cover_the_area_between_the_stations():
    at = lattice(37, RANGE_M)
    side_m = 2 * RANGE_M
    grid = [(x * 7.0, y * 7.0) for x in range(-70, 71) for y in range(-70, 71)]
    inside = [place for place in grid if dist(place, (0, 0)) < side_m * 1.5]
    stations = StationGrid(at, RANGE_M)
    assert all(stations.nearest(*place) is not None for place in inside)
    tighter = [StationGrid(at, 0.97 * RANGE_M).nearest(*place) for place in inside]
    assert None in tighter, "with less range there are holes: cells overlap no more than they must"


def test_seven_stations_are_one_in_the_centre_and_six_around():
    centre, *others = lattice(7, RANGE_M)
    assert centre == (0.0, 0.0)
    assert all(dist(centre, other) == pytest.approx(sqrt(3) * RANGE_M) for other in others)
    ring = [*others, others[0]]
    assert all(dist(a, b) == pytest.approx(sqrt(3) * RANGE_M) for a, b in pairwise(ring))


@pytest.mark.parametrize("stations", [1, 2, 7, 10, 20, 37])
def test_stations_form_a_tree_of_degree_at_most_three(stations):
    edges = tree(stations)
    assert all(len(routes(node, edges)) == stations - 1 for node in range(stations))
    ends = [end for edge in edges for end in edge]
    assert all(ends.count(node) <= 3 for node in range(stations))


def test_the_nearest_station_is_chosen_among_those_in_range():
    stations = StationGrid(((0.0, 0.0), (200.0, 0.0)), RANGE_M)
    assert stations.nearest(99.0, 0.0) == 0
    assert stations.nearest(101.0, 0.0) == 1
    assert stations.nearest(100.0, 0.0) == 0
    assert stations.nearest(320.0, 0.0) == 1
    assert stations.nearest(320.1, 0.0) is None


COORDINATES = st.one_of(
    st.floats(-500.0, 500.0),
    st.integers(-4, 4).map(lambda steps: steps * RANGE_M),
    st.integers(-4, 4).map(lambda steps: nextafter(steps * RANGE_M, 0.0)),
)
POINTS = st.tuples(COORDINATES, COORDINATES)


@given(st.lists(POINTS, min_size=1, max_size=12), POINTS)
def test_the_index_finds_the_station_that_a_search_of_all_finds(stations, at):
    apart_m2 = [(at[0] - x_m) ** 2 + (at[1] - y_m) ** 2 for x_m, y_m in stations]
    least_m2 = min(apart_m2)
    expected = apart_m2.index(least_m2) if least_m2 <= RANGE_M**2 else None
    assert StationGrid(stations, RANGE_M).nearest(*at) == expected


@pytest.mark.parametrize("placement", ["cells", "area"])
def test_hosts_are_placed_in_cells(placement):
    spec = CellsSpec(stations=7, hosts=140, placement=placement)
    stations = StationGrid(lattice(7, RANGE_M), RANGE_M)
    cells = [stations.nearest(*at) for at in place_hosts(spec, 3, stations)]
    counts = [cells.count(station) for station in range(7)]
    assert sum(counts) == 140
    assert counts == [20] * 7 if placement == "cells" else min(counts) > 5


def test_a_walking_host_stays_in_range_of_a_station_and_keeps_its_speed():
    spec = CellsSpec(stations=1, hosts=8, walk=Walk(speed_m_s=10.0))
    walker = Walker(spec, 5, StationGrid(lattice(1, RANGE_M), RANGE_M))
    turns = [0] * 8
    for host in range(8):
        before, heading = walker.at[host], None
        for _ in range(200):
            at = walker.step(host)
            assert dist(at, (0, 0)) <= RANGE_M
            assert dist(at, before) == pytest.approx(10.0)
            now = (round(at[0] - before[0], 6), round(at[1] - before[1], 6))
            turns[host] += now != heading
            before, heading = at, now
    assert all(turn >= 40 for turn in turns), "a new direction every five steps, or sooner"


def test_without_stays_covered_hosts_walk_out_of_range():
    spec = CellsSpec(stations=1, hosts=1, walk=Walk(speed_m_s=50.0, stays_covered=False))
    walker = Walker(spec, 5, StationGrid(lattice(1, RANGE_M), RANGE_M))
    path = [walker.step(0) for _ in range(50)]
    assert any(dist(at, (0, 0)) > RANGE_M for at in path)


def test_a_route_is_walked_from_point_to_point():
    route = Route(0, ((10.0, 0.0), (10.0, 4.0)))
    spec = CellsSpec(
        stations=1, hosts=1, hosts_at=((0.0, 0.0),), routes=(route,), walk=Walk(speed_m_s=6.0)
    )
    walker = Walker(spec, 1, StationGrid(lattice(1, RANGE_M), RANGE_M))
    assert [walker.step(0) for _ in range(4)] == [(6.0, 0.0), (10.0, 2.0), (10.0, 4.0), (10.0, 4.0)]
