"""List the simulations of a scenario, the longest first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from beforehand.scenario.head import Scenario
from beforehand.scenario.settings import with_settings
from beforehand.scenario.sweep import Point
from beforehand.sim.contacts.run import Spec
from beforehand.units import format_duration

NOT_PLAIN = re.compile(r"[^A-Za-z0-9.]+")


class Run(NamedTuple):
    """One simulation on the trace that its job reads. The run's name is that of the job."""

    spec: Spec
    watched: str | int | None
    """The node whose gauges are kept, as written in the scenario."""
    point: str = ""
    """The values of the swept keys in words; empty without a sweep."""
    engine: str = "auto"
    """The engine of the run (`sim.contacts.engines`)."""

    @property
    def label(self) -> str:
        spec = self.spec
        lifetime = () if spec.lifetime_us is None else (format_duration(spec.lifetime_us),)
        point = (NOT_PLAIN.sub("", self.point),) if self.point else ()
        return "-".join((spec.protocol, *lifetime, *point, f"s{spec.seed}")).replace(" ", "")

    @property
    def cost(self) -> float:
        """The estimated work: messages that live longer travel further."""
        return self.spec.lifetime_us or float("inf")


def plan_runs(scenario: Scenario) -> list[tuple[int, Run]]:
    """Return (index of the point, run) for every point of the sweep, protocol, lifetime and seed,
    the longest first."""
    watched, engine = scenario.options["gauges"]["node"], scenario.options["engine"]["use"]
    runs = [
        (at, Run(spec, watched, point.name, engine))
        for seed in scenario.seeds
        for at, point in enumerate(scenario.points)
        for spec in specs_of(point, seed)
    ]
    return sorted(runs, key=lambda found: -found[1].cost)


def specs_of(point: Point | Scenario, seed: int) -> Iterator[Spec]:
    """Yield the specifications of all runs of one seed at one point of the sweep.

    For a scenario, that is the first point."""
    options = point.options
    for chosen in options["protocols"]:
        spec = with_settings(chosen, options["traffic"] | options["network"])
        yield msgspec.structs.replace(spec, seed=seed, gauge_us=options["gauges"]["period"])
