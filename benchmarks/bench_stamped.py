"""Compare the Δ order and the stamped order on the mobility of shipped scenarios, with the cores.

`python benchmarks/bench_stamped.py [NAME ...]`; one JSON line for each order, for each scenario
twice. *equal*: all messages have the longest lifetime of the scenario. *mixed*: every second
message has a twentieth of it. `lives_s` is the mean time from broadcast to deadline of those.
Entries are causes per message; bytes are counted as simulations do, on all links.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from beforehand.errors import InputError
from beforehand.mobility.trace import Trace
from beforehand.pipeline.contacts.plan import specs_of
from beforehand.pipeline.experiment import read_scenario
from beforehand.protocols.epidemic.epidemic import Epidemic
from beforehand.protocols.orders.order import Lifetimes
from beforehand.protocols.registry import make_order
from beforehand.scenario.shipped import find_scenario
from beforehand.sim.contacts.run import Spec
from beforehand.sim.contacts.summary import count_violations, summarise
from beforehand.sim.contacts.traffic import plan_traffic
from beforehand.sim.contacts.workload import Broadcast
from beforehand.sim.contacts.world import ContactWorld
from beforehand.sim.streams import KeyedDraws

BRIEF = 20


def load(name: str) -> tuple[Trace, Spec]:
    scenario = read_scenario(find_scenario(name))
    seed = scenario.seeds[0]
    source = scenario.options["mobility"]
    loaded = source.load(seed)
    trace = loaded if isinstance(loaded, Trace) else loaded.contacts_within(source.range_m)
    specs = [spec for spec in specs_of(scenario, seed) if spec.protocol == "delta"]
    if not specs:
        raise InputError(f"the scenario `{name}` has no Δ order", hint="choose another scenario")
    return trace, max(specs, key=lambda spec: spec.lifetime_us or 0)


class Watched(ContactWorld):
    """A world that also notes how long brief messages live."""

    lives_us: list[int]

    def broadcasted(self, node: Any, message: Any, deliveries: Any) -> None:
        for own in deliveries:
            if own.id == message:
                self.lives_us.append(own.deadline_us - self.now_us)
        super().broadcasted(node, message, deliveries)


def measure(
    trace: Trace, spec: Spec, protocol: str, workload: Sequence[Broadcast], brief_us: int | None
) -> dict[str, Any]:
    assert spec.lifetime_us is not None
    lifetimes = Lifetimes(spec.lifetime_us, spec.lifetime_us, spec.clocks.skew_us)

    def make_core(node: int) -> Epidemic:
        order = make_order(protocol, node, lifetimes)
        return Epidemic(node, order, KeyedDraws(spec.seed, "transfer", node), spec.layer)

    if brief_us is not None:
        workload = [
            replace(b, lifetime_us=brief_us) if n % 2 else b for n, b in enumerate(workload)
        ]
    world = Watched(trace, make_core, workload, seed=spec.seed, links=spec.links)
    world.lives_us = []
    started_s = time.process_time()
    world.run()
    columns = world.log.columns()
    found = summarise(columns, life_us=spec.life_us)
    lives_us = np.array(world.lives_us)
    return {
        "broadcasts": found["broadcasts"],
        "receptions": found["receptions"],
        "deliveries": found["deliveries"],
        "expired": found["expired"],
        "skips": world.counters().missed,
        "late": count_violations(columns)["late"],
        "entries": round(found["past_entries"]["avg"], 3),
        "mb_sent": round(world.bytes_sent / 1e6, 2),
        "bytes_per_delivery": round(world.bytes_sent / found["deliveries"]),
        "wait_ms": round(found["latency_us"]["avg"] / 1000, 2),
        "lives_s": round(float(np.sort(lives_us)[: len(lives_us) // 2].mean()) / 1e6, 1),
        "cpu_s": round(time.process_time() - started_s, 1),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("names", nargs="*", default=["city-bus", "ostermalm"])
    for name in options.parse_args().names:
        trace, spec = load(name)
        assert spec.lifetime_us is not None
        workload = plan_traffic(trace, spec.traffic, spec.seed).broadcasts()
        for kind, brief_us in (("equal", None), ("mixed", spec.lifetime_us // BRIEF)):
            for protocol in ("delta", "stamped"):
                about = {"bench": "contacts/stamped", "scenario": name, "lifetimes": kind}
                row = measure(trace, spec, protocol, workload, brief_us)
                print(json.dumps({**about, "order": protocol, **row}), flush=True)


if __name__ == "__main__":
    main()
