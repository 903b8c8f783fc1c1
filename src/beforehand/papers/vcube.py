"""Read the published figures of the VCube paper (VCU) from `reference/`."""

from __future__ import annotations

import csv
from dataclasses import dataclass

from beforehand.papers.claims import REFERENCE, read_source


@dataclass(frozen=True)
class Published:
    """The published figures for a comparison."""

    source: str

    def table(self, name: str) -> list[dict[str, str]]:
        with (REFERENCE / f"vcube_{name}.csv").open() as lines:
            return list(csv.DictReader(lines))


def read_published() -> Published:
    return Published(read_source("vcube"))


def number(text: str) -> float | None:
    """Parse a value of a reference table; return None where the paper prints none."""
    return float(text) if text else None
