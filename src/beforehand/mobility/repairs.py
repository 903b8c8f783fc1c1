"""Count the repairs of a file by kind, or reject them line by line in strict mode."""

from __future__ import annotations

from pathlib import Path

from beforehand.errors import InputError, InputErrors
from beforehand.mobility import lines

LEGAL = ("interpolated_time", "same_time", "inferred_vehicle", "without_shape")
"""Counted, but not errors: GTFS lets a feed leave these to its readers."""


class Repairs:
    """Count repairs; in strict mode also record where each would have been made."""

    def __init__(self, path: Path, *, strict: bool) -> None:
        self.changes: dict[str, int] = {}
        self.strict = strict
        self._path = path
        self._refused: list[InputError] = []
        self._unlisted = 0

    def mend(self, kind: str, file: str, line: int | None, what: str, times: int = 1) -> None:
        """Count a repair. what: the problem and the repair in words.

        file: the file within the feed; empty if the input is a single file.
        """
        if times <= 0:
            return
        self.changes[kind] = self.changes.get(kind, 0) + times
        if self.strict:
            if len(self._refused) < lines.PROBLEMS_MAX:
                place = f"{self._path}/{file}" if file else str(self._path)
                where = place + (f":{line}" if line else "")
                hint = f"without `strict` it is repaired and counted as `{kind}`"
                self._refused.append(InputError(what, where=where, hint=hint))
            else:
                self._unlisted += 1

    def fill(self, kind: str, times: int = 1) -> None:
        """Count a value that the reader filled in and that GTFS allows a feed to omit."""
        assert kind in LEGAL
        if times > 0:
            self.changes[kind] = self.changes.get(kind, 0) + times

    def check(self) -> None:
        """Raise the problems that strict mode recorded."""
        if self._unlisted:
            more = InputError(f"and {self._unlisted} more of such problems", where=str(self._path))
            self._refused.append(more)
            self._unlisted = 0
        if len(self._refused) == 1:
            raise self._refused[0]
        if self._refused:
            raise InputErrors(self._refused)
