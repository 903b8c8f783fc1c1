"""List the simulations of a scenario, the longest first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from beforehand.scenario.head import Scenario
from beforehand.scenario.settings import with_settings
from beforehand.sim.contacts.run import Spec
from beforehand.units import format_duration


class Run(NamedTuple):
    """One simulation on the trace that its job reads. The run's name is that of the job."""

    spec: Spec
    watched: str | int | None
    """The node whose gauges are kept, as written in the scenario."""

    @property
    def label(self) -> str:
        spec = self.spec
        lifetime = () if spec.lifetime_us is None else (format_duration(spec.lifetime_us),)
        return "-".join((spec.protocol, *lifetime, f"s{spec.seed}")).replace(" ", "")

    @property
    def cost(self) -> float:
        """The estimated work: messages that live longer travel further."""
        return self.spec.lifetime_us or float("inf")


def plan_runs(scenario: Scenario) -> list[Run]:
    """Return one run for every protocol, lifetime and seed, the longest first."""
    watched = scenario.options["gauges"]["node"]
    runs = [Run(spec, watched) for seed in scenario.seeds for spec in specs_of(scenario, seed)]
    return sorted(runs, key=lambda run: -run.cost)


def specs_of(scenario: Scenario, seed: int) -> Iterator[Spec]:
    """Yield the specifications of all runs of one seed."""
    options = scenario.options
    for chosen in options["protocols"]:
        spec = with_settings(chosen, options["traffic"] | options["network"])
        yield msgspec.structs.replace(spec, seed=seed, gauge_us=options["gauges"]["period"])
