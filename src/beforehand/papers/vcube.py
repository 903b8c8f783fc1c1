"""The published figures of the VCube paper (VCU), as data in `reference/`."""

from __future__ import annotations

import csv
import tomllib
from dataclasses import dataclass
from importlib.resources import files

REFERENCE = files("beforehand.papers") / "reference"


@dataclass(frozen=True)
class Published:
    """The paper's side of a comparison."""

    source: str
    tolerance: float
    """How many points a share of ours may be off."""

    def table(self, name: str) -> list[dict[str, str]]:
        with (REFERENCE / f"vcube_{name}.csv").open() as lines:
            return list(csv.DictReader(lines))


def read_published() -> Published:
    document = tomllib.loads((REFERENCE / "vcube.toml").read_text())
    return Published(document["source"], document["tolerance_points"])


def number(text: str) -> float | None:
    """A figure of a reference table; empty where the paper prints none."""
    return float(text) if text else None
