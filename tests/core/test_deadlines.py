"""The paper's deadlines go wrong under skew and shrinking lifetimes; the fixed rule does not.

Each scenario is played with both rules. `literal_deadlines` is OPP Code 9 and 10 as printed.
"""

import pytest

from beforehand.check.oracle import judge
from beforehand.core.barrier import Barrier
from beforehand.core.order import Lifetimes
from beforehand.core.outbox import Outbox

SECOND = 1_000_000
LIFETIMES = Lifetimes(60 * SECOND, 60 * SECOND, skew_us=5 * SECOND)


class Stage:
    """Three nodes whose clocks may be wrong, and the log of what they do."""

    def __init__(self, *, literal, offsets_s=(0, 0, 0)):
        self.nodes = [Barrier(n, LIFETIMES, literal_deadlines=literal) for n in range(3)]
        self.offsets_s = offsets_s
        self.rows = []

    def speak(self, node, at_s, lifetime_s=60):
        out = Outbox()
        now_us = (at_s + self.offsets_s[node]) * SECOND
        message = self.nodes[node].on_broadcast(now_us, b"", out, lifetime_s * SECOND)
        self.rows.append((node, "broadcast", message.id))
        self._note(node, out)
        return message

    def hear(self, node, message, at_s):
        now_us = (at_s + self.offsets_s[node]) * SECOND
        out = Outbox()
        welcome = self.nodes[node].screen(now_us, [message])
        self.nodes[node].on_receive(now_us, welcome, out)
        self._note(node, out)

    def _note(self, node, out):
        self.rows += [(node, "deliver", message.id) for message in out.deliveries]


def shrinking_lifetimes(stage):
    """m2 depends on m1 but dies first; node 2 then gives m2 up and takes m3 before m1."""
    first = stage.speak(0, at_s=0, lifetime_s=60)
    stage.hear(1, first, at_s=1)
    second = stage.speak(1, at_s=2, lifetime_s=10)
    third = stage.speak(1, at_s=3, lifetime_s=60)
    assert third.past == (second.id,)
    stage.hear(2, third, at_s=20)
    stage.hear(2, first, at_s=30)


def clock_behind(stage):
    """The same with equal lifetimes: node 1's clock is behind, so its deadlines come early."""
    first = stage.speak(0, at_s=10)
    stage.hear(1, first, at_s=10)
    stage.speak(1, at_s=11)
    third = stage.speak(1, at_s=18)
    stage.hear(2, third, at_s=68)
    stage.hear(2, first, at_s=69)


def clock_ahead(stage):
    """Node 1's clock is ahead: it takes m1 for expired and does not name it, others still may."""
    first = stage.speak(0, at_s=10)
    stage.hear(1, first, at_s=11)
    second = stage.speak(1, at_s=67)
    stage.hear(2, second, at_s=68)
    stage.hear(2, first, at_s=69)


SCENARIOS = [
    pytest.param(shrinking_lifetimes, (0, 0, 0), id="shrinking-lifetimes"),
    pytest.param(clock_behind, (0, -4, 0), id="clock-behind"),
    pytest.param(clock_ahead, (0, 4, 0), id="clock-ahead"),
]


@pytest.mark.parametrize(("scenario", "offsets_s"), SCENARIOS)
def test_the_paper_literal_deadlines_break_causal_order(scenario, offsets_s):
    stage = Stage(literal=True, offsets_s=offsets_s)
    scenario(stage)
    assert [violation.kind for violation in judge(stage.rows)] == ["late"]


@pytest.mark.parametrize(("scenario", "offsets_s"), SCENARIOS)
def test_the_fixed_deadlines_keep_causal_order(scenario, offsets_s):
    stage = Stage(literal=False, offsets_s=offsets_s)
    scenario(stage)
    assert judge(stage.rows) == []


def test_the_judge_follows_causes_through_what_a_node_missed():
    """Node 2 missed m1 and yet its m3 comes after it."""
    m1, m2, m3 = (0, 1), (1, 1), (2, 1)
    rows = [(0, "broadcast", m1), (1, "deliver", m1), (1, "broadcast", m2), (2, "deliver", m2)]
    rows += [(2, "broadcast", m3), (3, "deliver", m3), (3, "deliver", m1)]
    assert [violation.kind for violation in judge(rows)] == ["late"]
