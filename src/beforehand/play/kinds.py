"""Tell event logs and results folders from mobility traces."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from beforehand.events import EVENTS_FILE, NODE_SUFFIX
from beforehand.play.observer import is_observed
from beforehand.verify.event_log import GZIP_MARK, PARQUET_MARK, READ_COLUMNS
from beforehand.verify.plan import PLAN_FILE


def is_run(path: Path) -> bool:
    """Return whether a path is a results folder or an event log, and not a mobility trace.

    A Parquet file with places or contacts is a trace. A broken file with the mark of Parquet counts
    as a log, so that its reader reports what is wrong.
    """
    if is_observed(path):
        return True
    if path.is_dir():
        if (path / PLAN_FILE).is_file() or next(path.rglob(f"*{NODE_SUFFIX}"), None):
            return True
        return next(path.rglob(EVENTS_FILE), None) is not None
    if not path.is_file():
        return path.name.endswith(".parquet")
    with path.open("rb") as opened:
        begins = opened.read(len(PARQUET_MARK))
    if begins[:2] == GZIP_MARK:
        return path.name.endswith(".parquet.gz")
    if begins != PARQUET_MARK:
        return False
    if path.name.endswith(NODE_SUFFIX):
        return True
    try:
        names = set(pq.read_schema(path).names)
    except (OSError, pa.ArrowException):
        return True
    return not {"x", "y"} <= names and bool(names & set(READ_COLUMNS) - {"node"})
