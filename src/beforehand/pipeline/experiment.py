"""A kind of experiment: all that there is to know of it in one record, and the registry of all.

Whatever stands in a file of `worlds/` as `EXPERIMENT` is one, under the name of the file.
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
"""Headings and lines."""


@dataclass(frozen=True)
class Conclusion:
    """What the datasets of a scenario come to."""

    tables: Mapping[str, pa.Table]
    """What is published, by name."""
    state: State
    rows: list[Row]
    """What the scenario is about: runs, or claims with their verdicts."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """What else goes into `scenario.json`."""


@dataclass(frozen=True)
class Compared:
    """What of two finished runs is set side by side."""

    table: str
    """A published one."""
    keys: tuple[str, ...]
    """Rows that agree in these differ in their seeds alone."""
    figures: tuple[str, ...]
    add_keys: Callable[[Row], Row] = lambda _: {}
    """Keys that follow from a row and stand in no column of it."""


@dataclass(frozen=True)
class Experiment:
    """All that there is to know of a kind of experiment."""

    tables: Callable[[], Mapping[str, Table]]
    """What its scenario file may hold besides `[scenario]` and `[sweep]`, by name of the table.
    `sweep` here adds keys to that one."""
    seeds: int
    """How many, where a scenario does not say."""
    stages: Callable[[], tuple[Stage, ...]]
    """Each after those that it reads. A sweep has one."""
    conclude: Callable[[Scenario, Work], Conclusion]
    noun: str
    """What the rows of its conclusion are."""
    table: Callable[[list[Row]], Grid]
    """The same rows, for a terminal."""
    page: Callable[[Path], Page]
    """What a report says of the folder that was published to."""
    compared: Compared
    """What `beforehand diff` shows."""
    papers: tuple[str, ...] = ()
    """Keys of published figures that a scenario may ask to be compared with."""
    is_small: Callable[[Missing], bool] = lambda _: True
    """Whether Java has so little to do that it had better start fast than run fast."""


def world_names() -> list[str]:
    """Every world that there is. None of them is imported."""
    return sorted(module.name for module in pkgutil.iter_modules(worlds.__path__))


def load_experiment(world: str, *, where: str) -> Experiment:
    """The experiment of a world. where: who asks for it, if there is no such world."""
    known = world_names()
    if world not in known:
        raise InputError(f"no such world: `{world}`", where=where, hint=choose(world, known))
    found = import_module(f"{worlds.__name__}.{world}").EXPERIMENT
    assert isinstance(found, Experiment), f"worlds/{world}.py says what its EXPERIMENT is"
    return found


def read_scenario(
    path: Path, *, seeds: int | None = None, overrides: Sequence[str] = ()
) -> Scenario:
    """The scenario of a file. seeds: instead of its own. overrides: `section.key=value`."""
    document = Document(path, seeds=seeds, overrides=overrides)
    experiment = load_experiment(world_of(document), where=str(path))
    return read_head(document, experiment.tables(), experiment.seeds, experiment.papers)
