"""Publish the results of a scenario under fixed names, for the report and for other programs."""

from __future__ import annotations

import json
import platform
from importlib.metadata import version
from pathlib import Path

from beforehand.files import SCENARIO_FILE, write_text
from beforehand.pipeline.datasets import write_table
from beforehand.pipeline.experiment import Conclusion
from beforehand.scenario.head import Scenario

PACKAGES = ("beforehand", "pyspark", "pyarrow", "numpy", "numba")


def publish(out: Path, scenario: Scenario, conclusion: Conclusion) -> None:
    """Write the tables and `scenario.json`, replacing the results of an earlier run."""
    for name, table in conclusion.tables.items():
        write_table(out / f"{name}.parquet", table)
    about = {
        "name": scenario.name,
        "title": scenario.title,
        "paper": scenario.paper,
        "world": scenario.world,
        "parameters": scenario.document,
        **conclusion.about,
        "versions": {name: version(name) for name in PACKAGES}
        | {"python": platform.python_version()},
    }
    write_text(out / SCENARIO_FILE, json.dumps(about, indent=2, ensure_ascii=False) + "\n")
