"""What a reader took a file to be: told beside every result, so that a wrong guess is seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class DetectedFormat:
    """The format, where everything was found, and what the file does not say."""

    format: str
    columns: Mapping[str, str] = field(default_factory=dict)
    """By role, as the header writes it; `column 3` where there is no header."""
    ignored: tuple[str, ...] = ()
    """Columns of the header that nothing was made of."""
    assumed: tuple[str, ...] = ()
    """In words, with what to pass where it is wrong."""
    facts: Mapping[str, int | str] = field(default_factory=dict)
    """What else is worth telling, by name: the day of a timetable, its trips."""

    def sentences(self) -> list[str]:
        """For people, one line each."""
        found = [f"{role} from `{name}`" for role, name in self.columns.items()]
        found += [f"{name} {value}" for name, value in self.facts.items()]
        told = [f"read as {self.format}" + (f": {', '.join(found)}" if found else "")]
        if self.ignored:
            told.append(f"columns ignored: {', '.join(f'`{name}`' for name in self.ignored)}")
        return told + [f"assumed: {text}" for text in self.assumed]

    def as_json(self) -> dict[str, object]:
        return {
            "format": self.format,
            "columns": dict(self.columns),
            "ignored": list(self.ignored),
            "assumed": list(self.assumed),
            **self.facts,
        }
