"""The track of a run of cells: it changes nothing, and agrees with the world."""

from __future__ import annotations

from math import dist

import numpy as np
import pyarrow.parquet as pq
import pytest

from beforehand.protocols.mobile.systems import SYSTEMS
from beforehand.sim.cells.layout import lattice
from beforehand.sim.cells.spec import SECOND_US, Failure, Walk
from beforehand.sim.cells.track import PHASES, TrackedWorld, record_run, run_tracked
from beforehand.sim.cells.world import run
from tests.sim.cells.test_world import SMALL, is_same, with_

MOVING = with_(SMALL, walk=Walk(speed_m_s=15.0), failures=(Failure(9 * SECOND_US, 2 * SECOND_US),))


@pytest.mark.parametrize("system", list(SYSTEMS))
def test_a_tracked_run_is_the_run_without_a_track(system):
    spec = MOVING if system.startswith("was") else with_(MOVING, system=system, failures=())
    spec = with_(spec, system=system)
    spec = spec if SYSTEMS[system].is_mobile else with_(spec, walk=Walk(speed_m_s=0.0))
    tracked, track = run_tracked(spec, 1)
    assert is_same(tracked, run(spec, 1))
    outcomes = np.array([frame[5:] for frame in track.frames])
    totals = tracked.samples[-1].air_outcomes
    assert (outcomes.clip(min=0).sum(axis=0) <= totals).all()
    if not (outcomes < 0).any():
        assert (outcomes.sum(axis=0) == totals).all()
    else:  # frames that ended at one instant are unknown, and the others are exact
        known = outcomes[(outcomes >= 0).all(axis=1)]
        assert 0 < known[:, 0].sum() < totals[0]


def test_the_last_phase_of_each_host_is_that_of_its_core():
    world = TrackedWorld(MOVING, 1, SYSTEMS["was"])
    world.run()
    last = {node: (cell, PHASES[phase]) for _, node, cell, phase in world.track.phases}
    hosts = range(MOVING.stations, MOVING.nodes)
    assert last == {n: (world._cells[n], world._drivers[n].core.state) for n in hosts}
    # A host is connected by a frame, at the instant at which it ends.
    ends = {frame[0] for frame in world.track.frames}
    joined = [t for t, *_, phase in world.track.phases if PHASES[phase] == "connected"]
    assert len(joined) >= MOVING.hosts
    assert set(joined) <= ends
    phases = [PHASES[phase] for *_, phase in world.track.phases]
    assert {"connecting", "connected", "down"} <= set(phases)


def test_hosts_are_in_range_of_the_station_of_their_cell(tmp_path):
    result = record_run("was", MOVING, 1, tmp_path)
    assert result.handoffs > 0
    ways = pq.read_table(tmp_path / "positions.parquet").to_pylist()
    links = pq.read_table(tmp_path / "links.parquet").to_pylist()
    stations_at = lattice(MOVING.stations, MOVING.range_m)
    stays = [row for row in links if row["up"] and row["b"] >= MOVING.stations]
    assert len(stays) >= MOVING.hosts + result.handoffs
    for row in stays:
        mine = [way for way in ways if way["node"] == row["b"]]
        way = next(way for way in mine if way["t0_us"] <= row["t_us"] <= way["t1_us"])
        share = (row["t_us"] - way["t0_us"]) / (way["t1_us"] - way["t0_us"])
        at = tuple(way[f"{c}0"] + share * (way[f"{c}1"] - way[f"{c}0"]) for c in "xy")
        assert dist(at, stations_at[row["a"]]) <= MOVING.range_m + 0.01
