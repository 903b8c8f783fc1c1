"""Fair cycles: a net in which a message is never delivered although moves never end is found."""

import pytest

from beforehand.check.explore.components import components
from beforehand.check.explore.explore import explore
from beforehand.check.explore.least_draws import LeastDraws
from beforehand.check.explore.liveness import Edge, find_fair_cycle, is_fair
from beforehand.check.explore.small_nets import (
    DIGESTS,
    FULL,
    LINE,
    NEWEST,
    PAIR,
    PUSH,
    RETRY,
    epidemic_net,
    group_net,
    make_epidemic,
    make_group,
)
from beforehand.check.families.contacts import ContactsFamily
from beforehand.check.families.group import GroupFamily
from beforehand.protocols.epidemic.epidemic import Epidemic
from beforehand.protocols.epidemic.frames import Announce, Data
from beforehand.protocols.orders.barrier import Barrier

CAUSAL = ContactsFamily("causal")


class Denying(Epidemic):
    """Answers every request with `gone`, and requests again each message that a peer called
    `gone`."""

    def _on_request(self, now_us, source, link, frame, out):
        out.sends.append((source, Data((), frame.ids)))

    def _on_data(self, now_us, source, link, frame, out):
        super()._on_data(now_us, source, link, frame, out)
        if frame.gone:
            self._sender.request(now_us, source, link, frame.gone, out)


class Echoing(Epidemic):
    """Answers every announcement with the same announcement."""

    def _on_announce(self, now_us, source, link, frame, out):
        super()._on_announce(now_us, source, link, frame, out)
        out.sends.append((source, Announce(0, frame.ids)))


def make_denying(case, node):
    return Denying(node, Barrier(node), LeastDraws(), case.options.options)


def make_echoing(case, node):
    return Echoing(node, Barrier(node), LeastDraws(), case.options.options)


def test_a_request_that_is_denied_for_ever_is_starvation():
    case = epidemic_net(NEWEST, PAIR, (1, 0))
    assert explore(CAUSAL, case, 1_000, make_denying).problem is None, "it never comes to rest"
    found = find_fair_cycle(CAUSAL, case, 1_000, make_denying)
    assert found.problem == "node 1 never delivers (0, 1), which a peer holds: moves repeat"
    assert [move[0] for move in found.path[:1]] == ["broadcast"]
    assert {move[0] for move in found.cycle} == {"arrive"}


def test_announcements_answered_for_ever_are_a_livelock():
    found = find_fair_cycle(CAUSAL, epidemic_net(NEWEST, PAIR, (1, 0)), 1_000, make_echoing)
    assert found.is_complete
    assert found.problem == "never at rest: frames or timers go round for ever"


def edge(target, label):
    return Edge(target, ("arrive",), label)


def test_a_cycle_that_leaves_out_a_move_that_is_always_possible_is_not_fair():
    edges = [[edge(1, "there"), edge(2, "waits")], [edge(0, "back"), edge(2, "waits")], []]
    assert not is_fair([0, 1], edges)
    edges[1][1:] = [edge(2, "another")]
    assert is_fair([0, 1], edges), "neither move is possible all the time"
    edges[1][1:] = [edge(1, "waits")]
    assert is_fair([0, 1], edges), "the move is taken"


@pytest.mark.parametrize(
    "case",
    [
        epidemic_net(PUSH, LINE, (1, 1, 0)),
        epidemic_net(DIGESTS, LINE, (1, 1, 0)),
        epidemic_net(RETRY, PAIR, (1, 0), losses=2),
        epidemic_net(FULL, PAIR, (2, 1), flaps=1),
    ],
    ids=["push", "digests", "retry", "full caches"],
)
def test_epidemic_nets_have_no_fair_cycle(case):
    found = find_fair_cycle(CAUSAL, case, 20_000, make_epidemic)
    assert found.is_complete
    assert found.problem is None


@pytest.mark.parametrize("room_bytes", [None, 1])
def test_flow_control_with_the_smallest_window_has_no_fair_cycle(room_bytes):
    case = group_net(PAIR, (1, 1), pauses=1, room_bytes=room_bytes)
    found = find_fair_cycle(GroupFamily(), case, 20_000, make_group)
    assert found.is_complete
    assert found.problem is None


def test_components_of_a_graph():
    graph = [[1], [2], [0, 3], [3], [5], []]
    assert sorted(map(sorted, components(graph))) == [[0, 1, 2], [3], [4], [5]]
