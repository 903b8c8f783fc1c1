"""The path lemma of the stamped order, for unbounded integers and paths of up to six messages.

If c happened before e, there is a path e = y0, y1, ..., yr of messages, each naming the next. Each
yj (j >= 1) lives at least as long as c and has a larger stamp, and yr names c or left it out. Z3
looks for a node that delivers e and later c: any horizons, any floors. `unsat` is a proof.
"""

import msgspec
import pytest
import z3

LENGTHS = range(6)
"""The number of messages between the effect and its cause."""


class Rule(msgspec.Struct, frozen=True):
    """The rules that nodes keep."""

    defers: bool = True
    """A message is delivered when its stamp is at most the skew beyond the horizon."""
    covers_longer: bool = True
    """A message stands for a cause in a barrier only if it lives at least as long."""
    stamps_rise: bool = True
    """A stamp is larger than those of all causes."""
    outlives_stamp: bool = True
    """A deadline lies beyond `stamp - skew`."""


RULE = Rule()


def finds_a_late_delivery(length, rule, *, is_left_out):
    """Whether some node delivers the cause after the effect at the other end of the path."""
    solver, ints = z3.Solver(), z3.Int
    skew, stamp_c, deadline_c = ints("skew"), ints("stamp c"), ints("deadline c")
    later, floor_later = ints("horizon later"), ints("floor later")
    stamps = [ints(f"stamp {j}") for j in range(length + 1)]
    deadlines = [ints(f"deadline {j}") for j in range(length + 1)]
    horizons = [ints(f"horizon {j}") for j in range(length + 1)]
    floors = [ints(f"floor {j}") for j in range(length + 1)]
    delivered = [z3.Bool(f"delivered {j}") for j in range(length + 1)]
    solver.add(skew >= 0, delivered[0], later >= horizons[0], floor_later >= floors[0])
    solver.add(deadline_c > later, stamp_c > floor_later)  # c is delivered after e
    for j in range(length + 1):
        here = [deadlines[j] > horizons[j]]
        if rule.defers:
            here.append(stamps[j] <= horizons[j] + skew)
        solver.add(z3.Implies(delivered[j], z3.And(here)))
        if rule.outlives_stamp:
            solver.add(deadlines[j] > stamps[j] - skew)
        if j:
            solver.add(*([deadlines[j] >= deadline_c] if rule.covers_longer else []))
            solver.add(*([stamps[j] > stamp_c] if rule.stamps_rise else []))
            # When y(j-1) was delivered, yj had been delivered, or had expired, or lay below the
            # floor.
            expired, below = deadlines[j] <= horizons[j - 1], stamps[j] <= floors[j - 1]
            solver.add(horizons[j] <= horizons[j - 1], floors[j] <= floors[j - 1])
            solver.add(z3.Implies(delivered[j - 1], z3.Or(delivered[j], expired, below)))
            solver.add(z3.Implies(z3.Not(delivered[j - 1]), z3.Not(delivered[j])))
    if is_left_out:
        solver.add(deadline_c <= stamps[-1] - skew)
    else:  # c was delivered before, or had expired, or lay below the floor: here, not delivered
        over = z3.Or(deadline_c <= horizons[-1], stamp_c <= floors[-1])
        solver.add(z3.Implies(delivered[-1], over))
    answer = solver.check()
    assert answer != z3.unknown, solver.reason_unknown()
    return answer == z3.sat


@pytest.mark.parametrize("is_left_out", [False, True], ids=["named", "left out"])
@pytest.mark.parametrize("length", LENGTHS)
def test_no_cause_is_delivered_after_its_effect_whatever_horizons_and_floors(length, is_left_out):
    assert not finds_a_late_delivery(length, RULE, is_left_out=is_left_out)


@pytest.mark.parametrize(
    ("rule", "is_left_out"),
    [
        (Rule(defers=False), True),
        (Rule(covers_longer=False), False),
        (Rule(stamps_rise=False), False),
        (Rule(covers_longer=False, outlives_stamp=False), True),
    ],
    ids=["deferral", "cover", "rising stamps", "deadlines beyond the stamp"],
)
def test_each_rule_of_the_stamped_order_is_needed(rule, is_left_out):
    assert finds_a_late_delivery(1, rule, is_left_out=is_left_out)
