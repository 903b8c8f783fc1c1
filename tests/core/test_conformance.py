"""Every core keeps the contract of `core.base`, whatever it is given that the contract allows.

One table of cores, one suite. A seed draws a run of the hostile net (`check.fuzz`); the tests look
at the cores after every move of it, or play it again with a crash at every point.
"""

from __future__ import annotations

import pickle
import random
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from beforehand.check.case import Case, Family, held_for_no_reason
from beforehand.check.families.observer import EVENTS_MAX, TICK_US, Process
from beforehand.check.fuzz import play
from beforehand.check.heal import heal
from beforehand.check.net import Move, Net
from beforehand.check.oracle import Violation
from beforehand.core.barrier import Barrier
from beforehand.core.base import Fate, Message, MessageId, Timer
from beforehand.core.driver import INBOX, Driver, SpeakerDriver
from beforehand.core.epidemic import ANNOUNCE_TIMER, RETRY_TIMER, Epidemic
from beforehand.core.frames import Announce, Data, Request
from beforehand.core.keeping import ASK
from beforehand.core.mobile import ck_discard, ck_host, ck_station, host, station, tcp_flooding
from beforehand.core.mobile.pace import Pace
from beforehand.core.mobile.systems import SYSTEMS
from beforehand.core.mobile.tcp import Tcp
from beforehand.core.observer import PERFECT, TIMER, Observer, Stamped
from beforehand.core.options import Options
from beforehand.core.order import ORDER_TIMER, Lifetimes
from beforehand.core.outbox import Outbox
from beforehand.core.packets import Answer, Ask, CubeMessage, Known, Packet
from beforehand.core.tables import Store, Table
from beforehand.core.timestamp import Guarantees, Stamp
from beforehand.core.unordered import Unordered
from beforehand.core.vcube import VCube
from beforehand.core.vector import Vector
from beforehand.errors import LocalError, RemoteError

SECOND = 1_000_000
SKEW_US = 1_000 * SECOND
"""More than a healed net is given: who waits for a clock to catch up is found out."""
LIFETIMES = Lifetimes(9_000 * SECOND, 9_000 * SECOND, SKEW_US + 1)
ANY_US = 1_000_000 * SECOND
LONG_US = 1 << 55
"""Longer than any clock is off."""
GUARANTEES = Guarantees(2, epsilon=3, delta=10, events_per_tick=EVENTS_MAX)
MOVES_MAX = 30
"""Of a run that is played again for every point of a crash."""

BadInput = tuple[type[Exception], str, tuple[Any, ...]]


class Entry(Family):
    """A core under test, and the trouble that it says it can bear."""

    sights = ()
    keys: tuple[Timer, ...] = ()
    """The timers it is known to set."""
    is_causal = True
    is_durable = True
    victims: tuple[int, ...] = (0, 1, 2)
    nodes = 3
    misused = 0
    """Who gets the bad inputs."""
    delivers_own_at_once = True

    def __init__(self, name: str, make: Callable[[int, bool], Any], **case: Any) -> None:
        self.name = name
        self._make = make
        self._case = case

    def draw(self, rng: random.Random) -> Case:
        case = {"skew_us": ANY_US, "settings": 8, **self._case}
        ahead_us = tuple(rng.choice((0, case["skew_us"])) for _ in range(self.nodes))
        says = (4,) * (self.nodes if self.kind != "feed" else self.nodes - 1)
        return Case(self.nodes, (*says, 0)[: self.nodes], ahead_us=ahead_us, **case)

    def make_core(self, case: Case, node: int, durable: bool | None = None) -> Any:
        return self._make(node, self.is_durable if durable is None else durable)

    def judges(self, violation: Violation) -> bool:
        return self.is_causal or violation.kind != "late"

    def problems(self, net: Net) -> Iterator[str]:
        yield from held_for_no_reason(net)

    def due(self, net: Net, node: int) -> set[MessageId]:
        """What the node must have delivered, now that all is healed."""
        return set(net.oracle.pasts)

    @abstractmethod
    def bad_inputs(self) -> list[BadInput]:
        """For one node, if it is node 0 linked to node 1: the error, the input, its arguments."""


class ContactEntry(Entry):
    kind = "contact"

    def __init__(
        self, name: str, order: Callable[..., Any], options: Options, expires: bool = False
    ) -> None:
        def make(node: int, durable: bool) -> Epidemic:
            stands_on = order(node, LIFETIMES) if expires else order(node)
            return Epidemic(node, stands_on, random.Random(node), options, durable=durable)

        case: dict[str, Any] = {"flaps": 4}
        if options.retry_us is not None:
            case |= {"losses": 8, "doubles": 4}
        if expires:
            case |= {"skew_us": SKEW_US, "lifetimes_us": (3_000 * SECOND, 9_000 * SECOND)}
        super().__init__(name, make, **case)
        self.is_causal = order is not Unordered
        self.keys = tuple(
            timer
            for timer, is_set in (
                (ANNOUNCE_TIMER, options.announce_us),
                (RETRY_TIMER, options.retry_us),
                (ORDER_TIMER, expires and order is Barrier),
            )
            if is_set
        )
        self.expires = expires

    def due(self, net: Net, node: int) -> set[MessageId]:
        """With lifetimes: what has not expired, nor waits for something that will."""
        ids = super().due(net, node)
        if not self.expires:
            return ids
        explain = net.drivers[node].core.explain
        alive = {id for id in ids if id[1] > net.now_us + SKEW_US}
        return {id for id in alive if not explain(id).missing}

    def bad_inputs(self) -> list[BadInput]:
        too_long_us = LIFETIMES.longest_us + 1
        lifetimes = (0, -1, too_long_us) if self.expires else (1, 0)
        return [
            *((LocalError, "on_broadcast", (b"", us)) for us in lifetimes),
            (RemoteError, "on_message", (1, Packet(0, ()))),
        ]


class CubeEntry(Entry):
    kind = "detector"
    keys = (ASK,)
    nodes = 4
    victims = (0, 3)

    def __init__(self, name: str, keep_us: int, is_durable: bool, **options: Any) -> None:
        def make(node: int, durable: bool) -> VCube:
            return VCube(node, self.nodes, keep_us=keep_us, durable=durable, **options)

        super().__init__(name, make, suspicions=3 if keep_us else 0)
        self.keep_us = keep_us
        self.is_durable = is_durable

    def due(self, net: Net, node: int) -> set[MessageId]:
        """All but what was kept by nobody any more, and that takes time."""
        explain = net.drivers[node].core.explain
        missed = {id for id in net.oracle.pasts if explain(id).state == "missed"}
        assert not missed or net.now_us >= self.keep_us or self.keep_us < ANY_US
        return set(net.oracle.pasts) - missed

    def bad_inputs(self) -> list[BadInput]:
        strange = CubeMessage((1, 1), ((9, 1),), b"")
        inputs: list[BadInput] = [
            (LocalError, "on_broadcast", (b"", 5)),
            (LocalError, "on_link", (9, True)),
            (LocalError, "on_link", (0, False)),
            (LocalError, "on_link", ("x", True)),
            (RemoteError, "on_message", (9, Packet(0, ()))),
            (RemoteError, "on_message", (1, Packet(7, ()))),
            (RemoteError, "on_message", (1, Packet(0, (strange,)))),
            (RemoteError, "on_message", (1, Ask((1,)))),
            (RemoteError, "on_message", (1, Answer((1, -1, 0, 0)))),
            (RemoteError, "on_message", (1, Known(0))),
        ]
        if not self.keep_us:
            own = CubeMessage((0, 99), (), b"")
            inputs += [
                (RemoteError, "on_message", (1, Packet(0, (own,)))),
                (RemoteError, "on_message", (1, Ask((0, 0, 0, 0)))),
            ]
        return inputs


class ObserverEntry(Entry):
    """Two processes, and node 2 watches them."""

    kind = "feed"
    learns = True
    keys = (TIMER,)
    victims = (2,)

    def __init__(self) -> None:
        def make(node: int, durable: bool) -> Any:
            if node < 2:
                return Process(node, GUARANTEES)
            return Observer(node, GUARANTEES, PERFECT, tick_us=TICK_US, durable=durable)

        delay_us = (GUARANTEES.delta - GUARANTEES.epsilon - 2) * TICK_US
        super().__init__(
            "observer",
            make,
            skew_us=GUARANTEES.epsilon * TICK_US,
            delay_us_max=delay_us,
            losses=3,
            doubles=3,
        )

    def due(self, net: Net, node: int) -> set[MessageId]:
        """All that it received and saved."""
        return {id for who, id in net.held if who == node} | set(net.oracle.delivered[node])

    def bad_inputs(self) -> list[BadInput]:
        short = Stamped(Message((1, 1), (), b""), 1, Stamp(0, 0, (1,)))
        return [(RemoteError, "on_message", (1, short))]


class CellEntry(Entry):
    """Two stations, and three hosts that join whenever they enter a cell."""

    kind = "cell"
    nodes = 5
    victims = (2, 3)
    misused = 2

    def __init__(self, name: str, keys: Sequence[Timer], **options: Any) -> None:
        system = SYSTEMS[name]

        def make(node: int, durable: bool) -> Any:
            if node < 2:
                return system.make_station(node, WIRES, Pace(), **options)
            core = system.make_host(node, Pace(), **options)
            if not durable:
                core.tables = ()
            return core

        super().__init__(name, make, losses=8, doubles=4, flaps=4 if system.is_mobile else 0)
        self.keys = tuple(keys)
        self.is_durable = system.survives_crashes
        self.delivers_own_at_once = name == "tcp_flooding"

    def draw(self, rng: random.Random) -> Case:
        case = super().draw(rng)
        return replace(case, says=(0, 0, 4, 4, 4), stations=2, edges=WIRES)

    def due(self, net: Net, node: int) -> set[MessageId]:
        """Its own messages, and of all others what follows the first one that it got."""
        has = {*net.oracle.delivered[node], *(m.id for m in net.drivers[node].cut_off)}
        first = {origin: min(seq for o, seq in has if o == origin) for origin, _ in has}
        first[node] = 0
        return {id for id in net.oracle.pasts if id[1] >= first.get(id[0], id[1] + 1)}

    def bad_inputs(self) -> list[BadInput]:
        return [(LocalError, "on_broadcast", (b"", 5))]


WIRES = ((0, 1),)
WAS_KEYS = (host.CONNECT, host.ACK, host.RETRY, station.ACK, station.RETRY)
CK_KEYS = (
    *(ck_host.CONNECT, ck_host.RETRY, ck_discard.FLUSH),
    *(ck_station.ACK, ck_station.RETRY, ck_station.GATHER),
)
TCP_KEYS = (tcp_flooding.CONNECT, tcp_flooding.GAP)
LOSSY = Options(retry_us=SECOND)
PUSHED = Options(push=True, announce_us=SECOND, frame_bytes_max=1)
SLOW = Options(retry_us=2 * SECOND, announce_us=SECOND, frame_bytes_max=1)
ENTRIES: list[Entry] = [
    ContactEntry("causal", Barrier, Options()),
    ContactEntry("causal, retry", Barrier, LOSSY),
    ContactEntry("causal, retry, period", Barrier, SLOW),
    ContactEntry("causal, push", Barrier, Options(push=True)),
    ContactEntry("delta", Barrier, Options(), expires=True),
    ContactEntry("delta, push, period", Barrier, PUSHED, expires=True),
    ContactEntry("delta, retry", Barrier, LOSSY, expires=True),
    ContactEntry("vector", Vector, Options()),
    ContactEntry("vector, retry", Vector, LOSSY),
    ContactEntry("unordered", Unordered, Options()),
    ContactEntry("unordered, retry", Unordered, LOSSY),
    ContactEntry("unordered, lifetimes", Unordered, Options(), expires=True),
    ContactEntry("unordered, lifetimes, retry", Unordered, LOSSY, expires=True),
    CubeEntry("vcube", 0, False),
    CubeEntry("vcube, keep", LONG_US, False),
    CubeEntry("vcube, keep, durable", LONG_US, True),
    CubeEntry("vcube, keep, durable, one tree", LONG_US, True, root=1),
    CubeEntry("vcube, keep a while, durable", 5 * SECOND, True),
    ObserverEntry(),
    CellEntry("was", WAS_KEYS),
    CellEntry("was_flood", WAS_KEYS),
    CellEntry("ck", CK_KEYS),
    CellEntry("tcp_flooding", TCP_KEYS, tcp=Tcp(timeout_us_max=3 * SECOND)),
]
KEYS: tuple[Timer, ...] = (
    *(ANNOUNCE_TIMER, RETRY_TIMER, ORDER_TIMER, ASK, TIMER),
    *(*WAS_KEYS, *CK_KEYS, *TCP_KEYS),
)


def entries(*, only: Callable[[Entry], bool] = lambda _: True) -> pytest.MarkDecorator:
    chosen = [pytest.param(entry, id=entry.name) for entry in ENTRIES if only(entry)]
    return pytest.mark.parametrize("entry", chosen)


def runs(count: int) -> Callable[..., Any]:
    """So many random runs. A seed does not shrink, so nobody tries to."""
    given_seed = given(seed=st.integers(0, (1 << 32) - 1))
    return lambda test: settings(max_examples=count, phases=[Phase.explicit, Phase.generate])(
        given_seed(test)
    )


class Strict(Store):
    """A store that takes only what was declared, and only what comes back as it went in."""

    def __init__(self, tables: Sequence[Table]) -> None:
        super().__init__()
        self._tables = {table.name: table for table in (*tables, INBOX)}

    def save(self, saves: Any) -> None:
        for name, key, value in saves:
            table = self._tables[name]
            assert _round_trip(key, table.key) == key
            if name == INBOX.name and value is not None:
                assert msgspec.to_builtins(_round_trip(value, table.value)) == msgspec.to_builtins(
                    value
                )
            else:
                assert value is None or _round_trip(value, table.value) == value
        super().save(saves)


def _round_trip(thing: object, kind: Any) -> object:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(thing), type=kind)


@dataclass
class Stage(Net):
    """A net that also counts effects and notes what was spoken."""

    effects: Counter[int] = field(default_factory=Counter)
    spoken: list[tuple[MessageId, list[MessageId]]] = field(default_factory=list)
    """Every broadcast, and the deliveries of its step."""
    stores: list[Store] = field(default_factory=list)

    def send(self, node: Any, sends: Sequence[tuple[Any, Any]]) -> None:
        self.effects[node] += len(sends)
        super().send(node, sends)

    def deliver(self, node: Any, messages: Sequence[Message]) -> None:
        self.effects[node] += len(messages)
        super().deliver(node, messages)

    def spoke(self, node: Any, message: MessageId, deliveries: list[Message]) -> None:
        self.spoken.append((message, [delivered.id for delivered in deliveries]))
        super().spoke(node, message, deliveries)


def make_stage(entry: Entry, case: Case, *, durable: bool | None = None) -> Stage:
    stage = Stage(entry, case, entry.make_core)
    stage.says = list(case.says)
    troubles = ("losses", "doubles", "flaps", "crashes", "suspicions", "settings")
    stage.left.update({trouble: getattr(case, trouble) for trouble in troubles})
    stage.offsets_us = list(case.ahead_us)
    for node in range(case.nodes):
        core = entry.make_core(case, node, durable)
        store = Strict(core.tables)
        stage.stores.append(store)
        driver = SpeakerDriver if hasattr(core, "on_broadcast") else Driver[Any]
        make = _maker(entry, case, node, durable)
        stage.drivers.append(driver(make, stage, store=store, inbox=case.inbox))
    return stage


def _maker(entry: Entry, case: Case, node: int, durable: bool | None) -> Callable[[], Any]:
    return lambda: entry.make_core(case, node, durable)


def drawn(entry: Entry, seed: int) -> tuple[Case, list[Move]]:
    net, moves = play(seed, entry)
    assert net.problem is None, net.problem
    return net.case, moves


def played(entry: Entry, seed: int, **options: Any) -> Iterator[Stage]:
    """The net after each move of a run."""
    case, moves = drawn(entry, seed)
    stage = make_stage(entry, case, **options)
    yield stage
    for move in moves:
        stage.do(move)
        yield stage
    assert stage.problem is None, stage.problem


def watched(stage: Stage) -> list[tuple[int, Any]]:
    """The nodes whose cores are under test, and these."""
    return [
        (node, driver.core)
        for node, driver in enumerate(stage.drivers)
        if driver.is_up and not isinstance(driver.core, Process)
    ]


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


# ---- clocks -------------------------------------------------------------------------------------


@entries()
@runs(4)
def test_order_holds_while_clocks_are_set_within_what_was_agreed(entry, seed):
    for _ in played(entry, seed):
        pass  # every delivery is judged


@entries()
@runs(4)
def test_clocks_that_fall_by_any_amount_crash_nothing_and_deliver_nothing_twice(entry, seed):
    case, moves = drawn(entry, seed)
    lawless = _Lawless(entry)
    stage = make_stage(lawless, case)
    rng = random.Random(seed)
    for move in moves:
        if move[0] == "set":
            fall_us = rng.choice((0, 1, SECOND, SKEW_US, 2 * SKEW_US, ANY_US, 1 << 60))
            move = ("set", move[1], stage.offsets_us[move[1]] - fall_us)
        stage.do(move)
    heal(stage)
    assert stage.problem is None, stage.problem


class _Lawless(Entry):
    """The same, where clocks break the agreement: order is not promised any more."""

    def __init__(self, entry: Entry) -> None:
        super().__init__(entry.name, entry._make)
        self.kind, self.learns, self.is_durable = entry.kind, entry.learns, entry.is_durable
        self._entry = entry

    def bad_inputs(self) -> list[BadInput]:
        return self._entry.bad_inputs()

    def judges(self, violation: Violation) -> bool:
        return violation.kind != "late"

    def problems(self, net: Net) -> Iterator[str]:
        return iter(())


@entries()
@runs(4)
def test_nobody_waits_for_a_clock_to_catch_up(entry, seed):
    """All clocks fall at once; then the net has a minute, far less than they fell by."""
    case, moves = drawn(entry, seed)
    stage = make_stage(entry, replace(case, ahead_us=(case.skew_us,) * case.nodes, settings=0))
    for move in moves:
        stage.do(move)
    if case.losses:
        wired = {flight: it for flight, it in stage.flights.items() if stage.is_wire(*flight[:2])}
        stage.flights = wired
    stage.offsets_us = [0] * case.nodes
    heal(stage)
    assert stage.problem is None, stage.problem
    for node in entry.victims:
        assert entry.due(stage, node) <= set(stage.oracle.delivered[node])


@entries(only=lambda entry: RETRY_TIMER in entry.keys)
@pytest.mark.parametrize("fall_us", [0, 1, SECOND, SKEW_US, ANY_US])
def test_what_nobody_answered_is_repeated_by_a_timer_however_far_the_clock_fell(entry, fall_us):
    core, now_us = entry.make_core(None, 0), 2 * ANY_US
    give(core, "on_broadcast", now_us, b"")
    outs = [
        give(core, "on_link", now_us, 1, True),
        give(core, "on_timer", now_us, ANNOUNCE_TIMER),
        give(core, "on_message", now_us, 1, Announce(1, frozenset({(1, now_us + SECOND)}))),
    ]
    said = {(type(frame), frame.ids) for out in outs for _, frame in out.sends}
    assert {kind for kind, _ in said} == {Announce, Request}
    wait_us = SLOW.retry_us if fall_us == 0 else 0  # a clock that stands still shows nothing
    again = give(core, "on_timer", now_us - fall_us + wait_us, RETRY_TIMER).sends
    assert {(type(frame), frame.ids) for _, frame in again} == said


# ---- timers and frames that mean nothing --------------------------------------------------------


@entries()
@runs(2)
def test_a_timer_of_a_key_that_it_does_not_know_is_nothing(entry, seed):
    strange: list[Timer] = [("nobody", None), ("nobody", 1), ("", "x")]
    strange += [(kind, 77) for kind, _ in entry.keys]
    _expect_nothing(entry, seed, strange)


@entries()
@runs(2)
def test_a_timer_of_a_key_that_only_other_cores_set_is_nothing(entry, seed):
    _expect_nothing(entry, seed, [key for key in KEYS if key not in entry.keys])


def _expect_nothing(entry: Entry, seed: int, keys: Sequence[Timer]) -> None:
    for stage in played(entry, seed):
        for node, core in watched(stage):
            before = pickle.dumps(core)
            for key in keys:
                assert is_idle(give(core, "on_timer", stage.local_us(node) + 1, key))
            assert pickle.dumps(core) == before


@entries()
@runs(2)
def test_a_timer_that_it_no_longer_waits_for_has_no_effect(entry, seed):
    for stage in played(entry, seed):
        for node, core in watched(stage):
            for key in entry.keys:
                if (node, key) in stage.timers:
                    continue
                other = copied(core)
                out = give(other, "on_timer", stage.local_us(node), key)
                assert (out.sends, out.deliveries) == ([], []), key


@entries(only=lambda entry: entry.kind == "contact")
@runs(2)
def test_a_frame_from_somebody_who_is_not_in_contact_is_ignored(entry, seed):
    message = Message((8, 5), (), b"")
    frames = [Announce(1, frozenset({(8, 5)})), Request(1, frozenset({(0, 1)})), Data((message,))]
    for stage in played(entry, seed):
        for node, core in watched(stage):
            before = pickle.dumps(core)
            assert all(
                is_idle(give(core, "on_message", stage.local_us(node), 8, f)) for f in frames
            )
            assert pickle.dumps(core) == before


@entries(only=lambda entry: entry.kind == "detector")
def test_a_frame_from_a_member_that_is_said_to_be_down_is_taken(entry):
    core = entry.make_core(None, 0)
    give(core, "on_link", 0, 1, False)
    message = CubeMessage((1, 1), (), b"")
    assert give(core, "on_message", 1, 1, Packet(0, (message,))).deliveries == [message]


@entries(only=lambda entry: entry.kind == "feed")
def test_a_frame_of_a_feed_is_taken_from_anybody(entry):
    core = entry.make_core(None, 2)
    message = Message((1, 1), (), b"")
    frame = Stamped(message, 1, Stamp(0, 0, (1,) * GUARANTEES.elements_full))
    assert give(core, "on_message", 0, "anybody", frame).receives == [message]


# ---- misuse -------------------------------------------------------------------------------------


@entries()
@runs(2)
def test_an_input_that_raises_has_changed_nothing(entry, seed):
    for stage in played(entry, seed):
        node, core = watched(stage)[entry.misused]
        if entry.kind == "contact" and (0, 1) not in stage.contacts:
            continue
        before = _without_refusals(core)
        for error, name, args in entry.bad_inputs():
            out: Outbox[Any] = Outbox()
            with pytest.raises(error):
                getattr(core, name)(stage.local_us(node) + 1, *_in_order(name, args, out))
            assert is_idle(out)
        assert _without_refusals(core) == before


def _in_order(name: str, args: tuple[Any, ...], out: Outbox[Any]) -> tuple[Any, ...]:
    return (args[0], out, *args[1:]) if name == "on_broadcast" else (*args, out)


def _without_refusals(core: Any) -> bytes:
    """A refusal is counted; that is all it may leave behind."""
    other = copied(core)
    if isinstance(other, VCube):
        other.refused = 0
    else:
        other.counters.refused = 0
    return pickle.dumps(other)


# ---- broadcasts ---------------------------------------------------------------------------------


@entries(only=lambda entry: entry.kind != "feed" and entry.delivers_own_at_once)
@runs(2)
def test_a_broadcast_gives_the_id_of_a_delivery_of_its_own_step(entry, seed):
    *_, stage = played(entry, seed)
    assert all(message in deliveries for message, deliveries in stage.spoken)


def seqs_grow(stage: Stage) -> bool:
    seqs: dict[Any, list[int]] = {}
    for (origin, seq), _ in stage.spoken:
        seqs.setdefault(origin, []).append(seq)
    return all(own == sorted(set(own)) for own in seqs.values())


@entries(only=lambda entry: entry.kind != "feed")
@runs(2)
def test_the_ids_of_one_origin_grow_strictly(entry, seed):
    *_, stage = played(entry, seed)
    assert seqs_grow(stage)


# ---- what is saved ------------------------------------------------------------------------------


@entries(only=lambda entry: entry.is_durable)
@runs(2)
def test_what_is_saved_is_declared_and_survives_an_encoder_that_knows_no_types(entry, seed):
    *_, stage = played(entry, seed)  # `Strict` takes nothing else
    assert all(stage.stores[node].count() for node, core in watched(stage) if _has_news(core))


def _has_news(core: Any) -> bool:
    return bool(core.tables and (core.counters.broadcast or core.counters.received))


@entries()
@runs(2)
def test_a_core_that_is_not_durable_saves_nothing(entry, seed):
    *_, stage = played(entry, seed, durable=False)
    assert [store.count() for store in stage.stores] == [0] * stage.case.nodes
    assert all(core.tables == () for _, core in watched(stage))


@entries(only=lambda entry: entry.is_durable)
@runs(2)
def test_a_restored_core_answers_like_the_one_that_never_crashed(entry, seed):
    latest_us: Counter[int] = Counter()  # that a deadline has passed is saved with what it did
    for stage in played(entry, seed):
        for node, core in watched(stage):
            if not core.tables:  # a station does not crash
                continue
            now_us = latest_us[node] = max(latest_us[node], stage.local_us(node))
            restored = entry.make_core(stage.case, node)
            rows = stage.stores[node].load(restored.tables)
            give(restored, "restore", now_us, rows)
            ids = [*stage.oracle.pasts, (node, 99), (98, 1)]
            assert _answers(entry, restored, now_us, ids) == _answers(entry, core, now_us, ids)


def _answers(entry: Entry, core: Any, now_us: int, ids: Sequence[MessageId]) -> list[Any]:
    """Its next id, and what it says of all others once it has noticed what time it is."""
    other = copied(core)
    if entry.kind == "feed":
        give(other, "on_timer", now_us, TIMER)
        spoken: Any = None
    else:
        spoken = other.on_broadcast(now_us, b"", Outbox())
    if entry.kind == "cell":  # what came ahead of its turn is forgotten with the cell
        give(other, "on_link", now_us, other.cell, False)
    fates = [other.explain(id) for id in ids]
    if entry.kind == "feed":  # it forgets when it has looked, and a new one looks at once
        fates = [fate if fate.state == "waiting" else Fate("unknown") for fate in fates]
    return [spoken, *((id, f.state, sorted(f.missing)) for id, f in zip(ids, fates, strict=True))]


@entries(only=lambda entry: entry.is_durable)
def test_who_restores_nothing_is_like_new(entry):
    core, new = (entry.make_core(None, 2) for _ in range(2))
    out = give(core, "restore", 5, Store().load(core.tables))
    assert (out.saves, out.sends, out.deliveries) == ([], [], [])
    assert _answers(entry, core, 5, [(1, 1)]) == _answers(entry, new, 5, [(1, 1)])


# ---- crashes ------------------------------------------------------------------------------------


@entries(only=lambda entry: entry.is_durable)
@pytest.mark.parametrize("inbox", [False, True], ids=["at most once", "at least once"])
@runs(2)
def test_a_crash_at_any_point_delivers_nothing_twice_and_loses_what_it_says_it_lost(
    entry, inbox, seed
):
    case, moves = drawn(entry, seed)
    victim = entry.victims[seed % len(entry.victims)]
    case = replace(case, inbox=inbox)
    if entry.kind != "feed":  # it speaks before any crash, and after
        case = replace(case, says=tuple(count + 2 for count in case.says))
        moves = [("speak", victim, case.lifetimes_us[0]), *moves]
    moves = moves[:MOVES_MAX]
    for at in range(len(moves)):
        for effects in range(100):
            stage = _crashed(entry, case, moves[:at], victim, effects, moves[at])
            if stage is None:  # this move is nothing to the victim, or all of it was carried out
                break
            _come_back(stage, victim, falls=(at + effects) % 2 == 0)
            for move in moves[at + 1 :]:
                stage.do(move)
            heal(stage)
            _judge(entry, stage, victim)


def _crashed(
    entry: Entry, case: Case, moves: Sequence[Move], victim: int, effects: int, last: Move
) -> Stage | None:
    stage = make_stage(entry, case)
    for move in moves:
        stage.do(move)
    stage.drivers[victim].fuse = effects
    before = stage.effects[victim]
    stage.do(last)
    if stage.drivers[victim].is_up or stage.effects[victim] - before < effects - 2:
        return None
    return stage


def _come_back(stage: Stage, victim: int, *, falls: bool) -> None:
    if falls:  # as far as was agreed
        stage.offsets_us[victim] = 0
    stage.drivers[victim].fuse = 1  # and once more, while it restarts
    stage.do(("restart", victim))
    assert not stage.drivers[victim].is_up
    stage.do(("restart", victim))
    stage.do(("speak", victim, stage.case.lifetimes_us[0]))


def _judge(entry: Entry, stage: Stage, victim: int) -> None:
    assert stage.problem is None, stage.problem
    assert seqs_grow(stage)
    delivered = set(stage.oracle.delivered[victim])
    cut_off = {message.id for message in stage.drivers[victim].cut_off}
    if stage.case.inbox:
        cut_off = set()
    assert not delivered & cut_off
    missing = entry.due(stage, victim) - delivered
    if entry.kind == "contact" and entry.expires:
        assert missing <= cut_off
    else:
        assert missing == cut_off


# ---- questions ----------------------------------------------------------------------------------


@entries()
@runs(2)
def test_every_gauge_is_a_count(entry, seed):
    for stage in played(entry, seed):
        for node, core in watched(stage):
            gauges = core.gauges(stage.local_us(node))
            assert all(type(size) is int and size >= 0 for size in gauges.values()), gauges


@entries()
@runs(2)
def test_a_question_changes_nothing(entry, seed):
    for stage in played(entry, seed):
        for _, core in watched(stage):
            before = pickle.dumps(core)
            _ = core.needs, core.tables, core.counters
            for id in (*stage.oracle.pasts, ("stranger", -5)):
                core.explain(id)
            assert pickle.dumps(core) == before
