"""The rows that a core saves, and the answers of a restored core."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
from tests.protocols.conformance.stage import copied, give, played, watched
from tests.protocols.conformance.subjects import FACTS, Subject, options_of, runs, subjects

from beforehand.check.net.case import Case
from beforehand.protocols.contract.base import MessageId, MessageStatus
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.contract.tables import Store
from beforehand.protocols.observer.observer import TIMER

ALWAYS_DURABLE: tuple[str, ...] = ()
"""Families whose cores save in every case, also where no node crashes."""


@subjects(only=lambda subject: subject.is_durable)
@runs(4)
def test_saved_rows_are_declared_and_survive_an_encoder_that_knows_no_types(subject, seed):
    *_, stage = played(subject, seed)  # `Strict` takes nothing else
    assert all(stage.stores[node].count() for node, core in watched(stage) if _has_news(core))


def _has_news(core: Any) -> bool:
    return bool(core.tables and (core.counters.broadcast or core.counters.received))


@subjects(only=lambda subject: subject.family.name not in ALWAYS_DURABLE)
@runs(4)
def test_a_core_that_is_not_durable_saves_nothing(subject, seed):
    *_, stage = played(subject, seed, durable=False)
    assert [store.count() for store in stage.stores] == [0] * stage.case.nodes
    assert all(core.tables == () for _, core in watched(stage))


@subjects(only=lambda subject: subject.is_durable)
@runs(4)
def test_a_restored_core_answers_like_the_one_that_never_crashed(subject, seed):
    latest_us: Counter[int] = Counter()  # that a deadline has passed is saved with its effects
    for stage in played(Predictable(subject), seed):
        for node, core in watched(stage):
            if not core.tables:  # a station does not crash
                continue
            now_us = latest_us[node] = max(latest_us[node], stage.local_us(node))
            restored = subject.make_core(stage.case, node)
            rows = stage.stores[node].load(restored.tables)
            give(restored, "restore", now_us, rows)
            ids = [*stage.oracle.pasts, (node, 99), (98, 1)]
            lifetime_us = stage.case.lifetimes_us[0]
            answers = (_answers(subject, it, now_us, lifetime_us, ids) for it in (restored, core))
            assert next(answers) == next(answers)


class Predictable(Subject):
    """The same cores without random eviction: a restored core draws other random numbers."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject.family, durable=subject.is_durable)

    def draw(self, rng: random.Random) -> Case:
        case = super().draw(rng)
        if self.kind != "contact" or hasattr(case.options, "flow"):
            return case
        options = msgspec.structs.replace(options_of(case), eviction="oldest")
        return replace(case, options=replace(case.options, options=options))


def _answers(
    subject: Subject, core: Any, now_us: int, lifetime_us: int | None, ids: Sequence[MessageId]
) -> list[Any]:
    """Return the next id of the core, and its answers to `explain` after it has read its clock."""
    other = copied(core)
    if subject.kind == "feed":
        give(other, "on_timer", now_us, TIMER)
        spoken: Any = None
    else:
        lifetime = () if lifetime_us is None else (lifetime_us,)
        spoken = other.on_broadcast(now_us, b"", Outbox(), *lifetime)
    if subject.kind == "cell":  # early messages are forgotten with the cell
        give(other, "on_link", now_us, other.cell, False)
    fates = [other.explain(id) for id in ids]
    if subject.kind == "feed":  # it forgets when it has looked, and a new one looks at once
        fates = [fate if fate.state == "waiting" else MessageStatus("unknown") for fate in fates]
    return [spoken, *((id, f.state, sorted(f.missing)) for id, f in zip(ids, fates, strict=True))]


@subjects(only=lambda subject: subject.is_durable)
def test_a_core_that_restores_nothing_is_like_a_new_one(subject):
    for seed in range(4):
        case = subject.case(seed)
        node = FACTS[subject.kind].victims(case)[-1]
        core, new = (subject.make_core(case, node) for _ in range(2))
        out = give(core, "restore", 5, Store().load(core.tables))
        assert (out.saves, out.sends, out.deliveries) == ([], [], [])
        answers = (_answers(subject, it, 5, case.lifetimes_us[0], [(1, 1)]) for it in (core, new))
        assert next(answers) == next(answers)
