"""Read the published figures of the VCube paper (VCU) from `reference/`."""

from __future__ import annotations

import csv
import tomllib
from dataclasses import dataclass
from importlib.resources import files

REFERENCE = files("beforehand.papers") / "reference"


@dataclass(frozen=True)
class Published:
    """The published figures for a comparison."""

    source: str
    tolerance: float
    """The allowed difference of a share, in percentage points."""

    def table(self, name: str) -> list[dict[str, str]]:
        with (REFERENCE / f"vcube_{name}.csv").open() as lines:
            return list(csv.DictReader(lines))


def read_published() -> Published:
    document = tomllib.loads((REFERENCE / "vcube.toml").read_text())
    return Published(document["source"], document["tolerance_points"])


def number(text: str) -> float | None:
    """Parse a value of a reference table; return None where the paper prints none."""
    return float(text) if text else None
