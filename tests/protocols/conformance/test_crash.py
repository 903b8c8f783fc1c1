"""A crash at every point of a run, and a second one during the restart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.protocols.conformance.stage import Stage, drawn, make_stage, seqs_grow
from tests.protocols.conformance.subjects import FACTS, Subject, runs, subjects

from beforehand.check.net.case import Case
from beforehand.check.net.heal import heal
from beforehand.check.net.net import Move

MOVES_MAX = 30
"""Of a run that is replayed for every point of a crash."""


@subjects(only=lambda subject: subject.is_durable)
@pytest.mark.parametrize("inbox", [False, True], ids=["at most once", "at least once"])
@runs(4)
def test_a_crash_at_any_point_delivers_nothing_twice_and_loses_only_what_it_reports(
    subject, inbox, seed
):
    case, moves = drawn(subject, seed)
    victims = FACTS[subject.kind].victims(case)
    victim = victims[seed % len(victims)]
    case = replace(case, inbox=inbox, crashes=1)  # so the family expects what a crash costs
    if subject.kind != "feed":  # the victim broadcasts before any crash, and after
        broadcasts = list(case.broadcasts)
        broadcasts[victim] += 2
        case = replace(case, broadcasts=tuple(broadcasts))
        moves = [("broadcast", victim, case.lifetimes_us[-1]), *moves]
    moves = moves[:MOVES_MAX]
    for at in range(len(moves)):
        for effects in range(100):
            stage = _crashed(subject, case, moves[:at], victim, effects, moves[at])
            if stage is None:  # the move is no step of the victim, or all of it was carried out
                break
            _come_back(stage, victim, falls=(at + effects) % 2 == 0)
            for move in moves[at + 1 :]:
                stage.do(move)
            heal(stage)
            _judge(stage, victim)


def _crashed(
    subject: Subject, case: Case, moves: Sequence[Move], victim: int, effects: int, last: Move
) -> Stage | None:
    stage = make_stage(subject, case)
    for move in moves:
        stage.do(move)
    stage.drivers[victim].crash_after = effects
    before = stage.effects[victim]
    stage.do(last)
    if stage.drivers[victim].is_up or stage.effects[victim] - before < effects - 2:
        return None
    return stage


def _come_back(stage: Stage, victim: int, *, falls: bool) -> None:
    if falls and stage.case.settings:  # as far as was agreed
        stage.offsets_us[victim] = 0
    stage.drivers[victim].crash_after = 1  # and once more, while it restarts
    stage.do(("restart", victim))
    assert not stage.drivers[victim].is_up
    stage.do(("restart", victim))
    stage.do(("broadcast", victim, stage.case.lifetimes_us[-1]))


def _judge(stage: Stage, victim: int) -> None:
    """Return the messages that nodes lack, by the family (`Family.problems`)."""
    assert stage.problem is None, stage.problem
    assert seqs_grow(stage)
    if not stage.case.inbox:
        cut_off = {message.id for message in stage.drivers[victim].cut_off}
        assert not set(stage.oracle.delivered[victim]) & cut_off
