"""The world of cells: its guarantees to a protocol, and its measurements."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from beforehand.errors import InputError, InputErrors
from beforehand.events import BROADCAST, DELIVER
from beforehand.protocols.mobile.pace import Pace
from beforehand.protocols.mobile.systems import SYSTEMS
from beforehand.protocols.mobile.was.host import Host
from beforehand.sim.cells.layout import lattice
from beforehand.sim.cells.measure import CellsMeasure, measure_cells
from beforehand.sim.cells.result import CellsRun
from beforehand.sim.cells.spec import SECOND_US, CellsSpec, Failure, Route, Walk
from beforehand.sim.cells.world import World, run
from beforehand.sim.radio import Radio

SLOW = Radio(bits_per_s=1_000_000, answers_draw=True)
SMALL = CellsSpec(
    stations=3,
    hosts=12,
    rate_per_s=6.0,
    radio=SLOW,
    duration_us=14 * SECOND_US,
    settle_us=6_000_000,
)
SEVEN = CellsSpec(
    stations=7,
    hosts=70,
    rate_per_s=5.6,
    radio=SLOW,
    duration_us=20 * SECOND_US,
    settle_us=8_000_000,
)


def with_(spec: CellsSpec, **changes: Any) -> CellsSpec:
    fields = {name: getattr(spec, name) for name in spec.__struct_fields__}
    return CellsSpec(**{**fields, **changes})


def measured(spec: CellsSpec, seed: int = 1) -> CellsMeasure:
    return measure_cells(spec, seed, run(spec, seed))


def is_same(one: CellsRun, other: CellsRun) -> bool:
    return (
        all(np.array_equal(one.events[name], other.events[name]) for name in one.events)
        and (one.handoffs, one.thrown) == (other.handoffs, other.thrown)
        and [s.kept for s in one.samples] == [s.kept for s in other.samples]
        and [s.early for s in one.samples] == [s.early for s in other.samples]
        and all(
            np.array_equal(getattr(a, name), getattr(b, name))
            for a, b in zip(one.samples, other.samples, strict=True)
            for name in ("sent", "outcomes", "air_outcomes")
        )
    )


def rows(result: CellsRun, kind: int) -> list[tuple[int, ...]]:
    chosen = result.events["kind"] == kind
    names = ("t_us", "node", "origin", "seq")
    return list(zip(*(result.events[name][chosen].tolist() for name in names), strict=True))


def test_a_run_is_the_same_for_the_same_seed_and_another_for_another():
    assert is_same(run(SMALL, 1), run(SMALL, 1))
    assert not is_same(run(SMALL, 1), run(SMALL, 2))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"radio": Radio(bits_per_s=1_000_000, mac="none")},
        {"radio": Radio(bits_per_s=1_000_000, mac="csma", capture=True), "rate_per_s": 30.0},
        {"radio": Radio(bits_per_s=100_000), "ack_jitter": 0.0, "timer_jitter": 0.0},
        {"radio": Radio(bits_per_s=50_000, queue_max=3)},
        {"walk": Walk(speed_m_s=25.0), "choice": "nearest", "loss": 0.1},
        {"walk": Walk(speed_m_s=25.0, stays_covered=False)},
        {"failures": (Failure(7_000_000, 2_000_000, station=1), Failure(8_000_000, 9, host=3))},
    ],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_driven_and_the_compiled_channel_give_the_same_run(changes, seed):
    spec = with_(SMALL, **changes)
    assert is_same(run(with_(spec, channel="driven"), seed), run(spec, seed))


def test_the_frame_table_grows_beyond_its_first_size():
    spec = with_(SMALL, hosts=30, rate_per_s=60.0, pace=Pace(ack_us=20_000))
    driven, compiled = run(with_(spec, channel="driven"), 1), run(spec, 1)
    assert compiled.samples[-1].sent[0, :, 0].sum() > 4096
    assert is_same(driven, compiled)


@pytest.mark.parametrize("channel", ["compiled", "driven"])
def test_frames_for_a_full_queue_are_counted_and_dropped(channel):
    radio = Radio(bits_per_s=50_000, queue_max=3)
    spec = with_(SMALL, radio=radio, rate_per_s=30.0, channel=channel)
    world = World(spec, 1, SYSTEMS["was"])
    world.run()
    assert len(world._frames) <= (3 + 1) * spec.nodes
    assert measure_cells(spec, 1, world.result()).thrown > 1_000


def test_all_systems_see_the_same_broadcasts_and_walks():
    class Impatient(Host):
        """Another system: it acknowledges less often."""

    patient = SYSTEMS["was"]._replace(
        make_host=lambda node, _: Impatient(node, Pace(ack_us=900_000), durable=True)
    )
    spec = with_(SMALL, walk=Walk(speed_m_s=25.0))
    one, other = run(spec, 1), run(spec, 1, patient)
    assert rows(one, BROADCAST) == rows(other, BROADCAST)
    assert one.handoffs == other.handoffs > 0
    assert rows(one, DELIVER) != rows(other, DELIVER)


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_gets_the_same_broadcasts_and_keeps_causal_order(system):
    spec = with_(SMALL, system=system, rate_per_s=3.0, radio=CellsSpec().radio)
    if not SYSTEMS[system].is_mobile:
        spec = with_(spec, walk=Walk(speed_m_s=0.0))
    result = run(spec, 1)
    measure = measure_cells(spec, 1, result)
    assert (measure.violations, measure.duplicates, measure.missing) == (0, 0, 0)
    assert rows(result, BROADCAST) == rows(run(with_(spec, system="was"), 1), BROADCAST)
    assert {flow.kind for flow in measure.flows if flow.frames} >= {"application", "ack"}


def test_seven_stations_and_seventy_hosts_deliver_everything_in_order():
    measure = measured(SEVEN)
    assert (measure.violations, measure.duplicates, measure.missing) == (0, 0, 0)
    assert measure.broadcasts > 50
    assert measure.deliveries > 65 * measure.broadcasts
    assert measure.under_way == 70 * measure.broadcasts - measure.deliveries


def test_a_host_that_walks_through_three_cells_delivers_everything():
    a, b, c = lattice(3, 120.0)
    others = (a, b, c, (a[0] + 5, a[1]), (b[0] + 5, b[1]))
    spec = with_(
        SMALL,
        hosts=6,
        hosts_at=(a, *others),
        routes=(Route(0, (b, c)), *(Route(host, ()) for host in range(1, 6))),
        walk=Walk(speed_m_s=40.0, step_us=100_000),
        duration_us=25 * SECOND_US,
    )
    result = run(spec, 1)
    measure = measure_cells(spec, 1, result)
    assert result.handoffs == 2
    assert (measure.violations, measure.duplicates, measure.missing) == (0, 0, 0)
    walker = [row[2:] for row in rows(result, DELIVER) if row[1] == spec.stations]
    sitter = [row[2:] for row in rows(result, DELIVER) if row[1] == spec.stations + 1]
    assert len(walker) > 60
    assert set(sitter) - set(walker) <= {row[2:] for row in rows(result, BROADCAST)[-20:]}


def test_the_buffer_of_a_station_grows_while_a_host_is_failed_and_shrinks_after():
    failure = Failure(at_us=10_000_000, for_us=6_000_000, station=2)
    spec = with_(SEVEN, failures=(failure,), rate_per_s=15.0, duration_us=30 * SECOND_US)
    measure = measured(spec)
    kept = {moment.t_s: moment.kept for moment in measure.series}
    assert kept[16.0][2] > 2 * max(n for s, n in enumerate(kept[16.0]) if s != 2)
    assert kept[16.0][2] > 80
    assert kept[25.0][2] < 40
    (outage,) = measure.outages
    assert (outage.station, outage.from_s, outage.to_s) == (2, 10.0, 16.0)
    assert (measure.violations, measure.duplicates, measure.missing) == (0, 0, 0)
    assert measure.missing_at_returned == 0


def test_a_host_that_joins_late_and_one_that_leaves():
    spec = with_(SMALL, joins=((0, 9_000_000),), leaves=((1, 8_000_000),))
    result = run(spec, 1)
    measure = measure_cells(spec, 1, result)
    assert (measure.violations, measure.duplicates, measure.missing) == (0, 0, 0)
    late = [row for row in rows(result, DELIVER) if row[1] == spec.stations]
    assert late
    assert min(row[0] for row in late) > 9_000_000
    gone = [row for row in rows(result, BROADCAST) if row[1] == spec.stations + 1]
    assert all(row[0] < 8_000_000 for row in gone)


def test_a_host_outside_all_cells_is_not_expected_to_deliver():
    spec = with_(SMALL, hosts=1, hosts_at=((0.0, 0.0),), routes=(Route(0, ((900.0, 0.0),)),))
    spec = with_(spec, walk=Walk(speed_m_s=50.0), stations=1)
    result = run(spec, 1)
    assert set(result.away) == {1}
    assert measure_cells(spec, 1, result).missing == 0


class DeafAtFirst(Host):
    """One of the hosts never receives its registration, as if the answers were lost."""

    def on_message(self, now_us, source, frame, out):
        if self.node != 1 or now_us > 5_500_000:
            super().on_message(now_us, source, frame, out)


@pytest.mark.parametrize(
    ("is_deaf", "counts"), [(True, False), (False, True)], ids=["never heard of it", "heard of it"]
)
@pytest.mark.parametrize(
    "trouble",
    [
        {"routes": (Route(0, ((300.0, 0.0), (0.0, 0.0))),)},
        {"failures": (Failure(4_500_000, 2_500_000, host=0),)},
    ],
    ids=["away", "failed"],
)
def test_a_host_that_left_before_joining_is_not_expected_to_deliver(trouble, is_deaf, counts):
    spec = with_(SMALL, stations=1, hosts=3, hosts_at=((0.0, 0.0),) * 3, **trouble)
    spec = with_(spec, walk=Walk(speed_m_s=50.0), duration_us=30 * SECOND_US, rate_per_s=3.0)
    still = tuple(Route(host, ((0.0, 0.0),)) for host in range(3))
    spec = with_(spec, routes=(*spec.routes, *still[len(spec.routes) :]), joins=((0, 0),))
    kind = DeafAtFirst if is_deaf else Host
    system = SYSTEMS["was"]._replace(make_host=lambda node, pace: kind(node, pace, durable=True))
    result = run(spec, 1, system)
    assert (result.entered[1] < spec.warm_up_us) == counts
    measure = measure_cells(spec, 1, result)
    assert (measure.missing, measure.missing_at_returned) == (0, 0)


def test_collisions_are_counted_without_carrier_sense():
    spec = with_(SMALL, stations=1, rate_per_s=30.0)  # all are in range of each other
    rude_radio = Radio(mac="none", bits_per_s=1_000_000)
    polite, rude = measured(spec), measured(with_(spec, radio=rude_radio))
    assert polite.lost_percent is not None
    assert rude.lost_percent is not None
    assert rude.lost_percent > 2 * polite.lost_percent
    lost = sum(sum(flow.to_station[1:]) + sum(flow.to_host[1:]) for flow in rude.flows)
    assert lost == sum(moment.lost for moment in rude.series) > 0


def test_frames_and_bytes_are_counted_by_network_and_kind():
    result = run(SMALL, 1)
    measure = measure_cells(SMALL, 1, result)
    flows = {(flow.network, flow.kind): flow for flow in measure.flows}
    said = measure.broadcasts
    assert flows["wire", "application"].frames == 2 * said, "two wires, each passed once"
    assert flows["wire", "application"].payload_bytes == 200 * said
    assert flows["wire", "application"].header_bytes == 120 * said
    assert flows["radio", "application"].frames == 4 * said, "one up, three down"
    assert flows["radio", "ack"].payload_bytes == 0
    frames = sum(flow.frames for flow in measure.flows if flow.network == "radio")
    assert frames == sum(moment.radio_frames for moment in measure.series)
    assert measure.deliveries == sum(moment.deliveries for moment in measure.series)


@pytest.mark.parametrize(("fault", "found"), [("at once", "violations"), ("twice", "duplicates")])
def test_a_broken_core_is_found_invalid(fault, found):
    taken: Callable[..., None] = Host._take

    class Broken(Host):
        def _take(self, now_us, frame, out):
            if fault == "twice":
                taken(self, now_us, frame, out)
                out.deliveries += out.deliveries[:1]
            elif frame.seq >= self._place.next and frame.seq not in self._early:
                out.deliveries.append(frame.message)  # out of turn
                before = len(out.deliveries)
                taken(self, now_us, frame, out)
                del out.deliveries[before:]

    broken = SYSTEMS["was"]._replace(make_host=lambda node, pace: Broken(node, pace, durable=True))
    spec = with_(SMALL, rate_per_s=40.0, loss=0.2)
    measure = measure_cells(spec, 1, run(spec, 1, broken))
    assert getattr(measure, found) > 0


def test_a_host_that_does_not_deliver_is_counted_as_missing_messages():
    class Deaf(Host):
        def _take(self, now_us, frame, out):
            super()._take(now_us, frame, out)
            out.deliveries[:] = [m for m in out.deliveries if m.seq != 2 or self.node != 5]

    deaf = SYSTEMS["was"]._replace(make_host=lambda node, pace: Deaf(node, pace, durable=True))
    assert measure_cells(SMALL, 1, run(SMALL, 1, deaf)).missing > 0


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"system": "nobody"}, "unknown system"),
        ({"hosts": 0}, "`hosts` must be at least 1"),
        ({"warm_up_us": 99 * SECOND_US}, "warm-up"),
        ({"stations_at": ((0.0, 0.0),)}, "1 points for 3"),
        ({"leaves": ((12, 5),)}, "no host 12"),
        ({"radio": Radio(bits_per_s=0)}, "bits_per_s"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(changes, problem):
    with pytest.raises((InputError, InputErrors)) as refused:
        run(with_(SMALL, **changes), 1)
    assert problem in refused.value.render()


def test_an_immobile_system_with_walks_is_refused(monkeypatch):
    fixed = SYSTEMS["was"]._replace(is_mobile=False)
    monkeypatch.setitem(SYSTEMS, "fixed", fixed)
    with pytest.raises(InputErrors) as refused:
        run(with_(SMALL, system="fixed"), 1)
    assert "cannot change" in refused.value.render()
    run(with_(SMALL, system="fixed", walk=Walk(speed_m_s=0.0), duration_us=6_000_000), 1)


def test_leaves_are_refused_for_a_system_without_leave():
    with pytest.raises(InputErrors) as refused:
        run(with_(SMALL, system="ck", leaves=((1, 8_000_000),)), 1)
    assert "cannot leave for good" in refused.value.render()


def test_failures_are_refused_for_a_system_without_recovery(monkeypatch):
    monkeypatch.setitem(SYSTEMS, "frail", SYSTEMS["was"]._replace(survives_crashes=False))
    with pytest.raises(InputErrors) as refused:
        run(with_(SMALL, system="frail", failures=(Failure(7_000_000, 1),)), 1)
    assert "do not survive a crash" in refused.value.render()
