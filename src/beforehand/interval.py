"""The 95 % confidence interval of a mean over few seeds, by Student's t distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import stdev

T_975 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
)
"""The 97.5th percentile of Student's t for 1 to 20 degrees of freedom."""
Z_975 = 1.959964
"""The limit of Student's t for many degrees of freedom: the normal distribution."""


def margin_of(values: Sequence[float]) -> float | None:
    """Return half the width of the confidence interval; None for fewer than two values or any
    NaN."""
    count = len(values)
    if count < 2 or any(math.isnan(value) for value in values):
        return None
    return student(count - 1) * stdev(values) / math.sqrt(count)


def student(freedom: int) -> float:
    """Return the 97.5th percentile of Student's t with this many degrees of freedom.

    Student's t is needed because the seeds are few and their deviation is estimated too.
    """
    if freedom <= len(T_975):
        return T_975[freedom - 1]
    # The first terms of the asymptotic expansion; the error is below 0.001 from here on.
    first = (Z_975**3 + Z_975) / (4 * freedom)
    return Z_975 + first + (5 * Z_975**5 + 16 * Z_975**3 + 3 * Z_975) / (96 * freedom**2)
