"""A scenario file: what to run, as TOML. `docs/pipeline.md` says what may be in it.

All that is wrong with a file is told at once, with line numbers, before anything runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from beforehand.scenario import protocols, values
from beforehand.scenario.document import Document
from beforehand.scenario.protocols import read_protocols
from beforehand.scenario.settings import (
    NETWORK,
    TRAFFIC,
    read_network,
    read_settings,
    with_settings,
)
from beforehand.scenario.source import Source, read_source
from beforehand.sim.run import Spec

KEYS: dict[str, tuple[str, ...]] = {
    "scenario": ("name", "title", "paper", "world"),
    "mobility": ("generator", "input", "format", "range"),
    "traffic": tuple(TRAFFIC),
    "network": tuple(NETWORK),
    "protocols": protocols.KEYS,
    "sweep": ("seeds",),
    "gauges": ("node", "period"),
}
DEFAULT_SEEDS = 1


@dataclass(frozen=True)
class Scenario:
    """A scenario without a mistake."""

    name: str
    title: str
    paper: str | None
    """The key of the published figures to compare with."""
    source: Source
    specs: tuple[Spec, ...]
    """One per protocol and lifetime; their seed is yet to be set."""
    seeds: tuple[int, ...]
    gauge_node: str | int | None
    """The node whose registries are watched, by name or index; None: who is there longest."""
    document: Mapping[str, Any]
    """All that was written, `--set` included."""


def read_scenario(
    path: Path, *, seeds: int | None = None, overrides: Sequence[str] = ()
) -> Scenario:
    """The scenario of a file. seeds: instead of its own. overrides: `section.key=value`."""
    document = Document(path, seeds=seeds, overrides=overrides)
    document.check_tables(KEYS)
    head = document.table("scenario", KEYS["scenario"])
    name = document.value(head, ("scenario", "name"), values.plain_name, document.path.stem)
    title = document.value(head, ("scenario", "title"), values.text, name)
    paper = document.value(head, ("scenario", "paper"), values.text, None)
    # Other worlds have readers of their own; whoever comes here is in this one.
    document.value(head, ("scenario", "world"), values.one_of("contacts"), None)
    source = read_source(document)
    found = read_settings(document, "traffic", TRAFFIC) | read_network(document)
    watch = document.table("gauges", KEYS["gauges"])
    period = ("gauges", "period")
    gauge_us = document.value(watch, period, values.positive_duration, None)
    specs = tuple(
        msgspec.structs.replace(with_settings(spec, found), gauge_us=gauge_us)
        for spec in read_protocols(document)
    )
    sweep = document.table("sweep", KEYS["sweep"])
    count = document.value(sweep, ("sweep", "seeds"), values.whole(1), DEFAULT_SEEDS)
    document.check()
    assert source is not None, "or something is wrong with it"
    every = tuple(range(1, count + 1))
    node = watch.get("node")
    return Scenario(name, title, paper, source, specs, every, node, document.content)
