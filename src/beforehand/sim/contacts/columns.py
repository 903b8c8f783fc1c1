"""Columns that grow in place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Columns = dict[str, NDArray[Any]]


class Growing:
    """Columns that grow in place: the system moves large blocks without a copy."""

    def __init__(self, types: Mapping[str, str]) -> None:
        self._columns = {name: np.empty(0, kind) for name, kind in types.items()}
        self._size = 0

    def append(self, page: Columns) -> None:
        """Append the rows of a page."""
        for name, part in page.items():
            column, end = self._columns[name], self._size + len(part)
            if end > len(column):
                column.resize(max(end, len(column) + len(column) // 8), refcheck=False)
            column[self._size : end] = part
        self._size = end

    def taken(self) -> Columns:
        """Return the columns, and keep nothing."""
        for column in self._columns.values():
            column.resize(self._size, refcheck=False)
        taken, self._columns = self._columns, {}
        return taken
