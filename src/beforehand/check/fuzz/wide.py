"""Fuzz worlds of many hosts in many cells, drawn from a seed.

The net of `check.net.net` reorders everything, but it is small. Here time, walks and radio are
those of `sim.cells`, with 7 to 10 stations and 70 to 200 hosts. Hosts move through cells and out of
them, crash and recover, join late and leave. In addition, up to 30 % of received frames are lost.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import msgspec

from beforehand.check.fuzz.fuzz import Outcome
from beforehand.protocols.mobile.systems import SYSTEMS, System
from beforehand.sim.cells.measure import CellsMeasure, measure_cells
from beforehand.sim.cells.result import CellsRun
from beforehand.sim.cells.spec import SECOND_US, CellsSpec, Failure, Walk
from beforehand.sim.cells.world import run
from beforehand.sim.radio import Radio
from beforehand.sim.streams import generator

BROADCAST_US = 4 * SECOND_US
SETTLE_US = 11 * SECOND_US
"""The time after the last broadcast in which, as a rule, every message arrives."""
PATIENCE_US = 60 * SECOND_US
"""Extra time for a run with 30 % loss and hosts that leave a cell every few seconds."""
WARM_UP_US = 5 * SECOND_US
"""The time before the first broadcast. Hosts appear in its first half. The rest leaves time for a
dozen lost attempts to join."""


def run_wide(seed: int, system: str, instead: System | None = None) -> Outcome:
    """Draw, run and judge. The outcome depends only on the seed and the system.

    instead: cores to run in place of the system's own."""
    spec = draw_spec(generator(seed, f"wide {system}"), system)
    result = run(spec, seed, instead)
    measure = measure_cells(spec, seed, result)
    is_late = bool(measure.missing or measure.missing_at_returned)
    if is_late:  # To distinguish late from never, run the same seed for longer.
        spec = msgspec.structs.replace(
            spec, duration_us=spec.duration_us + PATIENCE_US, settle_us=SETTLE_US + PATIENCE_US
        )
        result = run(spec, seed, instead)
        measure = measure_cells(spec, seed, result)
    problems = list(_problems(measure))
    return Outcome(
        seed,
        f"{system}_wide",
        "; ".join(problems) or None,
        deliveries=measure.deliveries,
        waited=round(measure.early_max),
        sights=frozenset(_sights(spec, measure, result)) | ({"late"} if is_late else set()),
        moves=sum(flow.frames for flow in measure.flows),
        story="\n".join(problems),
        described=f"{spec}\n{measure.broadcasts} broadcasts, {measure.handoffs} handoffs",
    )


def draw_spec(rng: random.Random, system: str) -> CellsSpec:
    """Draw a spec, from calm to hostile, and small enough that thousands can be run."""
    hosts = rng.choice((70, rng.randint(70, 120), rng.randint(70, 200)))
    is_mortal = SYSTEMS[system].survives_crashes
    joins = rng.sample(range(hosts), rng.choice((0, 0, 5, 20)))
    leaves = rng.sample(range(hosts), rng.choice((0, 0, 3, 10))) if is_mortal else []
    broadcast_us, duration_us = WARM_UP_US + BROADCAST_US, WARM_UP_US + BROADCAST_US + SETTLE_US
    return CellsSpec(
        system=system,
        stations=rng.randint(7, 10),
        hosts=hosts,
        placement=rng.choice(("cells", "area")),
        radio=Radio(
            bits_per_s=rng.choice((2_000_000, 20_000_000)), mac=rng.choice(("dcf", "dcf", "csma"))
        ),
        loss=rng.choice((0.0, 0.1, rng.uniform(0.0, 0.3))),
        choice=rng.choice(("stay", "nearest")),
        walk=Walk(
            speed_m_s=rng.choice((1.39, 10.0, 40.0)),
            turn_us=rng.choice((1, 5)) * SECOND_US,
            stays_covered=rng.random() < 0.6,
        ),
        payload_bytes=20,
        rate_per_s=rng.choice((0.5, 1.0, 2.0)),
        warm_up_us=WARM_UP_US,
        duration_us=duration_us,
        settle_us=SETTLE_US,
        failures=tuple(
            Failure(
                rng.randrange(WARM_UP_US, broadcast_us), rng.randrange(SECOND_US, BROADCAST_US // 2)
            )
            for _ in range(rng.choice((0, 1, 5, 20)) if is_mortal else 0)
        ),
        joins=tuple((host, rng.randrange(broadcast_us)) for host in joins),
        leaves=tuple((host, rng.randrange(WARM_UP_US, broadcast_us)) for host in leaves),
        sample_us=SECOND_US,
    )


def _problems(measure: CellsMeasure) -> Iterator[str]:
    for name in ("violations", "duplicates", "missing", "missing_at_returned"):
        if count := getattr(measure, name):
            yield f"{count} {name.replace('_', ' ')}"


def _sights(spec: CellsSpec, measure: CellsMeasure, result: CellsRun) -> Iterator[str]:
    seen = {
        "moved": measure.handoffs,
        "went away": result.away,
        "crashed": measure.outages,
        "joined late": spec.joins,
        "left": spec.leaves,
        "waited": measure.early_max,
        "lost": measure.lost_percent or spec.loss,
        "gave up": measure.dropped,
    }
    return (name for name, value in seen.items() if value)
