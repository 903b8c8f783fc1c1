"""VCube under explorer and swarm: correct cores pass, broken ones are found."""

from dataclasses import replace

import pytest

from beforehand.check.explore.explore import explore
from beforehand.check.families.vcube import BRIEF_US, FOREVER_US, Setup, VCubeFamily
from beforehand.check.fuzz.fuzz import play
from beforehand.check.net.case import Case
from beforehand.check.net.heal import heal
from beforehand.check.net.net import make_net
from beforehand.protocols.vcube.frames import VCubeMessage
from beforehand.protocols.vcube.node import VCube

FAMILY = VCubeFamily()
AHEAD_US = 30 * BRIEF_US
KEPT = Setup(keep_us=FOREVER_US)


class Hasty(VCube):
    """Delivers every message on arrival."""

    def _undelivered(self, id, causes):
        return None


class Deaf(VCube):
    """Ignores the failure detector."""

    def on_link(self, now_us, peer, up, out):
        pass


class Repeating(VCube):
    """Sends a released message to all its children again."""

    def _release(self, copies, out):
        for copy in copies:
            copy.postponed = copy.height
        super()._release(copies, out)


class Inventing(VCube):
    """Delivers a message that no node broadcast."""

    def on_message(self, now_us, source, frame, out):
        super().on_message(now_us, source, frame, out)
        if out.deliveries:
            out.deliveries.append(VCubeMessage((self.node, 1_000), (), b""))


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (Hasty, "causally follows"),
        (Deaf, "never delivered"),
        (Repeating, "was sent 2 times"),
        (Inventing, "which no node ever broadcast"),
    ],
)
def test_the_swarm_finds_planted_faults(broken, words):
    plays = (
        play(seed, FAMILY, lambda case, node: FAMILY.make_core(case, node, broken))[0]
        for seed in range(1000)
    )
    assert any(words in str(net.problem) for net in plays)


@pytest.mark.parametrize(
    ("case", "sometimes"),
    [
        (Case(3, (1, 1, 1), Setup()), ("held back", "waited")),
        (Case(4, (2, 0, 1, 0), Setup()), ("aggregated", "held back", "waited")),
        (Case(4, (1, 0, 1, 0), Setup(root=0)), ("waited",)),
        (Case(2, (1, 0), KEPT, crashes=1), ("crashed", "cut off", "restarted")),
        (Case(2, (1, 0), KEPT, suspicions=1), ("suspected",)),
        (Case(2, (1, 1), KEPT, absent=(1,)), ("restarted",)),
    ],
    ids=["3 nodes", "4 nodes", "one tree", "crash", "suspicion", "late comer"],
)
def test_no_interleaving_breaks_an_invariant(case, sometimes):
    found = explore(FAMILY, case, 40_000)
    assert found.problem is None, f"{found.problem} after {found.path}"
    assert found.is_complete
    assert {"complete", *sometimes} <= found.seen, "this exploration proves less than it seems to"


@pytest.mark.slow
def test_one_crash_among_three_nodes_within_the_time_budget():
    found = explore(FAMILY, Case(3, (1, 0, 0), KEPT, crashes=1), 10_000)
    assert found.problem is None, f"{found.problem} after {found.path}"
    assert {"complete", "crashed", "restarted"} <= found.seen


@pytest.mark.parametrize(
    ("nodes", "moves"),
    [
        (3, [("broadcast", 2), ("crash", 0), ("set", 2, AHEAD_US)]),
        (4, [("broadcast", 3), ("set", 3, AHEAD_US), ("crash", 1)]),
    ],
    ids=["a child skips it", "a child gets it from somebody else"],
)
def test_a_clock_set_forward_beyond_retention_lost_a_message_silently(nodes, moves):
    """The origin evicted the message before the detector reported the crash of a child, and sent it
    to no other node of the cluster. The child came back; the nodes below it never received the
    message."""
    case = Case(nodes, (1,) * nodes, Setup(keep_us=BRIEF_US), crashes=1, settings=1)
    net = make_net(FAMILY, replace(case, skew_us=AHEAD_US, delay_us_max=BRIEF_US // 50))
    assert all(net.do(move) for move in moves)
    heal(net)
    assert net.problem is None
    origin = moves[0][1]
    fates = [driver.core.explain((origin, 1)).state for driver in net.drivers]
    assert set(fates) <= {"delivered", "missed"}


def make_deaf(case, node):
    return FAMILY.make_core(case, node, Deaf)


def test_the_explorer_finds_a_lost_takeover():
    found = explore(FAMILY, Case(3, (1, 0, 0), KEPT, crashes=1), 20_000, make_deaf)
    assert "never delivered" in str(found.problem)
    assert any(move[0] in ("crash", "crash_after") for move in found.path)
