from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beforehand.errors import InputErrors, LocalError
from beforehand.kernels.cells.air import COLLIDED, DEAF, RECEIVED, STARTED
from beforehand.sim.contacts.links import FOREVER_US
from beforehand.sim.grid_index import GridIndex
from beforehand.sim.radio import EVERYBODY, Air, Radio, Signal
from tests.sim.radio_play import Traffic, play, play_compiled
from tests.sim.radio_traffic import (
    everybody,
    in_order,
)

APP_BYTES = 148
APP_US = 1280  # of the simple radio
HIDDEN = [[1], [0, 2], [1]]
"""Nodes 0 and 2 are out of range of each other; 1 is in range of both."""
RADIOS = st.builds(
    Radio,
    modulation=st.sampled_from(["simple", "dsss", "ofdm"]),
    mac=st.sampled_from(["dcf", "csma", "none"]),
    capture=st.booleans(),
    cw=st.sampled_from([0, 1, 7, 31]),
    sense_us=st.sampled_from([0, 4, 15]),
    answers_draw=st.booleans(),
    queue_max=st.sampled_from([None, 1, 3]),
    full_duplex=st.booleans(),
).flatmap(
    lambda radio: st.sampled_from([0, 5_000] if radio.mac == "none" else [0]).map(
        lambda hold_us: msgspec.structs.replace(radio, unicast_hold_us=hold_us)
    )
)


def run(air: Air, *requests: tuple[int, int]) -> list[Signal]:
    """Return the signals of frames of one size, requested at (t_us, node)."""
    signals = []
    ahead = sorted(requests)
    while ahead or air.due_us < FOREVER_US:
        if ahead and ahead[0][0] < air.due_us:
            now_us, node = ahead.pop(0)
            air.transmit(now_us, node, APP_BYTES)
        elif (signal := air.step()) is not None:
            signals.append(signal)
    return signals


def starts(signals: list[Signal]) -> dict[int, int]:
    return {signal.frame: signal.t_us for signal in signals if not signal.is_end}


def ends(signals: list[Signal]) -> dict[int, Signal]:
    return {signal.frame: signal for signal in signals if signal.is_end}


@pytest.mark.parametrize(
    ("radio", "size_bytes", "airtime_us"),
    [
        (Radio("simple", 1_000_000), 148, 1280),
        (Radio("simple", 20_000_000), 148, 64),
        (Radio("dsss", 1_000_000), 148, 1376),
        (Radio("dsss", 1_000_000), 72, 768),
        (Radio("ofdm", 24_000_000), 148, 78),
        (Radio("ofdm", 24_000_000), 72, 54),
        (Radio("ofdm", 6_000_000), 1008, 1374),
        (Radio("ofdm", 6_000_000), 552, 766),
    ],
)
def test_airtime_has_the_preamble_and_whole_symbols(radio, size_bytes, airtime_us):
    assert radio.airtime_us(size_bytes) == airtime_us


def test_a_frame_on_an_idle_channel_starts_after_difs_and_all_in_range_receive_it():
    assert run(Air(Radio(), [[1, 2], [0], [0]], 1), (1000, 0)) == [
        Signal(1050, False, 0, 0),
        Signal(1050 + APP_US, True, 0, 0, received=(1, 2)),
    ]


@pytest.mark.parametrize("mac", ["csma", "none"])
def test_without_difs_a_frame_on_an_idle_channel_starts_at_once(mac):
    assert starts(run(Air(Radio(mac=mac), HIDDEN, 1), (1000, 0))) == {0: 1000}


def test_immediate_replies_draw_a_backoff_if_the_radio_is_set_to():
    asked = [(0, 0), *((50 + APP_US, node) for node in range(1, 9))]
    together = run(Air(Radio(), everybody(9), 1), *asked)
    assert [starts(together)[frame] for frame in range(1, 9)] == [50 + APP_US + 50] * 8
    drawn = run(Air(Radio(answers_draw=True), everybody(9), 1), *asked)
    assert min(starts(drawn)[frame] for frame in range(1, 9)) >= 50 + APP_US + 50
    assert sum(end.received != () for end in ends(drawn).values()) > 4
    # Later than that the medium is idle, and no node draws a backoff.
    late = run(Air(Radio(answers_draw=True), everybody(9), 1), (0, 0), (50 + APP_US + 50, 1))
    assert starts(late)[1] == 50 + APP_US + 100


@pytest.mark.parametrize("mac", ["dcf", "csma"])
def test_a_node_that_receives_a_frame_defers_until_its_end(mac):
    signals = run(Air(Radio(mac=mac), everybody(3), 1), (0, 0), (500, 1))
    assert starts(signals)[1] >= ends(signals)[0].t_us + 50
    assert all(len(end.received) == 2 for end in ends(signals).values())


@pytest.mark.parametrize("mac", ["dcf", "csma"])
def test_frames_of_hidden_terminals_collide_at_the_node_between_them(mac):
    signals = run(Air(Radio(mac=mac), HIDDEN, 1), (0, 0), (500, 2))
    first, second = starts(signals).values()
    assert second - first == 500
    assert [end.collided for end in ends(signals).values()] == [(1,), (1,)]


def test_a_frame_that_collides_at_one_receiver_reaches_others():
    neighbours = [[1, 4], [0, 2], [1, 3], [2], [0]]  # 4 - 0 - 1 - 2 - 3
    signals = ends(run(Air(Radio(), neighbours, 1), (0, 0), (500, 2)))
    assert (signals[0].received, signals[0].collided) == ((4,), (1,))
    assert (signals[1].received, signals[1].collided) == ((3,), (1,))


@pytest.mark.parametrize("capture", [False, True])
@pytest.mark.parametrize("gap_us", [0, 3, 4])
def test_starts_that_are_closer_than_carrier_sense_collide(gap_us, capture):
    air = Air(Radio(capture=capture), everybody(3), 1)
    signals = run(air, (0, 0), (gap_us, 1))
    assert list(starts(signals).values()) == [50, 50 + gap_us]
    for end in ends(signals).values():
        assert end.received == ()
        assert end.collided == (2,)


def test_a_start_later_than_the_carrier_sense_delay_is_deferred():
    signals = run(Air(Radio(), everybody(3), 1), (0, 0), (5, 1))
    assert starts(signals)[1] == ends(signals)[0].t_us + 50


@pytest.mark.parametrize(("capture", "received"), [(False, ()), (True, (1,))])
def test_capture_decides_whether_the_first_frame_survives_a_later_one(capture, received):
    signals = ends(run(Air(Radio(mac="none", capture=capture), HIDDEN, 1), (0, 0), (500, 2)))
    assert signals[0].received == received
    assert signals[1].received == ()


def test_frames_that_touch_do_not_overlap():
    signals = ends(run(Air(Radio(mac="none"), HIDDEN, 1), (0, 0), (APP_US, 2)))
    assert [end.received for end in signals.values()] == [(1,), (1,)]


@pytest.mark.parametrize("capture", [False, True])
@pytest.mark.parametrize("own_us", [100, 500, 900])
def test_a_transmitting_node_receives_nothing(own_us, capture):
    air = Air(Radio(mac="none", capture=capture), HIDDEN, 1)
    signals = ends(run(air, (500, 0), (own_us, 1)))
    heard = next(end for end in signals.values() if end.node == 0)
    assert (heard.received, heard.deaf) == ((), (1,))


def test_a_node_with_full_duplex_receives_while_it_transmits():
    signals = run(Air(Radio(mac="none", full_duplex=True), everybody(3), 1), (0, 0), (500, 1))
    assert [signal[4:] for signal in ends(signals).values()] == [((1,), (2,), ()), ((0,), (2,), ())]


@pytest.mark.parametrize(("target", "is_held"), [(1, False), (2, True), (EVERYBODY, False)])
def test_a_unicast_frame_that_is_not_received_holds_up_the_next_one(target, is_held):
    air = Air(Radio(mac="none", unicast_hold_us=100_000), HIDDEN, 1)
    air.transmit(0, 0, APP_BYTES, target)
    air.transmit(0, 0, APP_BYTES)
    assert starts(run(air))[1] == (100_000 if is_held else APP_US)


def test_a_hold_applies_to_a_frame_that_is_requested_during_it_and_to_none_after_it():
    air = Air(Radio(mac="none", unicast_hold_us=100_000), HIDDEN, 1)
    air.transmit(0, 0, APP_BYTES, 2)
    assert starts(run(air, (50_000, 0), (200_000, 0))) == {0: 0, 1: 100_000, 2: 200_000}


def test_a_hold_is_refused_with_carrier_sense():
    with pytest.raises(InputErrors, match="needs the MAC `none`: dcf"):
        Air(Radio(unicast_hold_us=1), everybody(2), 1)


def test_a_busy_medium_freezes_the_backoff():
    alone = run(Air(Radio(), everybody(3), 3), (0, 0), (0, 0))
    slots = (starts(alone)[1] - ends(alone)[0].t_us - 50) // 20
    assert slots > 2  # with this seed: else there is nothing to freeze
    # Another starts in the middle of the second slot: one whole slot is counted, not two.
    other_us = ends(alone)[0].t_us + 50 + 30
    signals = run(Air(Radio(), everybody(3), 3), (0, 0), (0, 0), (other_us - 50, 1))
    assert starts(signals)[2] == other_us
    assert starts(signals)[1] == ends(signals)[2].t_us + 50 + (slots - 1) * 20


def test_a_simple_backoff_continues_and_is_drawn_again_if_it_ends_on_a_busy_channel():
    found = set()
    for seed in range(30):
        air = Air(Radio(mac="csma"), everybody(3), seed)
        signals = run(air, (0, 0), (100, 1), (100, 2))
        assert all(end.received for end in ends(signals).values()) or starts(signals)[1] in (
            range(starts(signals)[2] - 4, starts(signals)[2] + 5)
        )
        found.add(starts(signals)[1] > starts(signals)[2])
    assert found == {False, True}


def test_a_node_in_range_at_the_start_receives_the_whole_frame():
    neighbours = [[1], [0], []]
    air = Air(Radio(mac="none"), neighbours, 1)
    air.transmit(0, 0, APP_BYTES)
    air.step()
    neighbours[0], neighbours[1] = [2], []
    neighbours[2] = [0]
    assert air.step() == Signal(APP_US, True, 0, 0, received=(1,))
    air.transmit(APP_US, 0, APP_BYTES)
    air.step()
    assert air.step() == Signal(2 * APP_US, True, 0, 1, received=(2,))


def test_frames_of_one_node_go_out_in_their_order():
    for mac in ("dcf", "csma", "none"):
        signals = run(Air(Radio(mac=mac), everybody(2), 1), (0, 0), (0, 0), (0, 0))
        times = list(starts(signals).values())
        assert list(starts(signals)) == [0, 1, 2]
        assert np.diff(times).min() >= APP_US


# Where nobody waits for DIFS, the first frame has started and is not in the queue any more.
@pytest.mark.parametrize(("mac", "thrown"), [("dcf", {2, 3}), ("csma", {3}), ("none", {3})])
def test_a_frame_for_a_full_queue_is_dropped_and_counted(mac, thrown):
    air = Air(Radio(mac=mac, queue_max=2), everybody(2), 1)
    signals = run(air, *[(0, 0)] * 4, (0, 1), *[(10 * APP_US, 0)] * 2)
    assert set(starts(signals)) == set(range(7)) - thrown
    assert air.thrown == len(thrown)


@pytest.mark.parametrize("mac", ["dcf", "csma"])
def test_a_backoff_does_not_depend_on_the_order_of_requests(mac):
    def asked(*order: int) -> dict[int, int]:
        air = Air(Radio(mac=mac), everybody(4), 9)
        air.transmit(0, 0, APP_BYTES)
        air.step()
        for node in order:
            air.transmit(500, node, APP_BYTES)
        return {signal.node: signal.t_us for signal in run(air) if not signal.is_end}

    assert asked(1, 2, 3) == asked(3, 1, 2)


def test_a_request_in_the_past_of_the_channel_is_refused():
    air = Air(Radio(), everybody(2), 1)
    air.transmit(0, 0, APP_BYTES)
    with pytest.raises(LocalError, match="the channel is at"):
        air.transmit(100, 1, APP_BYTES)
    air.step()
    with pytest.raises(LocalError, match="the channel is at"):
        air.transmit(49, 1, APP_BYTES)


def test_impossible_radio_settings_are_refused_with_all_problems():
    with pytest.raises(InputErrors) as caught:
        Air(Radio(bits_per_s=0, cw=-1), everybody(2), 1)
    assert len(caught.value.errors) == 2


@st.composite
def traffics(draw: st.DrawFn) -> Traffic:
    """Draw few walking nodes with much traffic."""
    nodes = draw(st.integers(2, 8))
    draws = np.random.default_rng(draw(st.integers(0, 2**32)))
    until_us = draw(st.sampled_from([20_000, 200_000]))
    count = draw(st.integers(0, 150))
    at = draws.integers(0, until_us // 2, (count, 1))
    if draw(st.booleans()):
        at -= at % 500  # many at once
    sizes = draws.choice([20, 148], (count, 1))
    targets = draws.integers(-1, nodes, (count, 1))  # -1: all nodes in range
    requests = np.hstack((at, draws.integers(0, nodes, (count, 1)), sizes, targets))
    in_range = np.triu(draws.random((nodes, nodes)) < draw(st.sampled_from([0.3, 0.7, 1])), 1)
    pairs = in_range | in_range.T
    changes = []
    for now_us in sorted(draws.integers(0, until_us, draw(st.integers(0, 20))).tolist()):
        one, other = sorted(draws.choice(nodes, 2, replace=False).tolist())
        in_range[one, other] ^= True
        changes.append((now_us, one, other, int(in_range[one, other])))
    return Traffic(
        [np.flatnonzero(row).tolist() for row in pairs],
        in_order(requests),
        until_us,
        np.array(changes, np.int64).reshape(-1, 4),
    )


@settings(max_examples=60)
@given(radio=RADIOS, traffic=traffics(), seed=st.integers(0, 2**62))
def test_the_compiled_channel_gives_the_same_signals_as_the_python_channel(radio, traffic, seed):
    assert np.array_equal(play_compiled(radio, traffic, seed), play(radio, traffic, seed))


@settings(max_examples=40)
@given(radio=RADIOS, traffic=traffics(), seed=st.integers(0, 2**62))
def test_a_frame_is_received_exactly_where_no_other_frame_overlapped(radio, traffic, seed):
    """Against the intervals of the log, whatever the MAC did."""
    traffic = Traffic(traffic.neighbours, traffic.requests, traffic.until_us)
    log = play(radio, traffic, seed).tolist()
    sent = {frame: (t_us, node) for t_us, kind, node, frame in log if kind == STARTED}
    air_us = [radio.airtime_us(size) for size in traffic.requests[:, 2].tolist()]
    for end_us, kind, listener, frame in log:
        if kind == STARTED:
            continue
        start_us = sent[frame][0]
        assert end_us == start_us + air_us[frame]
        overlaps = [
            (other_us, node)
            for other, (other_us, node) in sent.items()
            if other != frame and other_us < end_us and other_us + air_us[other] > start_us
        ]
        own = not radio.full_duplex and any(node == listener for _, node in overlaps)
        heard = [us for us, node in overlaps if node in traffic.neighbours[listener]]
        survives = radio.capture and all(us > start_us + radio.sense_us for us in heard)
        expected = DEAF if own else RECEIVED if not heard or survives else COLLIDED
        assert kind == expected


@settings(max_examples=40)
@given(
    moves=st.lists(
        st.tuples(st.integers(0, 7), st.floats(-300, 300), st.floats(-300, 300), st.booleans()),
        max_size=40,
    )
)
def test_the_grid_index_finds_the_nodes_in_range(moves):
    places, at = GridIndex(8, 120.0), {}
    for node, x_m, y_m, is_gone in moves:
        if is_gone:
            places.remove(node)
            at.pop(node, None)
        else:
            places.move(node, x_m, y_m)
            at[node] = (x_m, y_m)
    for node in range(8):
        assert places.neighbours[node] == [
            peer
            for peer in sorted(at)
            if node in at
            and peer != node
            and (at[node][0] - at[peer][0]) ** 2 + (at[node][1] - at[peer][1]) ** 2 <= 120.0**2
        ]


def test_the_grid_index_finds_nodes_across_cell_borders():
    places = GridIndex(5, 120.0)
    for node, (x_m, y_m) in enumerate([(119, 119), (121, 119), (119, 121), (121, 121), (500, 0)]):
        places.move(node, x_m, y_m)
    assert places.neighbours == [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2], []]
