"""Check logs in a test suite: raise AssertionError with the causal chain of a violation."""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING, Any

from beforehand.verify.verdict import Verdict, verify_events

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

STORIES_MAX = 3


def assert_causal(
    log: str | os.PathLike[str] | pa.Table | pd.DataFrame,
    *,
    allow_unknown: bool = False,
    **options: Any,
) -> Verdict:
    """Raise AssertionError unless a log is in causal order; its text has the causal chains.

    allow_unknown: whether a log that cannot be decided passes.
    options: those of `verify_events`.
    """
    __tracebackhide__ = True
    verdict = verify_events(log, **options)
    if verdict.state == "valid" or (allow_unknown and verdict.state == "unknown"):
        return verdict
    lines = [f"the log is {verdict.state}, not valid"]
    lines += [f"{name}: {state}: {reason}" for name, state, reason in verdict.reasons()]
    lines += islice(verdict.stories(), STORIES_MAX)
    count = sum(run.stories_count for run in verdict.runs)
    if count > STORIES_MAX:
        lines.append(f"and {count - STORIES_MAX:,} more violations")
    raise AssertionError("\n".join(lines))
