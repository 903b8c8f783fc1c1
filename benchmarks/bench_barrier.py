"""What minimal barriers save on the wire, beside the printed ones, on one crowd and one seed."""

from __future__ import annotations

import json
import platform

from beforehand.mobility import crowd
from beforehand.sim.run import Spec, run_one
from beforehand.sim.summary import summarise

MINUTE_US = 60_000_000


def measure(*, literal: bool) -> dict[str, float]:
    trace = crowd.generate(1, nodes_mean=420, hours=1)
    spec = Spec("delta", seed=1, lifetime_us=20 * MINUTE_US, literal_barriers=literal)
    result = run_one(trace, spec)
    summary = summarise(result.columns)
    return {
        "receptions": summary["receptions"],
        "barrier_entries_avg": round(summary["past_entries"]["avg"], 2),
        "barrier_entries_max": summary["past_entries"]["max"],
        "bytes_sent": result.bytes_sent,
    }


minimal, literal = measure(literal=False), measure(literal=True)
print(
    json.dumps(
        {
            "bench": "barrier/bytes",
            "minimal": minimal,
            "literal": literal,
            "bytes_saved_share": round(1 - minimal["bytes_sent"] / literal["bytes_sent"], 3),
            "python": platform.python_version(),
        }
    )
)
