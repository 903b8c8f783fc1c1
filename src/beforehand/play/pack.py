"""Pack columns of integers for a page: a directory, and one run of deflated bytes.

Each column is a deflate-raw stream of its own:

    value -> minus the value before (if `delta`) -> zigzag (if one is negative) -> byte planes, low
    byte first, as many as the largest value needs -> deflate-raw, level 9

`web/pack.js` decodes it. A number in the page is a double, so a column holds at most 53 bits.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

VALUE_MAX = 2**53 - 1
NARROW_MAX = 2**31 - 1
"""The page decodes a column within these bounds with 32-bit arithmetic."""


class Pack:
    """Columns by name. Cost: one pass of numpy per step, and deflate at about 20 MB/s."""

    def __init__(self) -> None:
        self.directory: list[dict[str, Any]] = []
        self.body = bytearray()

    def add(self, name: str, values: ArrayLike, *, delta: bool = False) -> None:
        """Add a column. delta: store differences, which suits columns that grow slowly."""
        column = np.asarray(values).astype(np.int64)
        highest = int(np.abs(column).max(initial=0))
        assert 0 <= highest <= VALUE_MAX, f"{name}: {highest} does not fit in a double"
        stored = np.diff(column, prepend=0) if delta else column
        is_signed = bool(len(stored)) and int(stored.min()) < 0
        if is_signed:
            stored = np.where(stored < 0, -2 * stored - 1, 2 * stored)
        top = int(stored.max(initial=0))
        planes = max(1, -(-top.bit_length() // 8))
        raw = stored.astype("<u8").view(np.uint8).reshape(-1, 8).T[:planes].tobytes()
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        data = packer.compress(raw) + packer.flush()
        self.directory.append(
            {
                "name": name,
                "n": len(column),
                "planes": planes,
                "delta": delta,
                "zigzag": is_signed,
                "wide": highest > NARROW_MAX or planes > 4,
                "at": len(self.body),
                "bytes": len(data),
            }
        )
        self.body += data
