"""The moves of the hostile net do what they say, and its judges look at every node."""

import pickle
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import nullcontext

import pytest

from beforehand.check.explore.canonical import Canonicalizer
from beforehand.check.families import FAMILIES
from beforehand.check.families.contacts import ContactsFamily
from beforehand.check.families.contacts import Setup as ContactsSetup
from beforehand.check.families.vcube import FOREVER_US
from beforehand.check.families.vcube import Setup as CubeSetup
from beforehand.check.fuzz import swarm
from beforehand.check.fuzz.fuzz import Outcome, play
from beforehand.check.net.case import Case, held_for_no_reason, lost_in_silence, never_delivered
from beforehand.check.net.heal import heal
from beforehand.check.net.moves import all_moves
from beforehand.check.net.net import make_net
from beforehand.check.net.signer import Signer, is_signature, make_proofs
from beforehand.errors import LocalError
from beforehand.protocols.contract.base import Message, MessageStatus
from beforehand.protocols.epidemic.options import Options
from beforehand.protocols.orders.order import LONG_AGO, Lifetimes

CUBE = CubeSetup(keep_us=FOREVER_US, aggregates=False)


def contacts(nodes, broadcasts, *, options=None, lifetimes=None, signing="none", **trouble):
    setup = ContactsSetup(options or Options(), lifetimes, signing=signing)
    family = ContactsFamily("delta" if lifetimes else "causal")
    return make_net(family, Case(nodes, broadcasts, setup, **trouble))


@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_crash_drops_the_unsent_frames_but_not_the_sent_ones(left):
    net = make_net(FAMILIES["vcube"], Case(4, (1, 0, 0, 0), CUBE, crashes=1))
    net.do(("broadcast", 0))
    leaving = [flight for flight in net.flights if flight[0] == 0]
    assert len(leaving) == 2
    assert net.do(("crash", 0, left))
    assert [flight for flight in net.flights if flight[0] == 0] == leaving[:left]


def test_frames_in_flight_to_a_crashed_node_are_lost():
    net = make_net(FAMILIES["vcube"], Case(4, (1, 0, 0, 0), CUBE, crashes=1))
    net.do(("broadcast", 0))
    target = next(iter(net.flights))[1]
    net.do(("crash", target))
    assert all(flight[1] != target for flight in net.flights)


def test_the_end_of_a_contact_loses_the_frames_of_both_ends_and_no_others():
    net = contacts(3, (1, 1, 0), flaps=1)
    for move in (("broadcast", 0), ("broadcast", 1), ("up", 0, 1), ("up", 1, 2)):
        assert net.do(move)
    assert {flight[:2] for flight in net.flights} == {(0, 1), (1, 0), (1, 2)}
    assert net.do(("down", 0, 1))
    assert {flight[:2] for flight in net.flights} == {(1, 2)}


def test_every_node_is_judged_for_what_it_never_delivered():
    net = contacts(5, (1, 0, 0, 0, 0))
    net.do(("broadcast", 0))
    assert list(never_delivered(net, net.oracle.pasts)) == [
        f"node {node} never delivered [(0, 1)]" for node in (1, 2, 3, 4)
    ]


@pytest.mark.parametrize("inbox", [False, True])
def test_a_delivery_that_a_crash_cut_off_is_excused_unless_there_is_an_inbox(inbox):
    net = contacts(2, (1, 0), inbox=inbox)
    net.do(("broadcast", 0))
    net.drivers[1].cut_off = [Message((0, 1), (), b"")]
    assert len(list(never_delivered(net, net.oracle.pasts))) == inbox


def test_a_received_message_that_a_node_does_not_know_is_a_silent_loss():
    net = contacts(3, (1, 0, 0))
    net.do(("broadcast", 0))
    net.held |= {(0, (0, 1)), (1, (0, 1)), (2, (0, 1))}
    assert list(lost_in_silence(net)) == [
        f"node {node} received (0, 1) and lost it silently: unknown" for node in (1, 2)
    ]


def test_all_clocks_are_set_at_once_as_often_as_the_case_allows():
    net = contacts(2, (0, 0), skew_us=9, ahead_us=(0, 9), shifts=2, shift_us=100)
    assert [net.local_us(node) for node in (0, 1)] == [100, 109]
    assert net.do(("shift", 40))
    assert ([net.local_us(node) for node in (0, 1)], net.sights) == ([40, 49], {"all set back"})
    assert not net.do(("shift", 40))
    assert net.do(("shift", 150))
    assert net.sights == {"all set back", "all set forward"}
    assert not net.do(("shift", 0))
    assert [net.local_us(node) for node in (0, 1)] == [150, 159]


def test_the_latest_reading_of_a_clock_is_remembered_when_clocks_fall():
    net = contacts(2, (0, 0), skew_us=9, ahead_us=(0, 9), shifts=1, shift_us=100, settings=1)
    net.do(("pass", 10))
    assert net.latest_reading_us() == 119
    net.do(("set", 1, 0))
    assert (net.latest_reading_us(), net.local_us(1)) == (119, 110)
    net.do(("pass", 20))
    assert net.latest_reading_us() == 130
    net.do(("shift", 0))
    assert (net.latest_reading_us(), net.local_us(1)) == (130, 30)


def test_a_message_whose_deadline_a_clock_has_shown_need_not_arrive():
    lifetimes = Lifetimes(100, 1_000, skew_us=10)
    net = contacts(2, (2, 0), lifetimes=lifetimes, lifetimes_us=(100,), shifts=1, shift_us=500)
    net.do(("broadcast", 0, 100))
    net.do(("pass", 99))
    assert list(net.family.problems(net)) == ["node 1 never delivered [(0, 600)]"]
    net.do(("pass", 1))
    net.do(("shift", 0))
    assert list(net.family.problems(net)) == []


def test_a_healed_net_reports_all_links_up_and_has_no_partition():
    net = contacts(3, (1, 0, 0), crashes=2, options=Options(announce_us=1_000_000))
    for move in (("broadcast", 0), ("crash", 1), ("crash_after", 2, 0)):
        assert net.do(move)
    heal(net)
    assert net.problem is None
    assert [list(net.oracle.delivered[node]) for node in range(3)] == [[(0, 1)]] * 3
    assert all(driver.is_up for driver in net.drivers)


def test_a_net_that_goes_on_for_ever_is_a_problem(monkeypatch):
    monkeypatch.setattr("beforehand.check.net.heal.STEPS_MAX", 3)
    net = contacts(3, (2, 2, 2))
    net.do(("broadcast", 0))
    heal(net)
    assert net.problem == "the healed net does not come to rest"


def test_a_signer_fails_one_time_in_three_the_same_way_in_each_run_and_can_be_copied():
    def tries(signer, count):
        for _ in range(count):
            try:
                yield signer(b"text")
            except LocalError:
                yield None

    one, other = Signer(1, fails=True, seed=7), Signer(1, fails=True, seed=7)
    signed = list(tries(one, 300))
    assert 70 < signed.count(None) < 130
    assert signed == [*tries(other, 100), *tries(pickle.loads(pickle.dumps(other)), 200)]
    assert None not in tries(Signer(1, fails=False, seed=7), 300)


def test_a_signature_is_of_one_node_and_one_text():
    proof = Signer(1, fails=False, seed=0)(b"text")
    assert is_signature(1, b"text", proof)
    assert not is_signature(2, b"text", proof)
    assert not is_signature(1, b"other", proof)
    assert make_proofs("none", 1, 0) is None


def test_a_broadcast_whose_signer_fails_is_not_made_and_the_next_one_is_complete():
    net = contacts(2, (9, 0), signing="failing")
    for _ in range(9):
        assert net.do(("broadcast", 0))
    assert "refused to broadcast: the signer failed" in net.sights
    assert 0 < len(net.oracle.pasts) < 9
    heal(net)
    assert net.problem is None
    assert net.oracle.delivered[1] == list(net.oracle.pasts)


class Forgetful(ContactsFamily):
    """A node whose signer fails loses the causes that its next message should name."""

    def make_core(self, case, node):
        core = super().make_core(case, node)
        order, say = core.order, core.order.on_broadcasts

        def on_broadcasts(now_us, said, out):
            past = dict(order._barrier)
            try:
                return say(now_us, said, out)
            except LocalError:
                for origin in past:
                    order._barrier.pop(origin, None)
                raise

        order.on_broadcasts = on_broadcasts
        return core


def test_the_swarm_finds_a_core_that_forgets_its_causes_when_the_signer_fails():
    problems = (play(seed, Forgetful("causal"))[0].problem for seed in range(1_500))
    assert any(problem and "causally follows" in problem for problem in problems)


class Trusting(ContactsFamily):
    """A core that reads lifetimes off a clock that may fall, so expired messages revive."""

    def make_core(self, case, node):
        core = super().make_core(case, node)
        expire = core.order._expire

        def fall_back(now_us, out):
            core.order._horizon_us = core._horizon_us = min(core.order._horizon_us, now_us)
            expire(now_us, out)

        core.order._expire = fall_back
        return core


def test_the_swarm_finds_a_core_that_revives_expired_messages_when_clocks_fall():
    problems = (play(seed, Trusting("delta"))[0].problem for seed in range(1_500))
    assert any(problem and "a second time" in problem for problem in problems)


def test_a_crashed_node_gets_no_pending_events():
    options = Options(announce_us=1_000_000)
    net = contacts(3, (1, 1, 0), crashes=2, flaps=1, options=options)
    for move in (("up", 0, 1), ("up", 1, 2), ("broadcast", 0), ("broadcast", 1), ("down", 0, 1)):
        assert net.do(move)
    assert {node for node, _ in net.timers} == {0, 1}
    assert [item[:3] for item in net.notices] == [(1, 0, False)]
    assert net.do(("crash", 1))
    assert {node for node, _ in net.timers} == {0}
    assert [item[:3] for item in net.notices] == [(2, 1, False)]


def test_the_peers_of_a_crashed_node_get_a_link_down_event():
    net = contacts(4, (0, 0, 0, 0), crashes=1)
    for move in (("up", 0, 1), ("up", 1, 2), ("up", 0, 3), ("crash", 1)):
        assert net.do(move)
    assert sorted(item[:3] for item in net.notices) == [(0, 1, False), (2, 1, False)]
    assert net.contacts == {(0, 3)}


def test_time_stops_until_frames_in_flight_have_arrived():
    net = contacts(2, (1, 0), delay_us_max=100)
    for move in (("broadcast", 0), ("up", 0, 1), ("pass", 60)):
        assert net.do(move)
    assert net.do(("pass", 60))
    assert net.now_us == 100
    assert not net.do(("pass", 60))
    assert net.do(("arrive", 0, 1, 1))
    assert net.do(("pass", 60))  # the request was sent at 100
    assert net.now_us == 160


def test_a_frame_is_lost_or_duplicated_as_often_as_the_case_allows():
    options = Options(retry_us=1_000)
    net = contacts(2, (1, 0), losses=1, doubles=1, options=options)
    for move in (("broadcast", 0), ("up", 0, 1)):
        assert net.do(move)
    (frame, _), *rest = net.flights.values()
    assert rest == []
    assert net.do(("double", 0, 1, 1))
    assert [sent for sent, _ in net.flights.values()] == [frame, frame]
    assert net.do(("lose", 0, 1, 1))
    assert list(net.flights) == [(0, 1, 2)]
    assert not net.do(("double", 0, 1, 2))
    assert not net.do(("lose", 0, 1, 2))


def test_deliveries_before_an_own_broadcast_of_the_same_step_are_its_causes():
    net = contacts(3, (0, 0, 0))
    net.oracle.see(1, "broadcast", (1, 1))
    net.oracle.see(2, "broadcast", (2, 1))
    step = [Message(id, (), b"") for id in ((1, 1), (0, 1), (2, 1))]
    net.broadcasted(0, (0, 1), step)
    assert net.oracle.pasts[0, 1] == {(1, 1)}


def test_a_pending_message_without_missing_causes_is_a_problem(monkeypatch):
    net = contacts(2, (1, 0))
    net.do(("broadcast", 0))
    monkeypatch.setattr(net.drivers[1].core, "explain", lambda _: MessageStatus("waiting"))
    assert list(held_for_no_reason(net)) == ["node 1 holds (0, 1) for no reason"]
    monkeypatch.setattr(
        net.drivers[1].core, "explain", lambda _: MessageStatus("waiting", ((9, 9),))
    )
    assert list(held_for_no_reason(net)) == []


def test_messages_that_sound_nodes_refuse_are_a_problem():
    net = contacts(3, (0, 0, 0))
    for node in (1, 2):
        net.drivers[node].core.counters.refused = node
    (problem,) = net.family.problems(net)
    assert problem.startswith("3 messages were refused")


def test_an_explored_state_has_its_own_clocks_and_drops():
    case = Case(2, (0, 0), ContactsSetup(Options()), shifts=1, shift_us=100)
    canonicalizer = Canonicalizer(FAMILIES["causal"], case, None)
    before = canonicalizer.freeze()
    canonicalizer.net.do(("shift", 40))
    canonicalizer.net.dropped.add((0, 1, (0, 1)))
    after = canonicalizer.freeze()
    for state, shift_us, highest_us, dropped in (
        (before, 100, LONG_AGO, set()),
        (after, 40, 100, {(0, 1, (0, 1))}),
    ):
        net = canonicalizer.thaw(state)
        assert (net.shift_us, net.highest_us, net.dropped) == (shift_us, highest_us, dropped)


@pytest.mark.parametrize("shifts", [0, 1])
def test_a_wait_for_the_own_clock_is_excused_only_where_all_clocks_may_fall(shifts, monkeypatch):
    lifetimes = Lifetimes(100, 1_000, skew_us=10)
    net = contacts(2, (1, 0), lifetimes=lifetimes, lifetimes_us=(100,), shifts=shifts)
    net.do(("broadcast", 0, 100))
    monkeypatch.setattr(
        net.drivers[1].core, "explain", lambda _: MessageStatus("waiting", ((0, 50),))
    )
    assert len(list(net.family.problems(net))) == 1 - shifts


def test_a_node_is_notified_when_it_is_suspected_and_when_the_suspicion_ends():
    net = make_net(FAMILIES["vcube"], Case(2, (0, 0), CUBE, suspicions=1))
    assert net.do(("suspect", 0, 1))
    assert [item[:3] for item in net.notices] == [(0, 1, False)]
    assert net.do(("trust", 0, 1))
    assert [item[:3] for item in net.notices] == [(0, 1, False), (0, 1, True)]
    assert not net.do(("suspect", 0, 1))


def test_absent_nodes_are_down_until_they_restart():
    net = make_net(FAMILIES["vcube"], Case(3, (0, 0, 0), CUBE, absent=(2,)))
    assert [driver.is_up for driver in net.drivers] == [True, True, False]
    assert net.do(("restart", 2))


def test_the_next_instant_of_an_explored_net_is_read_off_clocks_that_were_all_set():
    lifetimes = Lifetimes(100, 1_000, skew_us=10)
    net = contacts(2, (1, 0), lifetimes=lifetimes, lifetimes_us=(100,), shift_us=500)
    net.do(("broadcast", 0, 100))
    assert [move for move in all_moves(net) if move[0] == "pass"] == [("pass", 100)]


class Here(ProcessPoolExecutor):
    """Runs each call at once, in this process."""

    def __init__(self):
        pass

    def submit(self, run, *arguments):
        done = Future()
        done.set_result(run(*arguments))
        return done


def test_a_swarm_collects_its_failures_in_the_order_of_their_seeds(monkeypatch):
    def player(seed):
        return Outcome(seed, "odd", "odd" if seed % 2 else None, 1, 1, frozenset({"seen"}), 1)

    monkeypatch.setitem(swarm.TARGETS, "odd", player)
    monkeypatch.setattr(swarm, "_open_pool", lambda _: nullcontext(Here()))
    whole = swarm.run_swarm(range(99, 39, -1), ["odd"])
    assert [outcome.seed for outcome in whole.failures] == list(range(41, 100, 2))
    tally = whole.tallies["odd"]
    assert (tally.runs, tally.failures, tally.moves, tally.sights["seen"]) == (60, 30, 60, 60)
