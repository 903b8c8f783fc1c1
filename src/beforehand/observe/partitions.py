"""The number of tasks that order a stream."""

from __future__ import annotations

from pyspark.sql import SparkSession

PARTITIONS_MAX = 8
SHUFFLES = "spark.sql.shuffle.partitions"


def default_partitions(spark: SparkSession) -> int:
    """Return the session's number of shuffle partitions, but at most `PARTITIONS_MAX`.

    Spark's default of 200 makes 200 tasks and 200 files of each micro-batch, however small.
    """
    return min(int(str(spark.conf.get(SHUFFLES))), PARTITIONS_MAX)
