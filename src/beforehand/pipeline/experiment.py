"""The description of an experiment kind in one record, and the registry of all kinds.

Each module in `worlds/` defines one experiment as `EXPERIMENT`, registered under the module's name.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from beforehand.errors import InputError, choose
from beforehand.pipeline import worlds
from beforehand.pipeline.stages import Missing, Stage, Work
from beforehand.scenario.document import Document
from beforehand.scenario.head import Scenario, read_head, world_of
from beforehand.scenario.options import Table

if TYPE_CHECKING:
    from beforehand.report.content import Page

Row = dict[str, Any]
State = Literal["valid", "invalid", "unknown"]
Grid = tuple[Sequence[str], Sequence[Sequence[str]]]
"""The headings and the rows of a printed table."""


@dataclass(frozen=True)
class Conclusion:
    """The outcome of a scenario, computed from its datasets."""

    tables: Mapping[str, pa.Table]
    """The tables to publish, by name."""
    state: State
    rows: list[Row]
    """The main result rows of the scenario: runs, or claims with their verdicts."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Additional entries for `scenario.json`."""


@dataclass(frozen=True)
class Compared:
    """The columns that `beforehand diff` compares between two finished runs."""

    table: str
    """The name of a published table."""
    keys: tuple[str, ...]
    """The grouping columns. Rows with equal keys differ only in their seeds."""
    figures: tuple[str, ...]
    add_keys: Callable[[Row], Row] = lambda _: {}
    """Returns keys that are computed from a row because no column holds them."""


@dataclass(frozen=True)
class Experiment:
    """Everything that the pipeline needs to know about one kind of experiment."""

    tables: Callable[[], Mapping[str, Table]]
    """The tables that its scenario file may contain besides `[scenario]` and `[sweep]`, by name. An
    entry `sweep` adds keys to the table `[sweep]`."""
    seeds: int
    """The number of seeds if the scenario does not set one."""
    stages: Callable[[], tuple[Stage, ...]]
    """The stages, each after the stages that it reads. A sweep has one stage."""
    conclude: Callable[[Scenario, Work], Conclusion]
    noun: str
    """The plural noun for the rows of its conclusion."""
    table: Callable[[list[Row]], Grid]
    """Formats these rows for a terminal."""
    page: Callable[[Path], Page]
    """Builds the report page from the folder of published results."""
    compared: Compared
    """The comparison that `beforehand diff` shows."""
    papers: tuple[str, ...] = ()
    """Keys of published figures that a scenario may ask to be compared with."""
    replay: Callable[[str, Row, Path], str] | None = None
    """Runs a finished task once more from its parameters, and writes the logs of its run into a
    folder. The first argument is its name. Returns the part of the run, if that is not all of it.
    None: the datasets have the logs."""
    swept: tuple[str, ...] = ()
    """The tables whose keys `[sweep]` can sweep."""
    is_small: Callable[[Missing], bool] = lambda _: True
    """Returns whether Java has so little work that fast start-up matters more than throughput."""


def world_names() -> list[str]:
    """Return the names of all worlds without importing them."""
    return sorted(module.name for module in pkgutil.iter_modules(worlds.__path__))


def load_experiment(world: str, *, where: str) -> Experiment:
    """Return the experiment of a world. where: the location that the error for an unknown world
    names."""
    known = world_names()
    if world not in known:
        raise InputError(f"no such world: `{world}`", where=where, hint=choose(world, known))
    found = import_module(f"{worlds.__name__}.{world}").EXPERIMENT
    assert isinstance(found, Experiment), f"worlds/{world}.py defines the type of its EXPERIMENT"
    return found


def read_scenario(
    path: Path, *, seeds: int | None = None, overrides: Sequence[str] = ()
) -> Scenario:
    """Read the scenario from a file. seeds: replaces the number of seeds in the file. overrides:
    `section.key=value`."""
    document = Document(path, seeds=seeds, overrides=overrides)
    experiment = load_experiment(world_of(document), where=str(path))
    known = (experiment.seeds, experiment.papers, experiment.swept)
    return read_head(document, experiment.tables(), *known)
