"""Run many seeds over all protocol families, in parallel."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import active_children, get_context

from beforehand.check.fuzz.fuzz import Outcome
from beforehand.check.fuzz.targets import TARGETS
from beforehand.signals import postponed

BATCH_SEEDS = 25
PARENT_SECONDS = 1.0

Batch = tuple[str, Sequence[int]]
Done = tuple[list[Outcome], float]
"""The outcomes of a batch of seeds, and its CPU time in seconds."""


@dataclass
class Tally:
    """The totals of all runs of one protocol."""

    runs: int = 0
    moves: int = 0
    deliveries: int = 0
    waited: int = 0
    allowed: int = 0
    """Violations that the promise of the protocol allows."""
    failures: int = 0
    sights: Counter[str] = field(default_factory=Counter)
    """In how many runs each situation occurred."""

    def count(self, outcome: Outcome) -> None:
        self.runs += 1
        self.moves += outcome.moves
        self.deliveries += outcome.deliveries
        self.waited += outcome.waited
        self.allowed += outcome.allowed
        self.failures += outcome.problem is not None
        self.sights.update(outcome.sights)


@dataclass
class Swarm:
    """The result of a swarm. Its failures are sorted by seed."""

    tallies: dict[str, Tally]
    failures: list[Outcome] = field(default_factory=list)
    cpu_s: float = 0.0
    wall_s: float = 0.0


def run_swarm(
    seeds: Sequence[int],
    protocols: Sequence[str],
    *,
    workers: int | None = None,
    on_done: Callable[[str, int], object] | None = None,
) -> Swarm:
    """Run every seed with every protocol.

    Protocols take turns, so that each has run about as many seeds whenever the swarm is ended.
    on_done: called with a protocol and the number of its newly finished runs."""
    started = time.perf_counter()
    swarm = Swarm({protocol: Tally() for protocol in protocols})
    batches = (
        (protocol, seeds[at : at + BATCH_SEEDS])
        for at in range(0, len(seeds), BATCH_SEEDS)
        for protocol in protocols
    )
    # Only a few batches are submitted at a time: submitting a million seeds takes minutes, during
    # which Ctrl-C has no effect.
    at_once = 4 * (workers or os.cpu_count() or 1)
    with _open_pool(workers) as pool:
        pending = _hand_out(pool, islice(batches, at_once))
        while pending:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            pending |= _hand_out(pool, islice(batches, len(done)))
            for outcomes, cpu_s in (future.result() for future in done):
                swarm.cpu_s += cpu_s
                for outcome in outcomes:
                    swarm.tallies[outcome.protocol].count(outcome)
                swarm.failures += [outcome for outcome in outcomes if outcome.problem]
                if on_done is not None:
                    on_done(outcomes[0].protocol, len(outcomes))
    swarm.failures.sort(key=lambda outcome: (outcome.seed, outcome.protocol))
    swarm.wall_s = time.perf_counter() - started
    return swarm


def _leave_with(parent: int) -> None:
    """In a worker: exit when the parent process, which reads the results, is gone.

    The worker would not notice it otherwise: every other worker holds an end of its input pipe, so
    the pipe never closes."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_SECONDS)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def _hand_out(pool: ProcessPoolExecutor, batches: Iterable[Batch]) -> set[Future[Done]]:
    with postponed():
        return {pool.submit(_run_batch, *batch) for batch in batches}


@contextmanager
def _open_pool(workers: int | None) -> Iterator[ProcessPoolExecutor]:
    """Open a pool with a fresh interpreter per worker, so that no parent state leaks into a run.

    If the block is left by an exception, such as Ctrl-C, the workers are terminated. Waiting for
    all submitted batches may take hours.
    """
    others = set(active_children())
    start = get_context("spawn")
    with ProcessPoolExecutor(workers, start, _leave_with, (os.getpid(),)) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in set(active_children()) - others:
                worker.terminate()
            raise


def _run_batch(protocol: str, seeds: Sequence[int]) -> Done:
    started = time.process_time()
    outcomes = [TARGETS[protocol](seed) for seed in seeds]
    return outcomes, time.process_time() - started
