"""Combine the datasets of all runs into the published tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from beforehand.files import read_parquet
from beforehand.pipeline.contacts.metrics import MetricFacts
from beforehand.pipeline.contacts.simulate import RunFacts
from beforehand.pipeline.contacts.verdicts import VerdictFacts
from beforehand.pipeline.schemas import METRIC_FILES, RUNS, names_of, table_of_rows
from beforehand.pipeline.stages import Job, Work


def gather_tables(work: Work) -> dict[str, pa.Table]:
    """Return the tables by name: `runs` with one row per run, and all measurements of each run."""
    stages = (work["events"], work["verdicts"], work["metrics"])
    rows = [_row(*jobs) for jobs in zip(*stages, strict=True)]
    ordered = sorted(rows, key=lambda row: (row["seed"], *_longest_first(row), row["run"]))
    names = names_of(RUNS)
    tables = {"runs": table_of_rows(RUNS, [[row[name] for name in names] for row in ordered])}
    for file in METRIC_FILES:
        tables[Path(file).stem] = _joined(work["events"], work["metrics"], file)
    return tables


def _joined(runs: Sequence[Job], metrics: Sequence[Job], file: str) -> pa.Table:
    pairs = zip(runs, metrics, strict=True)
    in_order = [job for _, job in sorted(pairs, key=lambda pair: pair[0].name)]
    return pa.concat_tables([read_parquet(job.dataset.file(file)) for job in in_order])


def _longest_first(row: dict[str, Any]) -> tuple[bool, int]:
    lifetime_us = row["lifetime_us"]
    return lifetime_us is not None, -(lifetime_us or 0)


def _row(run: Job, verdict: Job, metrics: Job) -> dict[str, Any]:
    """Return all results of a run, by the column names of `RUNS`."""
    spec = run.spec.spec
    made, judged = run.dataset.facts(RunFacts), verdict.dataset.facts(VerdictFacts)
    measured = metrics.dataset.facts(MetricFacts)
    counts = measured.counts
    handed = counts["broadcasts"] + counts["receptions"]
    return {
        "run": run.name,
        "protocol": spec.protocol,
        "lifetime_us": spec.lifetime_us,
        "point": run.spec.point,
        "seed": spec.seed,
        "nodes": made.nodes,
        "contacts": made.contacts,
        **counts,
        # A ratio with a zero denominator is null, neither 1 nor 0.
        "delivery_ratio": counts["deliveries"] / handed if handed else None,
        "reachable": made.reachable,
        "reach": counts["receptions"] / made.reachable if made.reachable > 0 else None,
        "left_out": made.left_out,
        "evictions": measured.evictions,
        "frames_aborted": made.frames_aborted,
        "held_us_avg": measured.held_us_avg,
        **{
            f"{measure}_us_{kind}": value
            for measure, spread in measured.spreads.items()
            for kind, value in spread.items()
        },
        "past_entries_avg": measured.past_entries_avg,
        "frames": made.frames,
        "bytes": made.bytes,
        "promise": judged.promise,
        "verdict": judged.state,
        "violations": sum(judged.violations.values()),
        "cpu_s": made.cpu_s,
        "transfer_model": made.transfer_model,
        "engine": made.engine,
        "engine_why": made.engine_why,
    }
