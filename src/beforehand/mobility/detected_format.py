"""The detected format of a file. Results carry it so that the operator can see a wrong guess."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class DetectedFormat:
    """The format, the column of each role, and the assumptions about what the file leaves open."""

    format: str
    columns: Mapping[str, str] = field(default_factory=dict)
    """The column name by role, as the header spells it; `column 3` in a file without a header."""
    ignored: tuple[str, ...] = ()
    """Columns of the header that the reader does not use."""
    assumed: tuple[str, ...] = ()
    """Assumptions in words, each with the option that overrides it."""
    facts: Mapping[str, int | str] = field(default_factory=dict)
    """Further facts by name, such as the day and the trip count of a timetable."""

    def sentences(self) -> list[str]:
        """Return the detected format as text, one line per sentence."""
        found = [f"{role} from `{name}`" for role, name in self.columns.items()]
        found += [f"{name} {value}" for name, value in self.facts.items()]
        lines = [f"read as {self.format}" + (f": {', '.join(found)}" if found else "")]
        if self.ignored:
            lines.append(f"columns ignored: {', '.join(f'`{name}`' for name in self.ignored)}")
        return lines + [f"assumed: {text}" for text in self.assumed]

    def as_json(self) -> dict[str, object]:
        return {
            "format": self.format,
            "columns": dict(self.columns),
            "ignored": list(self.ignored),
            "assumed": list(self.assumed),
            **self.facts,
        }
