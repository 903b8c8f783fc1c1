"""The argument for the Δ order as a bounded model: can a node deliver a cause after its effect?

A chain m1, ..., mn: the sender of each message has delivered the one before it. Node X delivers mn,
and m1 after it. Z3 looks for clocks, deadlines and deliveries with which that happens. All numbers
are unbounded integers, so `unsat` is a proof for chains of that length.

The model knows a rule (how deadlines are made, when a cause is left out, whether deliveries are
deferred) and an assumption about clocks. Time is a sequence of steps. At each step every node's
clock shows something; a node's horizon is the largest reading that the node has used.
"""

import itertools

import msgspec
import pytest
import z3

LENGTHS = range(2, 7)
TIMEOUT_MS = 10_000


class Rule(msgspec.Struct, frozen=True):
    """How senders and receivers behave."""

    deadlines_grow: bool = True
    """The deadline of an effect is beyond that of its cause; else only beyond the clock."""
    waits_skew: bool = True
    """A cause is left out when it has expired by the skew; else as soon as it has expired."""
    defers: bool = True
    """A message is delivered when its stamp is at most the skew beyond the horizon."""


NEW = Rule()
WITHOUT_DEFERRAL = Rule(defers=False)
PAPER = Rule(deadlines_grow=False, waits_skew=False, defers=False)


def any_clocks(_clocks, _skew):
    """Each clock shows whatever it likes, at any step."""
    return []


def pairwise(clocks, skew):
    """At each step, any two clocks differ by less than the skew. All of them may be set back."""
    return [
        one - other < skew for now in clocks for one in now for other in now if one is not other
    ]


def near_a_time(clocks, skew):
    """Each clock stays within skew/2 of a time that never falls."""
    times = z3.Ints(" ".join(f"time{step}" for step in range(len(clocks))))
    rising = [before <= after for before, after in itertools.pairwise(times)]
    near = [
        bound
        for time, now in zip(times, clocks, strict=True)
        for clock in now
        for bound in (2 * (clock - time) < skew, 2 * (time - clock) < skew)
    ]
    return rising + near


class Chain:
    """One chain, as constraints. Node j sends message j (from 0); node `length` is X."""

    def __init__(self, length, rule, assumption):
        self.length, self.rule = length, rule
        self.solver = z3.Solver()
        self.solver.set("timeout", TIMEOUT_MS)
        self.skew = z3.Int("skew")
        self.steps = 3 * length
        """Step 2j: node j broadcasts message j. Step 2j + 1: node j + 1 delivers it. From step
        2 * length - 1 on, only X acts."""
        nodes, steps = range(length + 1), range(self.steps)
        self.clocks = [[z3.Int(f"clock{step}_{node}") for node in nodes] for step in steps]
        self.horizons = [[z3.Int(f"horizon{step}_{node}") for node in nodes] for step in steps]
        self.deadlines = [z3.Int(f"deadline{j}") for j in range(length)]
        self.stamps = [z3.Int(f"stamp{j}") for j in range(length)]
        self.is_named = [z3.Bool(f"named{j}") for j in range(length)]
        self.is_delivered = [z3.Bool(f"delivered{j}") for j in range(length)]
        self.when = [z3.Int(f"when{j}") for j in range(length)]
        """The step at which X delivers it, if it does; message 0 is delivered last."""
        self.solver.add(self.skew >= 0, *assumption(self.clocks, self.skew))
        self.watch_clocks()
        for j in range(length):
            self.send(j)
            self.deliver(j)

    def watch_clocks(self):
        """A node may read its clock at any step, and does so whenever it acts."""
        for step in range(1, self.steps):
            for node in range(self.length + 1):
                before, after = self.horizons[step - 1][node], self.horizons[step][node]
                clock = self.clocks[step][node]
                read = after == z3.If(clock > before, clock, before)
                acts = node == (step + 1) // 2 and node < self.length
                self.solver.add(read if acts else z3.Or(read, after == before))
        self.solver.add(self.horizons[0][0] >= self.clocks[0][0])

    def send(self, j):
        horizon, deadline = self.horizons[2 * j][j], self.deadlines[j]
        self.solver.add(deadline > horizon, self.stamps[j] >= horizon)
        if j == 0:
            return
        cause = self.deadlines[j - 1]
        self.solver.add(cause > self.horizons[2 * j - 1][j])  # the sender delivered it in time
        if self.rule.deadlines_grow:
            self.solver.add(deadline > cause)
        passed = horizon - self.skew if self.rule.waits_skew else horizon
        self.solver.add(z3.Or(self.is_named[j], cause <= passed))

    def deliver(self, j):
        """At X, at any step after the broadcast."""
        when, is_last = self.when[j], j == self.length - 1
        if j == 0:
            self.solver.add(when > self.when[-1])
        if is_last or j == 0:
            self.solver.add(self.is_delivered[j])
        self.solver.add(when > 2 * j, when < self.steps)
        for step in range(2 * j + 1, self.steps):
            here = z3.And(self.is_delivered[j], when == step)
            self.solver.add(z3.Implies(here, z3.And(*self.conditions(j, step))))

    def conditions(self, j, step):
        """Return the conditions for X to deliver message j: X reads its clock, the message is
        alive and no longer deferred, and its cause was delivered or has expired."""
        horizon = self.horizons[step][self.length]
        yield horizon >= self.clocks[step][self.length]
        yield self.deadlines[j] > horizon
        if self.rule.defers:
            yield self.stamps[j] <= horizon + self.skew
        if j > 0:
            was_delivered = z3.And(self.is_delivered[j - 1], self.when[j - 1] <= step)
            is_over = z3.Or(was_delivered, self.deadlines[j - 1] <= horizon)
            yield z3.Implies(self.is_named[j], is_over)


def finds_a_late_delivery(length, rule, assumption, *constraints):
    """Whether some run of the model delivers the first message of the chain after the last."""
    chain = Chain(length, rule, assumption)
    chain.solver.add(*(constraint(chain) for constraint in constraints))
    answer = chain.solver.check()
    assert answer != z3.unknown, chain.solver.reason_unknown()
    return answer == z3.sat


@pytest.mark.parametrize("length", LENGTHS)
def test_with_deferral_the_order_holds_whatever_the_clocks_show(length):
    assert not finds_a_late_delivery(length, NEW, any_clocks)


@pytest.mark.parametrize("length", LENGTHS)
def test_without_deferral_clocks_within_the_skew_of_each_other_are_not_enough(length):
    assert finds_a_late_delivery(length, WITHOUT_DEFERRAL, pairwise)


@pytest.mark.parametrize("length", LENGTHS)
def test_without_deferral_clocks_near_a_time_that_never_falls_are_enough(length):
    assert not finds_a_late_delivery(length, WITHOUT_DEFERRAL, near_a_time)


@pytest.mark.parametrize("length", LENGTHS)
def test_the_rule_of_the_paper_fails_even_then(length):
    assert finds_a_late_delivery(length, PAPER, near_a_time)


@pytest.mark.parametrize("length", LENGTHS)
def test_with_perfect_clocks_the_rule_of_the_paper_fails_for_chains_of_three(length):
    """Shrinking lifetimes: a message in the middle expires before the first one."""
    found = finds_a_late_delivery(length, PAPER, near_a_time, lambda chain: chain.skew == 1)
    assert found == (length > 2)


@pytest.mark.parametrize(
    ("rule", "length"),
    [(Rule(deadlines_grow=False), 3), (Rule(waits_skew=False), 2), (Rule(defers=False), 2)],
    ids=["deadlines that do not grow", "left out at once", "not deferred"],
)
def test_each_part_of_the_rule_is_needed(rule, length):
    assert finds_a_late_delivery(length, rule, any_clocks)


def test_the_model_can_deliver_the_whole_chain():
    """In order, that is: what the model never does proves nothing."""
    chain, solver = Chain(4, NEW, near_a_time), z3.Solver()
    is_late = chain.when[0] > chain.when[-1]
    solver.add(*(part for part in chain.solver.assertions() if not part.eq(is_late)))
    solver.add(*chain.is_delivered, *chain.is_named[1:])
    assert solver.check() == z3.sat
