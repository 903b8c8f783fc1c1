"""The generators: the same seed gives the same world, and the tables of the paper are met."""

from __future__ import annotations

import numpy as np
import pytest

from beforehand.errors import InputError
from beforehand.mobility.generators import buses, crowd, walkers, waypoint
from beforehand.mobility.positions import Positions
from beforehand.mobility.statistics import describe

# OPP, Tables I and IV; extremes are left out, they are one draw each.
VANNES = {
    "nodes": 60, "at_once_max": 56, "start_s": 19800, "end_s": 71100, "activity_s_min": 1560,
    "activity_s_max": 50880, "activity_s_avg": 39480, "activity_s_stdev": 12360, "contacts": 8892,
    "contact_s_avg": 84, "contact_s_stdev": 65,
}  # fmt: skip
OSTERMALM = {
    "nodes": 2092, "at_once_max": 57, "end_s": 18000, "activity_s_max": 1936,
    "activity_s_avg": 325, "activity_s_stdev": 249, "contacts": 14807, "contact_s_avg": 45,
    "contact_s_stdev": 39,
}  # fmt: skip

GENERATORS = {
    "buses": lambda seed: buses.generate(seed),
    "walkers": lambda seed: walkers.generate(seed, hours=0.5),
    "waypoint": lambda seed: waypoint.generate(seed, nodes=10),
}


def off_by(found, published):
    return {key: round(found[key] / value - 1, 2) for key, value in published.items()}


@pytest.mark.parametrize("seed", [1, 2])
def test_buses_are_like_those_of_vannes(seed):
    trace = buses.generate(seed).contacts_within(200.0)
    worst = off_by(describe(trace), VANNES)
    assert all(abs(off) <= 0.06 for off in worst.values()), worst
    assert trace.changes == {}


@pytest.mark.parametrize("seed", [1, 2])
def test_walkers_are_like_those_of_ostermalm(seed):
    trace = walkers.generate(seed).contacts_within(50.0)
    worst = off_by(describe(trace), OSTERMALM)
    assert all(abs(off) <= 0.25 for off in worst.values()), worst
    assert trace.changes == {}


@pytest.mark.parametrize("seed", [1, 2])
def test_a_crowd_has_the_numbers_of_ostermalm(seed):
    trace = crowd.generate(seed)
    worst = off_by(describe(trace), OSTERMALM)
    assert all(abs(off) <= 0.1 for off in worst.values()), worst
    assert trace.changes == {}


def test_contacts_of_a_crowd_grow_with_the_crowd_and_not_with_its_square():
    one, four = (len(crowd.generate(1, nodes_mean=n, hours=1).contacts) for n in (400, 1600))
    assert 3 < four / one < 5


def test_a_crowd_of_one_has_no_contacts():
    assert len(crowd.generate(3, nodes_mean=1, hours=9).contacts) == 0


def arrays(world: Positions):
    return [*world.segments, world.presence]


@pytest.mark.parametrize("name", GENERATORS)
def test_a_seed_is_a_world(name):
    generate = GENERATORS[name]
    one, again, other = generate(5), generate(5), generate(6)
    assert one.names == again.names
    assert all(np.array_equal(a, b) for a, b in zip(arrays(one), arrays(again), strict=True))
    assert not np.array_equal(one.x0, other.x0)


def test_a_seed_is_a_crowd():
    one, again, other = crowd.generate(5), crowd.generate(5), crowd.generate(6)
    assert np.array_equal(one.contacts, again.contacts)
    assert np.array_equal(one.presence, again.presence)
    assert not np.array_equal(one.contacts, other.contacts)


@pytest.mark.parametrize("name", GENERATORS)
def test_no_node_jumps_or_is_in_two_places(name):
    world = GENERATORS[name](7)
    assert world.changes == {}
    order = np.lexsort((world.t0_us, world.node))
    before, after = order[:-1], order[1:]
    same = world.node[before] == world.node[after]
    assert (world.t1_us[before] <= world.t0_us[after])[same].all()
    joined = same & (world.t1_us[before] == world.t0_us[after])
    assert np.array_equal(world.x1[before][joined], world.x0[after][joined])
    assert np.array_equal(world.y1[before][joined], world.y0[after][joined])


@pytest.mark.parametrize(
    ("name", "speed_min", "speed_max"), [("buses", 0.0, 9.7), ("walkers", 0.59, 2.01)]
)
def test_speeds_are_those_of_the_street(name, speed_min, speed_max):
    world = GENERATORS[name](7)
    way_m = np.hypot(world.x1 - world.x0, world.y1 - world.y0)
    long = world.t1_us - world.t0_us > 1_000_000  # rounding shows in the shortest ones
    speed = way_m[long] / (world.t1_us - world.t0_us)[long] * 1e6
    assert speed_min <= speed.min()
    assert speed.max() <= speed_max


def test_random_waypoint_stays_in_its_field_for_the_whole_time():
    world = waypoint.generate(2, nodes=20, hours=0.5, width_m=300, height_m=100, pause_s_max=5)
    assert world.presence[:, 1:].tolist() == [[0, 1_800_000_000]] * 20
    assert 0 <= world.x0.min() <= world.x0.max() <= 300
    assert 0 <= world.y0.min() <= world.y0.max() <= 100
    assert world.x0.max() > 250  # and makes use of it


@pytest.mark.parametrize(
    "call",
    [
        lambda: buses.generate(1, lines_count=0),
        lambda: buses.generate(1, speed=0),
        lambda: walkers.generate(1, straight=1),
        lambda: walkers.generate(1, hours=-1),
        lambda: crowd.generate(1, nodes_mean=0),
        lambda: waypoint.generate(1, nodes=0),
        lambda: waypoint.generate(1, speed_min=2, speed_max=1),
    ],
)
def test_parameters_that_make_no_sense_are_refused(call):
    with pytest.raises(InputError):
        call()
