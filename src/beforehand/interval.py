"""How far a mean over a few seeds can be trusted: the 95 % confidence interval, by Student's t."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import stdev

T_975 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
)
"""For 1 to 20 degrees of freedom."""
Z_975 = 1.959964
"""What it tends to."""


def margin_of(values: Sequence[float]) -> float | None:
    """Half of the interval; None where one seed, or a share of nothing, gives none."""
    count = len(values)
    if count < 2 or any(math.isnan(value) for value in values):
        return None
    return student(count - 1) * stdev(values) / math.sqrt(count)


def student(freedom: int) -> float:
    """The seeds are few, and their deviation is estimated from them too."""
    if freedom <= len(T_975):
        return T_975[freedom - 1]
    # The first terms of its series: less than 0.001 off from here on.
    first = (Z_975**3 + Z_975) / (4 * freedom)
    return Z_975 + first + (5 * Z_975**5 + 16 * Z_975**3 + 3 * Z_975) / (96 * freedom**2)
