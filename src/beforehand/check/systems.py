"""Small systems for the explorer: the orders alone, and the whole opportunistic stack.

`OrderSystem` hands messages to the orders in every possible way: any message to any node at any
time, again, or never. That is more than any network can do to them. `StackSystem` explores the
epidemic layer itself: every order of frames, frames lost and doubled, links that go and come.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple

from beforehand.core.base import Counters, Message, MessageId
from beforehand.core.epidemic import Epidemic
from beforehand.core.frames import Frame
from beforehand.core.order import Order
from beforehand.core.outbox import Outbox

Past = frozenset[MessageId]


class Site(NamedTuple):
    """One node: its core as a value, and what it delivered."""

    blob: bytes
    delivered: frozenset[MessageId]
    shadow: frozenset[MessageId]
    """The causal pasts of what it delivered: none of these may come any more."""
    timers: tuple[tuple[str, int], ...] = ()


class World(NamedTuple):
    """A state of a whole system."""

    sites: tuple[Site, ...]
    pasts: frozenset[tuple[MessageId, Past]]
    traffic: tuple[Any, ...]
    """Messages or frames that were sent; what a system makes of them is its own business."""
    now_us: int
    budget: tuple[int, ...]
    """How often each bounded kind of move may still happen."""
    problem: str | None = None
    sights: frozenset[str] = frozenset()


def record(world: World, node: int, core: Any, out: Outbox[Any], spoke: bool) -> World:
    """The world after one step of a core: its deliveries are judged by the definition alone."""
    for name in Counters.__struct_fields__:
        setattr(core.counters, name, 0)  # counts of the past would keep equal states apart
    site, pasts = world.sites[node], dict(world.pasts)
    delivered, shadow, problem = site.delivered, site.shadow, world.problem
    for message in out.deliveries:
        id = message.id
        if spoke and id not in pasts:
            pasts[id] = delivered | shadow
        if id not in pasts:
            problem = f"node {node} delivered {id}, which nobody broadcast"
        elif id in delivered:
            problem = f"node {node} delivered {id} twice"
        elif id in shadow:
            problem = f"node {node} delivered {id} after something that causally follows it"
        delivered, shadow = delivered | {id}, shadow | pasts.get(id, frozenset())
    timers = dict(site.timers) | dict(out.timers)
    after = Site(pickle.dumps(core), delivered, shadow, tuple(sorted(timers.items())))
    sites = _put(world.sites, node, after)
    return world._replace(sites=sites, pasts=frozenset(pasts.items()), problem=problem)


def _put(sites: tuple[Site, ...], node: int, site: Site) -> tuple[Site, ...]:
    return (*sites[:node], site, *sites[node + 1 :])


class OrderSystem:
    """A few nodes, a few messages, every order of broadcast, reception, repetition and expiry."""

    def __init__(
        self,
        make_order: Callable[[int], Order],
        *,
        nodes: int,
        speakers: tuple[int, ...],
        repeats: int = 0,
        lifetimes_us: tuple[int | None, ...] = (None,),
        offsets_us: tuple[int, ...] = (),
        expects_all: bool = True,
        sometimes: tuple[str, ...] = ("waited", "complete"),
    ) -> None:
        """`speakers` broadcast in this order, each at any time. `offsets_us` are the nodes' clock
        errors. `expects_all`: what a node received by the end of a run, it has delivered."""
        self.sometimes = sometimes
        self._make_order = make_order
        self._nodes, self._speakers, self._repeats = nodes, speakers, repeats
        self._lifetimes_us = lifetimes_us
        self._is_mortal = lifetimes_us != (None,)
        self._offsets_us = offsets_us or (0,) * nodes
        self._expects_all = expects_all

    def initial(self) -> World:
        none: frozenset[MessageId] = frozenset()
        blobs = [pickle.dumps(self._make_order(node)) for node in range(self._nodes)]
        sites = tuple(Site(blob, none, none) for blob in blobs)
        return World(sites, frozenset(), (), 0, (0, self._repeats))

    def moves(self, state: World) -> Iterable[Hashable]:
        """("broadcast", node, lifetime), ("receive", node, index), ("repeat", node, index),
        ("timer", node), ("tick", until). Never receiving is the loss of a message."""
        if state.problem:
            return
        spoken, repeats_left = state.budget
        if spoken < len(self._speakers):
            for lifetime_us in self._lifetimes_us:
                yield ("broadcast", self._speakers[spoken], lifetime_us)
        for index, (message, receivers) in enumerate(state.traffic):
            for node in range(self._nodes):
                # The layer below discards what has expired: that is a loss, not a move.
                if node == message.origin or self._has_expired(state, node, message):
                    continue
                if node not in receivers:
                    yield ("receive", node, index)
                elif repeats_left:
                    yield ("repeat", node, index)
        for node, site in enumerate(state.sites):
            if any(due_us <= self._clock(state, node) for _, due_us in site.timers):
                yield ("timer", node)
        tick_us = self._next_tick(state)
        if tick_us is not None:
            yield ("tick", tick_us)

    def step(self, state: World, move: Any) -> World:
        kind, node = move[0], move[1]
        if kind == "tick":
            return state._replace(now_us=node)
        order: Order = pickle.loads(state.sites[node].blob)
        out: Outbox[Any] = Outbox()
        now_us = self._clock(state, node)
        traffic, (spoken, repeats_left) = state.traffic, state.budget
        if kind == "broadcast":
            message = order.on_broadcast(now_us, b"", out, move[2])
            traffic += ((message, frozenset()),)
            spoken += 1
        elif kind == "timer":
            site = state.sites[node]._replace(timers=())
            state = state._replace(sites=_put(state.sites, node, site))
            order.on_timer(now_us, out)
        else:
            index = move[2]
            message, receivers = traffic[index]
            order.on_receive(now_us, [message], out)
            entry = (message, receivers | {node})
            traffic = (*traffic[:index], entry, *traffic[index + 1 :])
            repeats_left -= kind == "repeat"
        state = state._replace(traffic=traffic, budget=(spoken, repeats_left))
        was_repeated = order.counters.duplicate > 0
        after = record(state, node, order, out, kind == "broadcast")
        sights = self._look(after, node, order, out)
        return after._replace(sights=sights | {"repeated"} if was_repeated else sights)

    def problem(self, state: World, is_final: bool) -> str | None:
        if state.problem or not is_final or not self._expects_all:
            return state.problem
        for node, site in enumerate(state.sites):
            missing = {m.id for m, receivers in state.traffic if node in receivers}
            missing -= site.delivered
            if missing:
                return f"node {node} received but never delivered {sorted(missing)}"
        return None

    def sights(self, state: World) -> Iterable[str]:
        return state.sights

    def _look(self, state: World, node: int, order: Order, out: Outbox[Any]) -> frozenset[str]:
        seen = set()
        if order.gauges(self._clock(state, node)).get("pending"):
            seen.add("waited")
        if any(kind == "expire" for kind, _ in out.losses):
            seen.add("expired")
        for message in out.deliveries:
            if any(id not in state.sites[node].delivered for id in message.past):
                seen.add("gave_up_predecessor")
        if all(len(site.delivered) == len(self._speakers) for site in state.sites):
            seen.add("complete")
        return frozenset(seen)

    def _has_expired(self, state: World, node: int, message: Message) -> bool:
        return self._is_mortal and message.seq <= self._clock(state, node)

    def _clock(self, state: World, node: int) -> int:
        return state.now_us + self._offsets_us[node]

    def _next_tick(self, state: World) -> int | None:
        """Time moves to the next instant at which something expires on somebody's clock."""
        if not self._is_mortal:
            return None
        deadlines = [
            message.seq - offset_us
            for message, _ in state.traffic
            for offset_us in self._offsets_us
        ]
        return min((due_us for due_us in deadlines if due_us > state.now_us), default=None)


class StackSystem:
    """A few nodes in a fixed graph of links, every order of frames, with bounded mischief."""

    sometimes: tuple[str, ...] = ("waited", "complete", "lost", "doubled", "flapped")

    def __init__(
        self,
        make_core: Callable[[int], Epidemic],
        *,
        nodes: int,
        edges: tuple[tuple[int, int], ...],
        speakers: tuple[int, ...],
        losses: int = 0,
        doubles: int = 0,
        flaps: int = 0,
    ) -> None:
        self._make_core = make_core
        self._nodes, self._edges, self._speakers = nodes, edges, speakers
        self._mischief = (losses, doubles, flaps)
        wanted = {"lost": losses, "doubled": doubles, "flapped": flaps}
        self.sometimes = ("complete", *(name for name, count in wanted.items() if count))

    def initial(self) -> World:
        none: frozenset[MessageId] = frozenset()
        sites = tuple(
            Site(pickle.dumps(self._make_core(node)), none, none) for node in range(self._nodes)
        )
        world = World(sites, frozenset(), (), 0, (0, *self._mischief))
        for a, b in self._edges:
            world = self._link(world, a, b, up=True)
        return world

    def moves(self, state: World) -> Iterable[Hashable]:
        spoken, losses, doubles, flaps = state.budget
        if state.problem:
            return
        if spoken < len(self._speakers):
            yield ("broadcast", self._speakers[spoken])
        for index in range(len(state.traffic)):
            if state.traffic[index] in state.traffic[:index]:
                continue  # the same frame twice: one of them stands for both
            yield ("arrive", index)
            if losses:
                yield ("lose", index)
            if doubles:
                yield ("double", index)
        if flaps:
            for a, b in self._edges:
                yield ("flap", a, b)
        if not state.traffic:  # a retry is for silence; firing it earlier only adds frames
            for node, site in enumerate(state.sites):
                if site.timers:
                    yield ("timer", node)

    def step(self, state: World, move: Any) -> World:
        kind, which = move[0], move[1]
        spoken, losses, doubles, flaps = state.budget
        if kind == "broadcast":
            state = state._replace(budget=(spoken + 1, losses, doubles, flaps))
            return self._feed(state, which, "on_broadcast", b"", spoke=True)
        if kind == "timer":
            name, due_us = state.sites[which].timers[0]
            site = state.sites[which]._replace(timers=state.sites[which].timers[1:])
            sites = _put(state.sites, which, site)
            state = state._replace(sites=sites, now_us=max(state.now_us, due_us))
            return self._feed(state, which, "on_timer", name)
        if kind == "flap":
            a, b = which, move[2]
            state = state._replace(
                budget=(spoken, losses, doubles, flaps - 1),
                traffic=tuple(f for f in state.traffic if {f[0], f[1]} != {a, b}),
                sights=state.sights | {"flapped"},
            )
            return self._link(self._link(state, a, b, up=False), a, b, up=True)
        return self._frame(state, kind, which)

    def _frame(self, state: World, kind: str, index: int) -> World:
        spoken, losses, doubles, flaps = state.budget
        source, target, frame = state.traffic[index]
        rest = state.traffic[:index] + state.traffic[index + 1 :]
        if kind == "lose":
            return state._replace(
                budget=(spoken, losses - 1, doubles, flaps),
                traffic=rest,
                sights=state.sights | {"lost"},
            )
        if kind == "double":
            return state._replace(
                budget=(spoken, losses, doubles - 1, flaps),
                traffic=(*state.traffic, state.traffic[index]),
                sights=state.sights | {"doubled"},
            )
        return self._feed(state._replace(traffic=rest), target, "on_message", source, frame)

    def problem(self, state: World, is_final: bool) -> str | None:
        if state.problem or not is_final:
            return state.problem
        for node, site in enumerate(state.sites):
            if len(site.delivered) < len(self._speakers):
                return f"node {node} delivered only {sorted(site.delivered)} and all is quiet"
        return None

    def sights(self, state: World) -> Iterable[str]:
        is_complete = all(len(s.delivered) == len(self._speakers) for s in state.sites)
        return state.sights | {"complete"} if is_complete else state.sights

    def _link(self, state: World, a: int, b: int, *, up: bool) -> World:
        return self._feed(self._feed(state, a, "on_link", b, up), b, "on_link", a, up)

    def _feed(
        self, state: World, node: int, input_name: str, *args: Any, spoke: bool = False
    ) -> World:
        core: Epidemic = pickle.loads(state.sites[node].blob)
        out: Outbox[Frame] = Outbox()
        getattr(core, input_name)(state.now_us, *args, out)
        sends = tuple((node, peer, frame) for peer, frame in out.sends)
        state = state._replace(traffic=state.traffic + sends)
        return record(state, node, core, out, spoke)
