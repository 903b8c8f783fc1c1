"""Hostile worlds of contacts: a seed draws one, runs a protocol in it, and judges the run.

One seed draws everything: nodes, contacts, churn, crashes, loss, duplication, reordering, clock
skew, lifetimes, the layer's options. First comes a hostile phase in which only safety is promised.
Then the network heals, everybody who is left is in contact, and what must arrive has to arrive.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from beforehand.check.oracle import Oracle, rows_of
from beforehand.check.outcome import Outcome
from beforehand.check.story import tell_loss, tell_violation
from beforehand.core.base import MessageId, NodeId
from beforehand.core.epidemic import Epidemic, Options
from beforehand.core.order import Lifetimes
from beforehand.mobility.trace import Trace, make_trace
from beforehand.sim.clock import Clock
from beforehand.sim.contacts import ContactWorld
from beforehand.sim.links import LinkModel
from beforehand.sim.log import KINDS, RECEIVE
from beforehand.sim.protocols import PROTOCOLS, make_order
from beforehand.sim.streams import generator
from beforehand.sim.workload import Broadcast

SECOND_US = 1_000_000
HEAL_US = 60 * SECOND_US
END_US = 400 * SECOND_US
REACH_US = 60 * SECOND_US
"""After healing, whatever lives this much longer must have reached everybody."""
LIFETIMES_US = (5 * SECOND_US, 20 * SECOND_US, 60 * SECOND_US, 200 * SECOND_US)
EVENTS_MAX = 2_000_000


@dataclass(frozen=True)
class Case:
    """One hostile world, drawn from one seed."""

    seed: int
    protocol: str
    trace: Trace
    workload: list[Broadcast]
    links: LinkModel
    options: Options
    lifetimes: Lifetimes | None
    clocks: dict[int, Clock]
    crashes: frozenset[tuple[int, int]]
    survivors: tuple[int, ...]
    """The nodes of the healed phase."""

    def describe(self) -> str:
        return (
            f"{self.trace.nodes_count} nodes ({len(self.survivors)} to the end), "
            f"{len(self.trace.contacts)} contacts, {len(self.workload)} broadcasts, "
            f"{len(self.crashes)} crashes\n{self.links}\n{self.options}\n{self.lifetimes}"
        )


def run_seed(seed: int, protocol: str) -> Outcome:
    """Draw, run and judge. The same seed always gives the same outcome."""
    case = draw_case(seed, protocol)
    world = ContactWorld(
        case.trace,
        lambda node: _make_core(case, node),
        case.workload,
        seed=seed,
        links=case.links,
        clocks=case.clocks,
        crashes=case.crashes,
    )
    # Nodes of the healed phase are asked about afterwards, so they must not be torn down.
    world.run(EVENTS_MAX)
    return _judge(case, world)


def _make_core(case: Case, node: int) -> Epidemic:
    order = make_order(case.protocol, node, case.lifetimes, durable=True)
    rng = generator(case.seed, "transfer", node)
    return Epidemic(node, order, rng, case.options, durable=True)


# ---- judging ------------------------------------------------------------------------------------


def _judge(case: Case, world: ContactWorld) -> Outcome:
    columns = world.log.columns()
    rows = rows_of(columns, KINDS)
    oracle = Oracle()
    for row in rows:
        oracle.see(*row)
    is_ordered = PROTOCOLS[case.protocol].is_causal
    found = [v for v in oracle.violations if is_ordered or v.kind != "late"]
    problems = [str(violation) for violation in found]
    story = tell_violation(rows, found[0]) if found else ""
    counters = world.counters()
    if counters.refused:
        problems.append(f"{counters.refused} messages were refused although all clocks are sound")
    if case.options.capacity is None:
        lost = oracle.undelivered(_promised(case, columns, oracle))
        problems += [f"node {node} never delivered {message}" for node, message in lost]
        if lost and not story:
            story = tell_loss(rows, *lost[0])
    received = int(np.count_nonzero(columns["kind"] == RECEIVE))
    return Outcome(
        case.seed,
        case.protocol,
        tuple(problems),
        deliveries=counters.delivered,
        waited=_count_waited(columns) if received else 0,
        story=story,
        described=case.describe(),
    )


def _promised(
    case: Case, columns: dict[str, np.ndarray], oracle: Oracle
) -> dict[NodeId, list[MessageId]]:
    """What every survivor must have delivered in the end.

    A message counts if a survivor holds it when the network heals, or broadcast it later. Without
    lifetimes its whole causal past must be held too: the past may have died with a node that lost
    its memory. With lifetimes a lost predecessor is given up in time, but the message itself must
    live long enough to go round.
    """
    survivors = set(case.survivors)
    held: set[MessageId] = set()
    received = columns["kind"] <= RECEIVE  # broadcast or receive: it is in the cache from here on
    for node, origin, seq in zip(
        columns["node"][received].tolist(),
        columns["origin"][received].tolist(),
        columns["seq"][received].tolist(),
        strict=True,
    ):
        if node in survivors:
            held.add((origin, seq))
    if case.lifetimes is not None:
        fastest = max(case.clocks[node].read(HEAL_US) for node in survivors)
        held = {id for id in held if id[1] > fastest + REACH_US}
    elif PROTOCOLS[case.protocol].is_causal:
        held = {id for id in held if oracle.pasts[id] <= held}
    return {node: sorted(held) for node in case.survivors}


def _count_waited(columns: dict[str, np.ndarray]) -> int:
    came: dict[tuple[int, int, int], int] = {}
    waited = 0
    names = ("kind", "node", "origin", "seq", "t_us")
    for kind, node, origin, seq, t_us in zip(
        *(columns[name].tolist() for name in names), strict=True
    ):
        if kind == RECEIVE:
            came[node, origin, seq] = t_us
        elif KINDS[kind] == "deliver":
            waited += came.get((node, origin, seq), t_us) < t_us
    return waited


# ---- drawing ------------------------------------------------------------------------------------


def draw_case(seed: int, protocol: str) -> Case:
    rng = generator(seed, "fuzz")
    people = rng.randint(3, 6)
    presence, crashes = _draw_presence(rng, people)
    survivors = tuple(sorted({node for node, _, down_us in presence if down_us == END_US}))
    names = [str(node) for node in range(max(node for node, _, _ in presence) + 1)]
    contacts = _draw_contacts(rng, presence, survivors)
    trace = make_trace(names, np.array(contacts), np.array(presence))
    links = _draw_links(rng)
    lifetimes = None
    if PROTOCOLS[protocol].takes_lifetime and (protocol == "delta" or rng.random() < 0.5):
        skew_us = rng.choice([0, 100_000, 2 * SECOND_US])
        lifetimes = Lifetimes(LIFETIMES_US[-1], LIFETIMES_US[-1], skew_us)
    return Case(
        seed,
        protocol,
        trace,
        _draw_workload(rng, presence, lifetimes),
        links,
        _draw_options(rng, links),
        lifetimes,
        _draw_clocks(rng, len(names), lifetimes),
        crashes,
        survivors,
    )


def _draw_presence(
    rng: random.Random, people: int
) -> tuple[list[tuple[int, int, int]], frozenset[tuple[int, int]]]:
    """Spans of presence. Who loses its memory comes back as a new node: its registries are gone,
    so under its old name it would deliver everything a second time."""
    presence: list[tuple[int, int, int]] = []
    crashes: set[tuple[int, int]] = set()
    fresh = people
    for person in range(people):
        node, up_us = person, rng.randrange(10 * SECOND_US) if rng.random() < 0.3 else 0
        while rng.random() < 0.4 and up_us < 40 * SECOND_US:
            down_us = up_us + rng.randrange(SECOND_US, 20 * SECOND_US)
            presence.append((node, up_us, down_us))
            end = rng.choice(["off", "crash", "amnesia"])
            if end == "crash":
                crashes.add((node, down_us))
            elif end == "amnesia":
                node, fresh = fresh, fresh + 1
            up_us = down_us + rng.randrange(1, 15 * SECOND_US)
        presence.append((node, up_us, END_US))
    return presence, frozenset(crashes)


def _draw_contacts(
    rng: random.Random, presence: Sequence[tuple[int, int, int]], survivors: tuple[int, ...]
) -> list[tuple[int, int, int, int]]:
    nodes = sorted({node for node, _, _ in presence})
    contacts = []
    for _ in range(rng.randint(len(nodes), 8 * len(nodes))):
        a, b = rng.sample(nodes, 2)
        up_us = rng.randrange(HEAL_US - SECOND_US)
        length_us = rng.choice([200_000, 2 * SECOND_US, 10 * SECOND_US])
        down_us = min(HEAL_US - 1, up_us + rng.randrange(1, length_us))
        contacts.append((a, b, up_us, down_us))
    # Healed: a connected graph, sometimes only just.
    order = rng.sample(survivors, len(survivors))
    edges = set(pairwise(order))
    if rng.random() < 0.5:
        edges |= {(a, b) for a in order for b in order if a < b and rng.random() < 0.5}
    return contacts + [(a, b, HEAL_US, END_US) for a, b in sorted(edges)]


def _draw_links(rng: random.Random) -> LinkModel:
    is_noisy = rng.random() < 0.7
    return LinkModel(
        latency_us=rng.choice([0, 1_000, 200_000]),
        bytes_per_s=rng.choice([None, None, 5_000, 100_000]),
        loss=rng.choice([0.0, 0.1, 0.4]) if is_noisy else 0.0,
        duplication=rng.choice([0.0, 0.1, 0.3]) if is_noisy else 0.0,
        jitter_us=rng.choice([0, 50_000, 2 * SECOND_US]) if is_noisy else 0,
        noise_until_us=HEAL_US,
    )


def _draw_options(rng: random.Random, links: LinkModel) -> Options:
    is_lossy = bool(links.loss or links.duplication)
    return Options(
        announce_us=rng.choice([0, 0, 300_000, 2 * SECOND_US]),
        retry_us=rng.choice([500_000, 2 * SECOND_US]) if is_lossy or rng.random() < 0.3 else None,
        capacity=rng.choice([None, None, None, 3, 8]),
        eviction=rng.choice(["oldest", "random"]),
        transfer=rng.choice(["random", "random", "oldest", "newest"]),
        frame_bytes_max=rng.choice([1, 200, 16_384]),
    )


def _draw_workload(
    rng: random.Random, presence: Sequence[tuple[int, int, int]], lifetimes: Lifetimes | None
) -> list[Broadcast]:
    workload = []
    for _ in range(rng.randint(2, 30)):
        node, up_us, down_us = rng.choice(presence)
        until_us = min(down_us, HEAL_US + 20 * SECOND_US)
        t_us = rng.randrange(up_us, until_us) // 100_000 * 100_000  # some at the same instant
        lifetime_us = rng.choice(LIFETIMES_US) if lifetimes else None
        workload.append(Broadcast(max(up_us, t_us), node, rng.choice([0, 10, 300]), lifetime_us))
    return sorted(workload, key=lambda b: (b.t_us, b.node))


def _draw_clocks(
    rng: random.Random, nodes_count: int, lifetimes: Lifetimes | None
) -> dict[int, Clock]:
    """Any two clocks differ by less than the agreed skew, from the first instant to the last."""
    skew_us = lifetimes.skew_us if lifetimes else SECOND_US
    drift_ppm_max = min(500, skew_us // 4 * 1_000_000 // END_US) if skew_us else 0
    clocks = {}
    for node in range(nodes_count):
        offset_us = rng.randrange(skew_us // 4 + 1)
        drift_ppm = rng.randint(-drift_ppm_max, drift_ppm_max)
        clocks[node] = Clock(offset_us, drift_ppm)
    return clocks
