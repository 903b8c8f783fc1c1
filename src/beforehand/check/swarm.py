"""Many seeds over all cores, whatever world their protocol lives in."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context

from beforehand.check import fuzz_contacts, fuzz_vcube
from beforehand.check.outcome import Outcome
from beforehand.sim.protocols import PROTOCOLS

VCUBE = "vcube"
FUZZED = (*PROTOCOLS, VCUBE)
BATCH_SEEDS = 25


@dataclass
class Tally:
    """What the runs of one protocol add up to."""

    runs: int = 0
    deliveries: int = 0
    waited: int = 0
    failures: int = 0


@dataclass
class Swarm:
    """The whole of it; failures in the order of their seeds."""

    tallies: dict[str, Tally]
    failures: list[Outcome] = field(default_factory=list)
    cpu_s: float = 0.0
    wall_s: float = 0.0


def run_swarm(
    seeds: Sequence[int],
    protocols: Sequence[str],
    *,
    workers: int | None = None,
    on_done: Callable[[int], object] | None = None,
) -> Swarm:
    """Every seed with every protocol. `on_done` hears how many runs were finished since."""
    started = time.perf_counter()
    swarm = Swarm({protocol: Tally() for protocol in protocols})
    batches = [
        (protocol, seeds[at : at + BATCH_SEEDS])
        for at in range(0, len(seeds), BATCH_SEEDS)
        for protocol in protocols
    ]
    # A fresh interpreter per worker: nothing of the parent's state can leak into a run.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(_run_batch, *batch) for batch in batches]
        for future in as_completed(futures):
            outcomes, cpu_s = future.result()
            swarm.cpu_s += cpu_s
            for outcome in outcomes:
                _count(swarm, outcome)
            if on_done is not None:
                on_done(len(outcomes))
    swarm.failures.sort(key=lambda outcome: (outcome.seed, outcome.protocol))
    swarm.wall_s = time.perf_counter() - started
    return swarm


def run_seed(seed: int, protocol: str) -> Outcome:
    """Draw a world, run the protocol in it, judge."""
    if protocol == VCUBE:
        return fuzz_vcube.run_seed(seed)
    return fuzz_contacts.run_seed(seed, protocol)


def _run_batch(protocol: str, seeds: Sequence[int]) -> tuple[list[Outcome], float]:
    started = time.process_time()
    return [run_seed(seed, protocol) for seed in seeds], time.process_time() - started


def _count(swarm: Swarm, outcome: Outcome) -> None:
    tally = swarm.tallies[outcome.protocol]
    tally.runs += 1
    tally.deliveries += outcome.deliveries
    tally.waited += outcome.waited
    if outcome.problems:
        tally.failures += 1
        swarm.failures.append(outcome)
