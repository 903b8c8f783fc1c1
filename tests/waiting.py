"""Wait for a condition, with a bound that a correct run does not reach on a slow machine."""

from __future__ import annotations

import time
from collections.abc import Callable

SECONDS_MAX = 120.0
POLL_SECONDS = 0.02


def wait_until(
    condition: Callable[[], object], seconds: float = SECONDS_MAX, told: Callable[[], str] = str
) -> None:
    """Return as soon as the condition holds; fail after `seconds` with the text of `told`."""
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, f"not true after {seconds} s: {told()}"
        time.sleep(POLL_SECONDS)
