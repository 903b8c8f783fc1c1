"""Runs that the tests of the page play: simulated ones, and logs written by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from beforehand.cli import main
from beforehand.events import BROADCAST, DELIVER, JOIN, LEAVE, RECEIVE, About
from beforehand.mobility.generators import buses
from beforehand.sim.log import event_table, write_events

SECOND_US = 1_000_000
HOSTILE = ("</script><script>alert(1)</script>", "\u202eltr", "x" * 128, "<!--", "a&b", "'\"`${1}")


def simulate_buses(folder: Path, *options: str, minutes: int = 150) -> Path:
    """Simulate buses for some minutes of the first day, and return the event log."""
    segments = buses.generate(1).segments
    end_us = int(segments.t0_us.min()) + minutes * 60 * SECOND_US
    path = folder / "buses.csv"
    rows = zip(*(column.tolist() for column in segments), strict=True)
    ends = {
        (n, t, x, y)
        for n, t0, x0, y0, t1, x1, y1 in rows
        if t1 <= end_us
        for t, x, y in ((t0, x0, y0), (t1, x1, y1))
    }
    lines = [f"b{n},{t / SECOND_US},{x},{y}" for n, t, x, y in sorted(ends)]
    path.write_text("\n".join(["node,t,x,y", *lines]) + "\n")
    log = folder / "buses.parquet"
    code = main(
        [
            "simulate",
            str(path),
            "--range",
            "200m",
            "--period",
            "5m",
            "--first",
            "20s",
            "--bandwidth",
            "300B/s",
            "--events",
            str(log),
            "-q",
            *options,
        ]
    )
    assert code == 0, code
    return log


def write_log(path: Path, rows, names=(), *, senders=None, promise="causal", about=None) -> Path:
    """Write a log of (t_us, node, kind, origin, seq) rows."""
    table = np.array(rows, np.int64).reshape(-1, 5)
    columns = dict(zip(("t_us", "node", "kind", "origin", "seq"), table.T, strict=True))
    columns["kind"] = columns["kind"].astype(np.int8)
    for name in ("node", "origin"):
        columns[name] = columns[name].astype(np.int32)
    columns["value"] = np.zeros(len(table), np.int64)
    log = event_table("made", columns, senders=senders, promise=promise, names=names, about=about)
    write_events(log, path)
    return path


def late_log(path: Path) -> Path:
    """Write a log with a late, a repeated and an unknown delivery: node 2 gets the reply first."""
    at = iter(range(0, 10**9, SECOND_US))
    there = [(next(at), node, JOIN, -1, -1) for node in range(3)]
    rows = [
        *there,
        (next(at), 0, BROADCAST, 0, 1),
        (next(at), 1, RECEIVE, 0, 1),
        (next(at), 1, DELIVER, 0, 1),
        (next(at), 1, BROADCAST, 1, 1),
        (next(at), 2, RECEIVE, 1, 1),
        (next(at), 2, DELIVER, 1, 1),
        (next(at), 2, RECEIVE, 0, 1),
        (next(at), 2, DELIVER, 0, 1),
        (next(at), 2, DELIVER, 0, 1),
        (next(at), 1, DELIVER, 2, 99),
        *((next(at), node, LEAVE, -1, -1) for node in range(3)),
    ]
    return write_log(
        path,
        rows,
        HOSTILE[:3],
        senders=np.array([0, 1, -1], np.int32),
        about=About(protocol="made"),
    )
