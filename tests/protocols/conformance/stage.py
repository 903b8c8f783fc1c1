"""Runs of the hostile net with a strict store, observed after every move."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import msgspec
from tests.protocols.conformance.subjects import SUBJECTS, Subject, is_watched

from beforehand.check.fuzz.fuzz import play
from beforehand.check.net.case import TROUBLES, Case
from beforehand.check.net.heal import heal
from beforehand.check.net.net import Move, Net
from beforehand.protocols.contract.base import Message, MessageId, Timer
from beforehand.protocols.contract.driver import INBOX, BroadcasterDriver, Driver, PacedDriver
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.contract.tables import Store, Table

SECOND = 1_000_000
TIMER_SEEDS = 25
"""How many runs of a subject show which timers its cores set."""


class Strict(Store):
    """A store that accepts only declared rows that decode to the values that were encoded."""

    def __init__(self, tables: Sequence[Table]) -> None:
        super().__init__()
        self._tables = {table.name: table for table in (*tables, INBOX)}

    def save(self, saves: Any) -> None:
        for name, key, value in saves:
            table = self._tables[name]
            assert _round_trip(key, table.key) == key
            if name == INBOX.name and value is not None:
                plain: Any = _round_trip(value, table.value)
                for field_name in Message.__struct_fields__:
                    assert getattr(plain, field_name) == getattr(value, field_name)
            else:
                assert value is None or _round_trip(value, table.value) == value
        super().save(saves)


def _round_trip(thing: object, kind: Any) -> object:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(thing), type=kind)


@dataclass
class Stage(Net):
    """A net that also counts effects and records broadcasts and timers."""

    effects: Counter[int] = field(default_factory=Counter)
    spoken: list[tuple[MessageId, list[MessageId]]] = field(default_factory=list)
    """Every broadcast, and the deliveries of its step."""
    stores: list[Store] = field(default_factory=list)
    timers_set: set[Timer] = field(default_factory=set)

    def send(self, node: Any, sends: Sequence[tuple[Any, Any]]) -> None:
        self.effects[node] += len(sends)
        super().send(node, sends)

    def deliver(self, node: Any, messages: Sequence[Message]) -> None:
        self.effects[node] += len(messages)
        super().deliver(node, messages)

    def broadcasted(self, node: Any, message: MessageId, deliveries: list[Message]) -> None:
        self.spoken.append((message, [delivered.id for delivered in deliveries]))
        super().broadcasted(node, message, deliveries)

    def wake(self, node: Any, timer: Timer, due_us: int, ticket: int) -> None:
        self.timers_set.add(timer)
        super().wake(node, timer, due_us, ticket)


def make_stage(subject: Subject, case: Case, *, durable: bool | None = None) -> Stage:
    stage = Stage(subject, case, subject.make_core)
    stage.broadcasts = list(case.broadcasts)
    stage.left.update({trouble: getattr(case, trouble) for trouble in TROUBLES})
    stage.offsets_us = list(case.ahead_us)
    stage.shift_us = case.shift_us
    for node in range(case.nodes):
        core = subject.make_core(case, node, durable)
        store = Strict(core.tables)
        stage.stores.append(store)
        driver = BroadcasterDriver if hasattr(core, "on_broadcast") else Driver[Any]
        driver = PacedDriver if hasattr(core, "on_room") else driver
        make = _maker(subject, case, node, durable)
        stage.drivers.append(driver(make, stage, store=store, inbox=case.inbox))
    return stage


def _maker(subject: Subject, case: Case, node: int, durable: bool | None) -> Callable[[], Any]:
    return lambda: subject.make_core(case, node, durable)


def drawn(subject: Subject, seed: int) -> tuple[Case, list[Move]]:
    net, moves = play(seed, subject)
    assert net.problem is None, net.problem
    return net.case, moves


def played(subject: Subject, seed: int, **options: Any) -> Iterator[Stage]:
    """The net after each move of a run."""
    case, moves = drawn(subject, seed)
    stage = make_stage(subject, case, **options)
    yield stage
    for move in moves:
        stage.do(move)
        yield stage
    assert stage.problem is None, stage.problem


def watched(stage: Stage) -> list[tuple[int, Any]]:
    """The nodes whose cores are under test, with these cores."""
    return [
        (node, driver.core)
        for node, driver in enumerate(stage.drivers)
        if driver.is_up and is_watched(driver.core)
    ]


@cache
def timers_of(family: str) -> frozenset[Timer]:
    """The timers that the cores of a family set, as its runs show."""
    found: set[Timer] = set()
    for subject in SUBJECTS:
        if subject.family.name == family:
            for seed in range(TIMER_SEEDS):
                case, moves = drawn(subject, seed)
                stage = make_stage(subject, case)
                for move in moves:
                    stage.do(move)
                heal(stage)
                found |= stage.timers_set
    return frozenset(found)


def copied(core: Any) -> Any:
    return pickle.loads(pickle.dumps(core))


def give(core: Any, name: str, now_us: int, *args: Any) -> Outbox[Any]:
    out: Outbox[Any] = Outbox()
    if name == "on_broadcast":
        payload, *rest = args
        core.on_broadcast(now_us, payload, out, *rest)
    else:
        getattr(core, name)(now_us, *args, out)
    return out


def is_idle(out: Outbox[Any]) -> bool:
    return not any(msgspec.structs.asdict(out).values())


def seqs_grow(stage: Stage) -> bool:
    """Whether the sequence numbers of each origin grow strictly."""
    seqs: dict[Any, list[int]] = {}
    for (origin, seq), _ in stage.spoken:
        seqs.setdefault(origin, []).append(seq)
    return all(own == sorted(set(own)) for own in seqs.values())
