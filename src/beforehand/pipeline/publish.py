"""The results of a scenario under plain names, for the report and for anybody else."""

from __future__ import annotations

import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from beforehand.mobility.statistics import describe
from beforehand.mobility.trace import Trace
from beforehand.pipeline.datasets import write_table, write_text
from beforehand.pipeline.positions import PRESENCE_FILE, read_trace
from beforehand.pipeline.scenario import Scenario
from beforehand.pipeline.schemas import GAUGES_FILE, METRIC_FILES, SPREADS
from beforehand.pipeline.work import Work

PACKAGES = ("beforehand", "pyspark", "pyarrow", "numpy", "numba")


def publish(out: Path, scenario: Scenario, work: Work) -> list[dict[str, Any]]:
    """Copy the last results to `out`, over those of an earlier run. The rows of `runs`."""
    for name in METRIC_FILES:
        write_table(out / name, pq.read_table(work.metrics.file(name)))
    gauges = [pq.read_table(run.events.file(GAUGES_FILE)) for run in work.runs]
    write_table(out / GAUGES_FILE, pa.concat_tables(gauges))
    # One trace stands for all seeds: they differ in no more than chance.
    first = work.traces[scenario.seeds[0]]
    write_table(out / PRESENCE_FILE, pq.read_table(first.file(PRESENCE_FILE)))
    trace = read_trace(first)
    write_table(out / "trace.parquet", pa.Table.from_pylist([_statistics(trace)]))
    about = {
        "name": scenario.name,
        "title": scenario.title,
        "paper": scenario.paper,
        "parameters": scenario.document,
        "changes": dict(trace.changes),
        "versions": {name: version(name) for name in PACKAGES} | {"python": _python()},
    }
    write_text(out / "scenario.json", json.dumps(about, indent=2, ensure_ascii=False) + "\n")
    rows: list[dict[str, Any]] = pq.read_table(out / METRIC_FILES[0]).to_pylist()
    return rows


def _python() -> str:
    return platform.python_version()


def _statistics(trace: Trace) -> dict[str, float]:
    """The table of the paper, times in microseconds as everywhere on disk."""
    found = describe(trace)
    return {
        "nodes": found["nodes"],
        "max_at_once": found["at_once_max"],
        **{f"activity_{kind}": 1e6 * found[f"activity_s_{kind}"] for kind in SPREADS},
        "contacts": found["contacts"],
        **{f"duration_{kind}": 1e6 * found[f"contact_s_{kind}"] for kind in SPREADS},
    }
