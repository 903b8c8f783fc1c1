"""Wires by hand: one frame after the other, each direction on its own."""

import pytest

from beforehand.sim.cells.spec import Wiring
from beforehand.sim.cells.wires import Wires

SLOW = Wiring(bits_per_s=1_000_000, delay_us=10_000)


def test_a_frame_takes_transmission_and_propagation_time():
    assert Wires(SLOW, ((0, 1),)).arrive_us(5, 0, 1, 125) == 5 + 1000 + 10_000


def test_frames_wait_for_those_before_them_and_never_overtake():
    wires = Wires(SLOW, ((0, 1),))
    assert wires.arrive_us(0, 0, 1, 1000) == 18_000
    assert wires.arrive_us(100, 0, 1, 10) == 18_080
    assert wires.arrive_us(50_000, 0, 1, 10) == 60_080, "the wire was free by then"


def test_the_two_directions_do_not_wait_for_each_other():
    wires = Wires(SLOW, ((0, 1), (1, 2)))
    wires.arrive_us(0, 0, 1, 100_000)
    assert wires.arrive_us(0, 1, 0, 125) == 11_000
    assert wires.arrive_us(0, 1, 2, 125) == 11_000


def test_part_of_a_microsecond_counts_as_one():
    assert Wires(Wiring(), ((0, 1),)).arrive_us(0, 0, 1, 1) == 1 + 10_000


def test_stations_without_a_wire_exchange_no_frames():
    with pytest.raises(KeyError):
        Wires(SLOW, ((0, 1),)).arrive_us(0, 0, 2, 10)
