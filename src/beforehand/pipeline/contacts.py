"""Stage `contacts`: from straight movement to who meets whom, cut into slabs of time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from beforehand.kernels.contacts import SLAB_US_MIN, Segments, contacts_of_slab
from beforehand.mobility.positions import check_ways
from beforehand.mobility.trace import make_trace
from beforehand.pipeline.positions import POSITIONS_FILE, TraceFacts, read_presence, write_trace
from beforehand.pipeline.schemas import CONTACTS, POSITIONS, names_of, table_of
from beforehand.pipeline.stages import Job, Made

SLABS_MAX = 256
"""Enough to keep a cluster busy, and each with enough to do."""


def make_contacts(spark: SparkSession, job: Job) -> Made:
    """Read the positions, find who is within the range of the job, write the trace."""
    (positions,) = job.inputs
    segments = spark.read.parquet(str(positions.file(POSITIONS_FILE)))
    _check_ways(segments, job.spec)
    names, presence = read_presence(positions)
    start_us, end_us = int(presence[:, 1].min()), int(presence[:, 2].max())
    slab_us = max(SLAB_US_MIN, (end_us - start_us) // SLABS_MAX)
    pieces = find_pieces(segments, range_m=job.spec, start_us=start_us, slab_us=slab_us)
    found = merge_pieces(pieces).toArrow()
    rows = np.column_stack([found[name].to_numpy() for name in names_of(CONTACTS)])
    changes = positions.facts(TraceFacts).changes
    return write_trace(job.dataset, make_trace(names, rows, presence, changes))


def _check_ways(segments: DataFrame, range_m: float) -> None:
    way_m = F.greatest(F.abs(F.expr("x1 - x0")), F.abs(F.expr("y1 - y0")))
    (row,) = segments.agg(F.sum(way_m).alias("total_m"), F.max(way_m).alias("longest_m")).collect()
    check_ways(row["total_m"] or 0.0, row["longest_m"] or 0.0, range_m)


def find_pieces(segments: DataFrame, *, range_m: float, start_us: int, slab_us: int) -> DataFrame:
    """Contacts within each slab of `slab_us`, the first of which begins at `start_us`."""
    in_slabs = segments.withColumn(
        "slab",
        F.explode(
            F.sequence(
                F.expr(f"(t0_us - {start_us}) div {slab_us}"),
                F.expr(f"(t1_us - 1 - {start_us}) div {slab_us}"),
            )
        ),
    )
    return in_slabs.groupBy("slab").applyInArrow(_kernel(range_m, start_us, slab_us), CONTACTS)


def _kernel(
    range_m: float, start_us: int, slab_us: int
) -> Callable[[tuple[Any, ...], pa.Table], pa.Table]:
    def find(key: tuple[Any, ...], table: pa.Table) -> pa.Table:
        low_us = start_us + key[0].as_py() * slab_us
        segments = Segments(*(table[name].to_numpy() for name in names_of(POSITIONS)))
        pieces = contacts_of_slab(segments, range_m, low_us, low_us + slab_us)
        return table_of(CONTACTS, pieces.T)

    return find


def merge_pieces(pieces: DataFrame) -> DataFrame:
    """One row per contact: what overlaps or touches, in one slab or across a border, is one."""
    by_time = Window.partitionBy("a", "b").orderBy("up_us", "down_us")
    before = by_time.rowsBetween(Window.unboundedPreceding, -1)
    upto = by_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    begins = F.coalesce(F.col("up_us") > F.max("down_us").over(before), F.lit(True)).cast("int")
    numbered = pieces.withColumn("begins", begins).withColumn("contact", F.sum("begins").over(upto))
    merged = numbered.groupBy("a", "b", "contact").agg(
        F.min("up_us").alias("up_us"), F.max("down_us").alias("down_us")
    )
    return merged.select(*names_of(CONTACTS))
