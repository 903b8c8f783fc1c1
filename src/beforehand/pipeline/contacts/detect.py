"""Stage `contacts`: compute the contacts between nodes from their linear movement segments.

Large inputs are cut into time slabs, and Spark processes each slab separately.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from beforehand.files import read_parquet
from beforehand.kernels.contacts import SLAB_US_MIN, Segments, contacts_of_slab, find_contacts
from beforehand.mobility.positions import check_ways
from beforehand.mobility.trace import Ints, make_trace
from beforehand.pipeline.contacts.positions import (
    POSITIONS_FILE,
    TraceFacts,
    read_presence,
    write_trace,
)
from beforehand.pipeline.datasets import Dataset
from beforehand.pipeline.schemas import CONTACTS, POSITIONS, names_of, table_of
from beforehand.pipeline.stages import Job, Made, OpenSpark
from beforehand.spark.executors import readable_failures, same_code
from beforehand.spark.progress import described, progress_bar

SLABS_MAX = 256
"""Maximum number of time slabs: enough to keep a cluster busy, few enough that each has work."""
ALONE_MAX = 1_000_000
"""Maximum size for one process: the number of segments plus their total length in units of the
range. At this size one process needs about 2 s, less than Spark needs to distribute the work."""


def make_contacts(spark: OpenSpark, job: Job) -> Made:
    """Read the positions, find all pairs within the range given by the job, and write the trace."""
    (positions,), range_m = job.inputs, job.spec
    names, presence = read_presence(positions)
    segments = _read_if_small(positions, range_m)
    if segments is not None:
        rows = find_contacts(segments, range_m)
    else:
        rows = _find_in_slabs(spark(), positions, range_m, presence)
    changes = positions.facts(TraceFacts).changes
    return write_trace(job.dataset, make_trace(names, rows, presence, changes))


def is_small(positions: Dataset) -> bool:
    """Return whether the number of segments allows one process to find the contacts.

    Very long segments can still require Spark; `_read_if_small` checks their length.
    """
    return positions.manifest().rows <= ALONE_MAX


def _read_if_small(positions: Dataset, range_m: float) -> Segments | None:
    if not is_small(positions):
        return None
    table = read_parquet(positions.file(POSITIONS_FILE))
    segments = Segments(*(table[name].to_numpy() for name in names_of(POSITIONS)))
    ways_m = np.maximum(abs(segments.x1 - segments.x0), abs(segments.y1 - segments.y0))
    total_m = float(ways_m.sum())
    check_ways(total_m, float(ways_m.max(initial=0.0)), range_m)
    return segments if len(ways_m) + total_m / range_m <= ALONE_MAX else None


def _find_in_slabs(spark: SparkSession, positions: Dataset, range_m: float, presence: Ints) -> Ints:
    start_us, end_us = int(presence[:, 1].min()), int(presence[:, 2].max())
    slab_us = max(SLAB_US_MIN, (end_us - start_us) // SLABS_MAX)
    segments = spark.read.parquet(str(positions.file(POSITIONS_FILE)))
    with progress_bar(spark, "contacts"), described(spark, "contacts"), readable_failures():
        _check_ways(segments, range_m)
        pieces = find_pieces(segments, range_m=range_m, start_us=start_us, slab_us=slab_us)
        found = merge_pieces(pieces).toArrow()
    return np.column_stack([found[name].to_numpy() for name in names_of(CONTACTS)])


def _check_ways(segments: DataFrame, range_m: float) -> None:
    way_m = F.greatest(F.abs(F.expr("x1 - x0")), F.abs(F.expr("y1 - y0")))
    (row,) = segments.agg(F.sum(way_m).alias("total_m"), F.max(way_m).alias("longest_m")).collect()
    check_ways(row["total_m"] or 0.0, row["longest_m"] or 0.0, range_m)


def find_pieces(segments: DataFrame, *, range_m: float, start_us: int, slab_us: int) -> DataFrame:
    """Return the contacts within each slab of `slab_us`; the first slab begins at `start_us`."""
    in_slabs = segments.withColumn(
        "slab",
        F.explode(
            F.sequence(
                F.expr(f"(t0_us - {start_us}) div {slab_us}"),
                F.expr(f"(t1_us - 1 - {start_us}) div {slab_us}"),
            )
        ),
    )
    kernel = _kernel(range_m, start_us, slab_us)
    return in_slabs.groupBy("slab").applyInArrow(kernel, CONTACTS)


def _kernel(
    range_m: float, start_us: int, slab_us: int
) -> Callable[[tuple[Any, ...], pa.Table], pa.Table]:
    kernel = same_code(contacts_of_slab)

    def find(key: tuple[Any, ...], table: pa.Table) -> pa.Table:
        low_us = start_us + key[0].as_py() * slab_us
        segments = Segments(*(table[name].to_numpy() for name in names_of(POSITIONS)))
        pieces = kernel(segments, range_m, low_us, low_us + slab_us)
        return table_of(CONTACTS, pieces.T)

    return find


def merge_pieces(pieces: DataFrame) -> DataFrame:
    """Return one row per contact: merge pieces of a pair that overlap or touch, also across
    slabs."""
    by_time = Window.partitionBy("a", "b").orderBy("up_us", "down_us")
    before = by_time.rowsBetween(Window.unboundedPreceding, -1)
    upto = by_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    begins = F.coalesce(F.col("up_us") > F.max("down_us").over(before), F.lit(True)).cast("int")
    numbered = pieces.withColumn("begins", begins).withColumn("contact", F.sum("begins").over(upto))
    merged = numbered.groupBy("a", "b", "contact").agg(
        F.min("up_us").alias("up_us"), F.max("down_us").alias("down_us")
    )
    return merged.select(*names_of(CONTACTS))
