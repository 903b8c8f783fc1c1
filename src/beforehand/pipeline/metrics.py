"""Stage `metrics`: the figures of every run from the event logs, in Spark SQL.

Each function is DataFrame to DataFrame and ends in the `select` that is its contract.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from beforehand.mobility.trace import Ints
from beforehand.pipeline.datasets import write_table
from beforehand.pipeline.positions import read_trace
from beforehand.pipeline.schemas import (
    EVENTS,
    FACTS,
    MEASURES,
    MEETINGS,
    MEETINGS_FILE,
    MESSAGES,
    MESSAGES_FILE,
    NODES,
    NODES_FILE,
    QUANTILES,
    QUANTILES_FILE,
    RUNS,
    RUNS_FILE,
    SCATTER,
    SCATTER_FILE,
    SPREADS,
    names_of,
    table_of_rows,
)
from beforehand.pipeline.simulate import RunFacts
from beforehand.pipeline.stages import Job, Made
from beforehand.pipeline.verdicts import VerdictFacts
from beforehand.verify.event_log import EVENTS_FILE

PERMILLE = (*range(0, 1000, 5), 999, 1000)
SCATTER_MAX, SCATTER_TOP, SCATTER_SAMPLE = 3000, 1000, 1800
"""Points of a run: at most, the largest latencies among them, and about as many of all others."""

MESSAGE = ["run", "origin", "seq"]
MIXED = "xxhash64(node, origin, seq) as mixed"
COUNTED = {
    "broadcasts": "broadcast",
    "receptions": "receive",
    "deliveries": "deliver",
    "expired": "expire",
    "dropped": "drop",
}


def make_metrics(spark: SparkSession, job: Job) -> Made:
    """Read the logs of all runs, compute, write one file for each kind of result."""
    runs, verdicts = job.spec
    paths = [str(run.dataset.file(EVENTS_FILE)) for run in runs]
    events = spark.read.schema(EVENTS).parquet(*paths)
    facts = [_facts(run, verdict) for run, verdict in zip(runs, verdicts, strict=True)]
    delays = rank_values(find_receptions(events), "delay_us").cache()
    latencies = rank_values(find_deliveries(events), "latency_us").cache()
    known = spark.createDataFrame(table_of_rows(FACTS, facts))
    runs_table = summarise_runs(events, delays, latencies, known)
    tables = {
        RUNS_FILE: runs_table.orderBy("seed", F.desc_nulls_first("lifetime_us"), "run"),
        QUANTILES_FILE: find_quantiles(delays, latencies).orderBy("run", "metric", "share"),
        SCATTER_FILE: sample_scatter(latencies).orderBy("run", "delay_us", "latency_us"),
        NODES_FILE: summarise_nodes(events).orderBy("run", "node"),
        MESSAGES_FILE: summarise_messages(events).orderBy("run", "sent_us", "origin", "seq"),
    }
    for name, table in tables.items():
        write_table(job.dataset.file(name), table.toArrow())
    # One trace stands for all seeds, as everywhere: that of the first run.
    contacts = read_trace(runs[0].inputs[0]).contacts
    write_table(job.dataset.file(MEETINGS_FILE), find_meetings(contacts))
    delays.unpersist()
    latencies.unpersist()
    return Made(len(runs))


def find_receptions(events: DataFrame) -> DataFrame:
    """One row per reception; delay_us: since the broadcast. mixed: a hash of what and where."""
    received = events.where("kind = 'receive'").join(_broadcasts(events), MESSAGE, how="inner")
    return received.selectExpr("run", MIXED, "t_us - sent_us as delay_us")


def find_deliveries(events: DataFrame) -> DataFrame:
    """One row per delivery of a message that was received.

    delay_us: from broadcast to reception. latency_us: from reception to delivery. age_us: their
    sum. A message that was evicted may come again, before its delivery or after: the last reception
    before it counts.
    """
    at_node = Window.partitionBy("run", "node", "origin", "seq").orderBy("step")
    handled = events.where("kind in ('receive', 'deliver')")
    # A message is delivered once, so what comes right before that is its last reception.
    delivered = (
        handled.withColumn("received_us", F.lag("t_us").over(at_node))
        .where("kind = 'deliver' and received_us is not null")
        .withColumnRenamed("t_us", "delivered_us")
    )
    return delivered.join(_broadcasts(events), MESSAGE, how="inner").selectExpr(
        "run",
        MIXED,
        "received_us - sent_us as delay_us",
        "delivered_us - received_us as latency_us",
        "delivered_us - sent_us as age_us",
    )


def rank_values(rows: DataFrame, column: str) -> DataFrame:
    """The same rows, and for each its `rank` by a column among the `size` rows of its run.

    All rows of a run come to one place and in one order: what is added up there afterwards has the
    same value to the last bit, on one machine or on many.
    """
    run = Window.partitionBy("run")
    rank = F.row_number().over(run.orderBy(column, "mixed"))
    return rows.withColumn("rank", rank).withColumn("size", F.count(F.lit(1)).over(run))


def summarise_runs(
    events: DataFrame, delays: DataFrame, latencies: DataFrame, facts: DataFrame
) -> DataFrame:
    """One row per run. facts: what the manifests of the runs and of their verdicts say."""
    counts = events.groupBy("run").agg(
        *(F.count(_where(kind, F.lit(1))).alias(name) for name, kind in COUNTED.items()),
        F.avg(_where("broadcast", F.col("value"))).alias("past_entries_avg"),
    )
    parts = [
        counts,
        delays.groupBy("run").agg(*_spreads("delay")),
        latencies.groupBy("run").agg(*_spreads("latency"), *_spreads("age")),
    ]
    joined = reduce(lambda left, right: left.join(right, "run", how="left"), parts, facts)
    spreads = [f"{measure}_us_{spread}" for measure in MEASURES for spread in SPREADS]
    # A run without an event of a kind has no row or no value there: that is none, or zero.
    filled = joined.fillna(0, subset=[*COUNTED, "past_entries_avg", *spreads])
    handed = F.col("broadcasts") + F.col("receptions")
    # A share of nothing is null: neither all of it nor none.
    ratio = F.when(handed > 0, F.col("deliveries") / handed)
    reach = F.when(F.col("reachable") > 0, F.col("reached") / F.col("reachable"))
    rated = filled.withColumn("delivery_ratio", ratio).withColumn("reach", reach)
    return rated.select(*names_of(RUNS))


def find_quantiles(delays: DataFrame, latencies: DataFrame) -> DataFrame:
    """For each share the smallest value that so many of a run's values do not exceed."""
    listed = ", ".join(map(str, PERMILLE))
    # In whole numbers, as 0.995 times 1000 is not quite 995.
    shares = f"filter(array({listed}), p -> greatest(1, (p * size + 999) div 1000) = rank)"
    parts = []
    for metric, ranked in (("delay", delays), ("latency", latencies)):
        # Most rows stand for no share at all, and need not be asked about each.
        some = "rank = 1 or rank * 1000 div size > (rank - 1) * 1000 div size"
        rows = ranked.where(some).withColumn("permille", F.explode(F.expr(shares)))
        value = F.col(f"{metric}_us").alias("value_us")
        share = (F.col("permille") / 1000).alias("share")
        parts.append(rows.select("run", F.lit(metric).alias("metric"), share, value))
    return parts[0].unionByName(parts[1]).select(*names_of(QUANTILES))


def sample_scatter(latencies: DataFrame) -> DataFrame:
    """The largest latencies of each run and a sample of all, the same one every time."""
    # By a hash: no draw, and nothing that depends on the order in which rows come.
    is_top = F.col("rank") > F.col("size") - SCATTER_TOP
    is_drawn = F.pmod("mixed", "size") < SCATTER_SAMPLE
    chosen = latencies.where(is_top | is_drawn)
    place = F.row_number().over(Window.partitionBy("run").orderBy(F.desc("rank")))
    kept = chosen.withColumn("place", place).where(F.col("place") <= SCATTER_MAX)
    return kept.select(*names_of(SCATTER))


def summarise_nodes(events: DataFrame) -> DataFrame:
    """One row for each node of a run that broadcast, received or delivered."""
    grouped = _handled(events).groupBy("run", "node")
    taken = _where("deliver", F.when(F.col("node") != F.col("origin"), F.col("since_us")))
    made = grouped.agg(
        *_counts("broadcasts", "receptions", "deliveries"),
        _exact_mean(_where("receive", F.col("since_us"))).alias("delay_us_avg"),
        _exact_mean(taken).alias("age_us_avg"),
    )
    return made.select(*names_of(NODES))


def summarise_messages(events: DataFrame) -> DataFrame:
    """One row for each message of a run: how many had it, and when the last of them."""
    grouped = _handled(events).groupBy(*MESSAGE)
    made = grouped.agg(
        F.max("sent_us").alias("sent_us"),
        F.max(_where("broadcast", F.col("value"))).alias("past_entries"),
        *_counts("receptions", "deliveries"),
        F.max(_where("receive", F.col("since_us"))).alias("delay_us_max"),
        F.max(_where("deliver", F.col("since_us"))).alias("age_us_max"),
    )
    return made.select(*names_of(MESSAGES))


def find_meetings(contacts: Ints) -> pa.Table:
    """Quantiles of how long contacts last, and of how long two nodes then do not meet.

    contacts: rows of a, b, up_us, down_us; those of one pair do not overlap.
    """
    a, b, up_us, down_us = contacts[np.lexsort(contacts.T[2::-1])].T
    is_again = (a[1:] == a[:-1]) & (b[1:] == b[:-1])
    measured = {"duration": down_us - up_us, "between": (up_us[1:] - down_us[:-1])[is_again]}
    rows = [
        (metric, permille / 1000, int(values[max(1, -(-permille * len(values) // 1000)) - 1]))
        for metric, values in ((name, np.sort(found)) for name, found in measured.items())
        for permille in (PERMILLE if len(values) else ())
    ]
    return table_of_rows(MEETINGS, rows)


def _handled(events: DataFrame) -> DataFrame:
    """What became of messages; since_us: from the broadcast on."""
    handled = events.where("kind in ('broadcast', 'receive', 'deliver')")
    joined = handled.join(_broadcasts(events), MESSAGE, how="inner")
    return joined.withColumn("since_us", F.col("t_us") - F.col("sent_us"))


def _counts(*names: str) -> list[Column]:
    return [F.count(_where(COUNTED[name], F.lit(1))).alias(name) for name in names]


def _exact_mean(values: Column) -> Column:
    """Of whole numbers, whose sum is the same in any order; null where there are none."""
    return F.when(F.count(values) > 0, F.sum(values) / F.count(values))


def _broadcasts(events: DataFrame) -> DataFrame:
    spoken = events.where("kind = 'broadcast'").select(*MESSAGE, F.col("t_us").alias("sent_us"))
    # A hundredth of the log: sent to everybody, so that the log itself need not be shuffled.
    return F.broadcast(spoken)


def _where(kind: str, value: Column) -> Column:
    return F.when(F.col("kind") == kind, value)


def _spreads(measure: str) -> list[Column]:
    column = F.col(f"{measure}_us")
    return [
        F.min(column).cast("double").alias(f"{measure}_us_min"),
        F.max(column).cast("double").alias(f"{measure}_us_max"),
        F.avg(column).alias(f"{measure}_us_avg"),
        F.stddev_pop(column).alias(f"{measure}_us_stdev"),
    ]


def _facts(run: Job, verdict: Job) -> tuple[object, ...]:
    spec = run.spec.spec
    made, judged = run.dataset.facts(RunFacts), verdict.dataset.facts(VerdictFacts)
    violations = sum(judged.violations.values())
    return (
        *(run.name, spec.protocol, spec.lifetime_us, spec.seed),
        *(made.nodes, made.contacts, made.frames, made.bytes, made.reached, made.reachable),
        *(judged.promise, judged.state, violations, made.cpu_s, made.transfer_model),
    )
