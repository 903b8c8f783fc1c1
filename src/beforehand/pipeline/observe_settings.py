"""What the observers of a folder are started with, and keep for as long as their checkpoint."""

from __future__ import annotations

from pathlib import Path

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from beforehand.core.observer import Dial
from beforehand.core.timestamp import Guarantees
from beforehand.errors import InputError
from beforehand.pipeline.datasets import write_text
from beforehand.pipeline.observe_columns import check_columns
from beforehand.pipeline.observe_input import find_format
from beforehand.pipeline.observe_state import Clock

COUNTS_MAX = 2**60
"""How many events a process may have at one tick is not known here: its counts are believed."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How to order, as a user says it."""

    epsilon_us: int
    delta_us: int
    wait_percent: int = 100
    checks_queue: bool = True
    elements: int | None = None
    """None: as many as the first stamp has."""
    tick_us: int | None = None
    """None: a millisecond for stamps, a microsecond for the column `time`."""
    clock: Clock | None = None
    """None: the column `arrived` if there is one, else what the events show."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The same, once the files were looked at."""

    format: str
    schema: str
    epsilon_us: int
    delta_us: int
    wait_percent: int
    checks_queue: bool
    elements: int
    tick_us: int
    clock: Clock

    @property
    def columns(self) -> StructType:
        return StructType.fromJson(msgspec.json.decode(self.schema))

    @property
    def dial(self) -> Dial:
        return Dial(self.wait_percent, self.checks_queue, self.elements)

    @property
    def guarantees(self) -> Guarantees:
        # Rounded up: a guarantee that is too wide costs time, one too narrow costs order.
        epsilon = -(-self.epsilon_us // self.tick_us)
        delta = -(-self.delta_us // self.tick_us)
        return Guarantees(1, epsilon, max(delta, 1), COUNTS_MAX)


def settle(spark: SparkSession, folder: Path, plan: Plan) -> Settings:
    """Look at what is in the folder, and decide what the plan leaves open."""
    format = find_format(folder)
    table = spark.read.format(format).load(str(folder))
    has_stamp = "stamp" in table.columns
    clock: Clock = plan.clock or ("arrival" if "arrived" in table.columns else "event")
    check_columns(table.schema, clock, ())
    elements = plan.elements
    if elements is None:
        elements = _elements_sent(table) if has_stamp else 0
    return Settings(
        format=format,
        schema=table.schema.json(),
        epsilon_us=plan.epsilon_us,
        delta_us=plan.delta_us,
        wait_percent=plan.wait_percent,
        checks_queue=plan.checks_queue,
        elements=elements,
        tick_us=plan.tick_us or (1000 if has_stamp else 1),
        clock=clock,
    )


def keep_settings(spark: SparkSession, folder: Path, plan: Plan, kept: Path) -> Settings:
    """The settings in the file `kept`, which must agree with the plan; new ones the first time."""
    if not kept.exists():
        settings = settle(spark, folder, plan)
        write_text(kept, msgspec.json.format(msgspec.json.encode(settings)).decode() + "\n")
        return settings
    settings = msgspec.json.decode(kept.read_bytes(), type=Settings)
    for name in plan.__struct_fields__:
        before, asked = getattr(settings, name), getattr(plan, name)
        if asked not in (None, before):
            raise InputError(
                f"`{name}` was {before} when this stream was started, and is {asked} now",
                where=str(kept),
                hint="a stream keeps its settings; others need a checkpoint of their own",
            )
    return settings


def _elements_sent(table: DataFrame) -> int:
    first = table.where("stamp.kn is not null").select(F.size("stamp.kn")).first()
    return 0 if first is None else int(first[0])
