"""Clocks that are off, that are set, and that fall."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from tests.protocols.conformance.stage import SECOND, drawn, give, make_stage, played
from tests.protocols.conformance.subjects import (
    FACTS,
    Subject,
    lifetimes_of,
    options_of,
    runs,
    subjects,
)

from beforehand.check.net.case import Case, Family, held_for_no_reason
from beforehand.check.net.heal import HEAL_US, heal
from beforehand.check.net.net import Net
from beforehand.check.rules.oracle import Violation
from beforehand.protocols.contract.base import Message
from beforehand.protocols.epidemic.epidemic import ANNOUNCE_TIMER
from beforehand.protocols.epidemic.frames import Announce, Request
from beforehand.protocols.epidemic.sender import RETRY_TIMER
from beforehand.protocols.orders.order import Lifetimes

SKEW_US = 1_000 * SECOND
"""More than a net has for healing: a node that waits for a clock to catch up is found out."""
LIFETIMES = Lifetimes(9_000 * SECOND, 9_000 * SECOND, SKEW_US + 1)
ANY_US = 1_000_000 * SECOND
BEFORE_US = 30 * 365 * 86_400 * SECOND
"""30 years, and a multiple of every announcement period that the families draw: the ticks of such a
period are instants of the clock, so another shift would change the run."""


@subjects()
@runs(4)
def test_order_holds_while_clocks_are_set_within_the_agreed_skew(subject, seed):
    for _ in played(subject, seed):
        pass  # the net judges every delivery


@subjects()
@runs(4)
def test_clocks_before_1970_deliver_what_clocks_after_it_deliver(subject, seed):
    """The same run twice. In the second, every clock shows a time that is 30 years earlier."""
    case, moves = drawn(subject, seed)
    ahead_us = case.ahead_us or (0,) * case.nodes
    delivered = []
    for shift_us in (0, -BEFORE_US):
        stage = make_stage(subject, replace(case, ahead_us=tuple(us + shift_us for us in ahead_us)))
        for move in moves:
            stage.do(("set", move[1], move[2] + shift_us) if move[0] == "set" else move)
        heal(stage)
        assert stage.problem is None, stage.problem
        delivered.append({node: len(ids) for node, ids in stage.oracle.delivered.items()})
    assert delivered[0] == delivered[1]


@subjects()
@runs(4)
def test_clocks_that_fall_by_any_amount_crash_nothing_and_deliver_nothing_twice(subject, seed):
    case, moves = drawn(subject, seed)
    stage = make_stage(Lawless(subject), case)
    stage.left["settings"] = len(moves)
    rng = random.Random(seed)
    for move in moves:
        if move[0] != "set":
            stage.do(move)
        if move[0] == "set" or rng.random() < 0.1:
            node = rng.randrange(case.nodes)
            fall_us = rng.choice((0, 1, SECOND, SKEW_US, 2 * SKEW_US, ANY_US, 1 << 60))
            stage.do(("set", node, stage.offsets_us[node] - fall_us))
    heal(stage)
    assert stage.problem is None, stage.problem


class Lawless(Subject):
    """The same cores where clocks break the agreement: a core that needs one promises no order."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject.family, durable=subject.is_durable)
        case = subject.case()
        needs = [subject.make_core(case, node).needs for node in range(case.nodes)]
        self._needs_clocks = any(need.clocks_within_us is not None for need in needs)

    def judges(self, violation: Violation) -> bool:
        is_late = violation.kind == "late"
        return not is_late if self._needs_clocks else self.family.judges(violation)

    def flaw(self, net: Net, node: int, message: Message) -> str | None:
        return Family.flaw(self, net, node, message)

    def problems(self, net: Net) -> Iterator[str]:
        return iter(())


@subjects()
@runs(4)
def test_no_node_waits_for_a_clock_to_catch_up(subject, seed):
    """All clocks fall at once by more than the time in which the net must heal."""
    patient = Patient(subject)
    case, moves = drawn(patient, seed)
    stage = make_stage(patient, replace(case, ahead_us=(case.skew_us,) * case.nodes, settings=0))
    for move in moves:
        stage.do(move)
    if case.losses:
        wired = {flight: it for flight, it in stage.flights.items() if stage.is_wire(*flight[:2])}
        stage.flights = wired
    stage.offsets_us = [0] * case.nodes
    heal(stage)
    assert stage.problem is None, stage.problem
    facts = FACTS[subject.kind]
    for node in facts.victims(case):
        assert facts.due(stage, node) <= set(stage.oracle.delivered[node])


class Patient(Subject):
    """The same cores with long lifetimes and a large agreed skew, and caches without a bound."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject.family, durable=subject.is_durable)

    def draw(self, rng: random.Random) -> Case:
        case = super().draw(rng)
        if self.kind == "contact":
            case = _with_patience(case, rng)
        assert case.skew_us >= HEAL_US or self.kind == "feed", "a skew that proves nothing"
        return case

    def problems(self, net: Net) -> Iterator[str]:
        return held_for_no_reason(net)


def _with_patience(case: Case, rng: random.Random) -> Case:
    if hasattr(case.options, "capacity"):
        case = replace(case, options=replace(case.options, capacity=None, capacity_bytes=None))
    else:
        unbounded = msgspec.structs.replace(options_of(case), capacity=None, capacity_bytes=None)
        case = replace(case, options=replace(case.options, options=unbounded))
    if lifetimes_of(case) is None:
        return case
    return replace(
        case,
        options=replace(case.options, lifetimes=LIFETIMES),
        lifetimes_us=(3_000 * SECOND, 9_000 * SECOND),
        skew_us=SKEW_US,
        ahead_us=tuple(rng.choice((0, SKEW_US)) for _ in range(case.nodes)),
    )


def _repeating(subject: Subject) -> list[Case]:
    """Return cases in which nodes retransmit unanswered frames."""
    if subject.kind != "contact":
        return []
    cases = [subject.case(seed) for seed in range(30)]
    return [case for case in cases if options_of(case).retry_us is not None]


@subjects(only=_repeating)
@pytest.mark.parametrize("fall_us", [0, 1, SECOND, SKEW_US, ANY_US])
def test_unanswered_frames_are_repeated_by_a_timer_however_far_the_clock_fell(subject, fall_us):
    for case in _repeating(subject):
        core: Any = subject.make_core(case, 0)
        retry_us, now_us = options_of(case).retry_us, 2 * ANY_US
        lifetime_us, still_alive_us = case.lifetimes_us[0], now_us + retry_us + SECOND
        give(core, "on_broadcast", now_us, b"", *(() if lifetime_us is None else (lifetime_us,)))
        outs = [
            give(core, "on_link", now_us, 1, True),
            give(core, "on_timer", now_us, ANNOUNCE_TIMER),
            give(core, "on_message", now_us, 1, Announce(1, frozenset({(1, still_alive_us)}))),
        ]
        said = {(type(frame), frame.ids) for out in outs for _, frame in out.sends}
        assert {kind for kind, _ in said} == {Announce, Request}
        wait_us = retry_us if fall_us == 0 else 0  # a clock that stands still shows nothing
        again = give(core, "on_timer", now_us - fall_us + wait_us, RETRY_TIMER).sends
        assert {(type(frame), frame.ids) for _, frame in again} == said
