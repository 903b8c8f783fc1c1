"""Inputs that a core must refuse."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from tests.protocols.conformance.stage import copied, is_idle, played
from tests.protocols.conformance.subjects import FACTS, runs, subjects

from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.vcube.node import VCube


@subjects()
@runs(4)
def test_an_input_that_raises_has_changed_nothing(subject, seed):
    facts = FACTS[subject.kind]
    for stage in played(subject, seed):
        node = facts.misused(stage.case)
        core = stage.drivers[node].core
        if subject.kind == "contact" and (0, 1) not in stage.contacts:
            continue
        before = _without_refusals(core)
        for error, name, args in facts.bad_inputs(stage.case):
            out: Outbox[Any] = Outbox()
            with pytest.raises(error):
                getattr(core, name)(stage.local_us(node) + 1, *_in_order(name, args, out))
            assert is_idle(out)
        assert _without_refusals(core) == before


def _in_order(name: str, args: tuple[Any, ...], out: Outbox[Any]) -> tuple[Any, ...]:
    return (args[0], out, *args[1:]) if name == "on_broadcast" else (*args, out)


def _without_refusals(core: Any) -> bytes:
    """The state without the count of refusals, which is all that a refusal may change."""
    other = copied(core)
    if isinstance(other, VCube):
        other.refused = 0
    else:
        other.counters.refused = 0
    return pickle.dumps(other)
