"""The runs and the observers behind figures 2 to 7 of OBS section 5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from beforehand.protocols.observer.observer import Dial, cbd, dapw, dpc1, dpc2
from beforehand.sim.drift import LAWS, DelayClock, Drift

WAITS = (100, 80, 60, 40, 20, 0)
PARTS = (1, 2, 3, 4, 6, 8)


def figure_specs(
    seeds: Sequence[int],
    *,
    messages: int = 10_000,
    sends_to_all: bool = True,
    delay_clock: DelayClock = "sender",
) -> list[Drift]:
    """Return the runs behind figures 2 to 7, without duplicates: several figures share runs."""
    base = Drift(messages=messages, fan_out=None if sends_to_all else 1, delay_clock=delay_clock)
    changes: list[dict[str, Any]] = [{}]
    changes += [{"epsilon": epsilon} for epsilon in (5, 20, 30)]
    changes += [{"delta": delta} for delta in (5, 20, 30)]
    changes += [{"rate": rate} for rate in (0.5, 0.01)]
    changes += [{"processes": processes} for processes in (5, 50)]
    return [
        msgspec.structs.replace(base, law=law, seed=seed, **change)
        for change in changes
        for law in LAWS
        for seed in seeds
    ]


def figure_dials(spec: Drift) -> list[tuple[str, Dial]]:
    """Return the observers that the figures show for this run."""
    dials = [("dapw", dapw(wait)) for wait in WAITS] + [("cbd", cbd(wait)) for wait in WAITS]
    if (spec.epsilon, spec.delta, spec.rate) == (10, 10, 0.1) and spec.processes in (10, 50):
        dials += [("dpc1", dpc1(wait)) for wait in WAITS]
        dials += [("dpc2", dpc2(wait)) for wait in WAITS]
        dials += [(f"cbd-{k}", cbd(wait, k)) for k in PARTS for wait in WAITS]
    return dials
