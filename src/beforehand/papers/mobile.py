"""Read the published figures of the mobile papers (MOB, MOB-TR) from `reference/`."""

from __future__ import annotations

import csv
import tomllib
from dataclasses import dataclass
from importlib.resources import files

REFERENCE = files("beforehand.papers") / "reference"


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, and the range in which our value has to lie."""

    key: str
    paper: str
    figure: str
    experiment: str
    """The runs that the claim is about, by their experiment name in the scenario."""
    least: float | None
    most: float | None
    unit: str
    words: str

    def holds(self, value: float) -> bool:
        low = self.least is None or value >= self.least
        return low and (self.most is None or value <= self.most)

    @property
    def published(self) -> str:
        if self.most is None:
            return f"at least {self.least:g}"
        if self.least is None or not self.least:
            return f"at most {self.most:g}"
        return f"{self.least:,g} to {self.most:,g}"


def read_claims() -> list[Claim]:
    with (REFERENCE / "mobile_claims.csv").open() as lines:
        return [
            Claim(
                *(row["key"], row["paper"], row["figure"], row["experiment"]),
                least=float(row["least"]) if row["least"] else None,
                most=float(row["most"]) if row["most"] else None,
                unit=row["unit"],
                words=row["words"],
            )
            for row in csv.DictReader(lines)
        ]


def read_source() -> str:
    return str(tomllib.loads((REFERENCE / "mobile.toml").read_text())["source"])
