"""Find contacts in the 5-hour walker scenario with one position per second: target 60 s on 2 cores.

For a sample of ten minutes, the contacts are compared with a check of all pairs of segments.
"""

from __future__ import annotations

import json
import platform
import statistics
import time

import numpy as np

from beforehand.kernels import contacts
from beforehand.mobility.generators import walkers
from beforehand.mobility.positions import Positions, positions_of_points

RANGE_M = 50.0
SECOND_US = 1_000_000
SAMPLE_US = (3600 * SECOND_US, 4200 * SECOND_US)
REPEATS = 3


def every_second(positions: Positions) -> Positions:
    """Return the same walkers as GPS traces: one position per second, from entry to exit."""
    columns: list[np.ndarray] = []
    for node in range(len(positions.names)):
        rows = np.flatnonzero(positions.node == node)
        knots_us = np.append(positions.t0_us[rows], positions.t1_us[rows[-1]])
        t_us = np.append(np.arange(knots_us[0], knots_us[-1], SECOND_US), knots_us[-1])
        x = np.interp(t_us, knots_us, np.append(positions.x0[rows], positions.x1[rows[-1]]))
        y = np.interp(t_us, knots_us, np.append(positions.y0[rows], positions.y1[rows[-1]]))
        columns.append(np.column_stack([np.full(len(t_us), node), t_us, x, y]))
    node, t_us, x, y = np.concatenate(columns).T
    return positions_of_points(positions.names, node.astype(int), t_us.astype(int), x, y)


def all_pairs(segments: contacts.Segments) -> contacts.Ints:
    """Return the contacts of every pair of segments that overlap in time, without a grid."""
    pieces = []
    for i in range(len(segments.node)):
        later = np.arange(i + 1, len(segments.node))
        shares = (segments.t0_us[later] < segments.t1_us[i]) & (
            segments.t1_us[later] > segments.t0_us[i]
        )
        for j in later[shares & (segments.node[later] != segments.node[i])].tolist():
            up_us, down_us = contacts._meeting(segments, i, j, RANGE_M + contacts.TOLERANCE_M)
            if up_us < down_us:
                a, b = sorted((int(segments.node[i]), int(segments.node[j])))
                pieces.append((a, b, up_us, down_us))
    return contacts.merge_contacts(np.array(pieces, dtype=np.int64))


def main() -> None:
    segments = every_second(walkers.generate(1)).segments
    inside = (segments.t0_us >= SAMPLE_US[0]) & (segments.t1_us <= SAMPLE_US[1])
    sample = segments.take(np.flatnonzero(inside))
    started = time.perf_counter()
    found = contacts.find_contacts(sample, RANGE_M)
    compile_s = time.perf_counter() - started
    brute = all_pairs(sample)
    if found.tolist() != brute.tolist():
        raise SystemExit("the contacts of the sample differ from those of all pairs")
    seconds = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        rows = contacts.find_contacts(segments, RANGE_M)
        seconds.append(time.perf_counter() - started)
    print(
        json.dumps(
            {
                "bench": "contacts/walkers-5h-every-second",
                "segments": len(segments.node),
                "contacts": len(rows),
                "seconds": round(statistics.median(seconds), 2),
                "spread": round(max(seconds) / min(seconds), 2),
                "first_call_s": round(compile_s, 2),
                "sample_contacts_equal_to_all_pairs": len(brute),
                "sample_segments": len(sample.node),
                "python": platform.python_version(),
            }
        )
    )


if __name__ == "__main__":
    main()
