"""Write the reports of The ONE, so that scripts made for them read a run of this simulator.

docs/export.md documents every field, and which of them this simulator does not record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import merge

import numpy as np

from beforehand.errors import InputError
from beforehand.events import BROADCAST, JOIN, RECEIVE
from beforehand.export.run_log import Ints, RunLog
from beforehand.kernels.hops import count_hops

Link = tuple[int, int, int, bool]
UNKNOWN = "NaN"
"""The ONE's own spelling of a figure that cannot be computed."""
DELIVERED, AGAIN = "D", "A"


def event_log_report(log: RunLog, links: Sequence[Link]) -> Iterator[str]:
    """Yield the lines of an EventLogReport: `CONN`, `C` and `DE` in order of time.

    At one instant links change first, as in the simulation.
    """
    for name in log.names:
        if not name or name.split() != [name]:
            problem = f"a name with white space cannot be in this report: `{name}`"
            raise InputError(problem, where=log.where, hint="rename the node")
    connections = (
        (t_us, 0, f"CONN {log.name(a)} {log.name(b)} {'up' if up else 'down'}")
        for t_us, a, b, up in links
    )
    for t_us, _, text in merge(connections, _messages(log), key=lambda line: line[:2]):
        yield f"{_seconds(t_us)} {text}"


def message_stats_report(log: RunLog, name: str) -> Iterator[str]:
    """Yield the lines of a MessageStatsReport of broadcasts. name: of the scenario."""
    columns = log.columns
    message, own_broadcast = log.messages
    first = log.first_receptions()
    recipients = max(0, _nodes_count(log) - 1)
    created, delivered = len(own_broadcast) * recipients, int(first.sum())
    relayed = int((columns["kind"] == RECEIVE).sum())
    latency_us = (columns["t_us"] - columns["t_us"][own_broadcast][message])[first]
    hops = _hops(log, first)
    yield f"Message stats for scenario {name}"
    figures: dict[str, str] = {
        "sim_time": f"{_end_us(log) / 1e6:.4f}",
        "created": str(created),
        "started": UNKNOWN,
        "relayed": str(relayed),
        "aborted": UNKNOWN,
        "dropped": UNKNOWN,
        "removed": UNKNOWN,
        "delivered": str(delivered),
        "delivery_prob": f"{delivered / created if created else 0.0:.4f}",
        "response_prob": "0.0000",
        "overhead_ratio": f"{(relayed - delivered) / delivered:.4f}" if delivered else UNKNOWN,
        "latency_avg": _mean(latency_us / 1e6),
        "latency_med": _median(latency_us / 1e6),
        "hopcount_avg": _mean(hops) if hops is not None else UNKNOWN,
        "hopcount_med": _whole_median(hops) if hops is not None else UNKNOWN,
        "buffertime_avg": UNKNOWN,
        "buffertime_med": UNKNOWN,
        "rtt_avg": UNKNOWN,
        "rtt_med": UNKNOWN,
    }
    yield from (f"{figure}: {value}" for figure, value in figures.items())


def _messages(log: RunLog) -> Iterator[tuple[int, int, str]]:
    columns, first = log.columns, log.first_receptions()
    senders = iter(log.senders().tolist())
    names = ("t_us", "node", "kind", "origin", "seq")
    rows = zip(*(columns[name].tolist() for name in names), first.tolist(), strict=True)
    for t_us, node, kind, origin, seq, is_first in rows:
        message = f"{log.name(origin)}-{seq}" if origin >= 0 else ""
        if kind == BROADCAST:
            yield t_us, 1, f"C {log.name(node)} {message}"
        elif kind == RECEIVE:
            sender, mark = log.name(next(senders)), DELIVERED if is_first else AGAIN
            yield t_us, 1, f"DE {sender} {log.name(node)} {message} {mark}"


def _hops(log: RunLog, first: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Ints | None:
    """Return the hops of first receptions; None if the log does not name the senders."""
    try:
        senders = log.senders()
    except InputError:
        return None
    received = log.columns["kind"] == RECEIVE
    message, _ = log.messages
    node, origin = (log.columns[name][received] for name in ("node", "origin"))
    hops = count_hops(node, message[received], senders, origin)[first[received]]
    return None if (hops < 0).any() else hops


def _nodes_count(log: RunLog) -> int:
    joined = np.unique(log.columns["node"][log.columns["kind"] == JOIN])
    return len(log.names) or len(joined) or len(np.unique(log.columns["node"]))


def _end_us(log: RunLog) -> int:
    return int(log.columns["t_us"].max(initial=0))


def _seconds(t_us: int) -> str:
    whole, rest = divmod(t_us, 1_000_000)
    return f"{whole}.{f'{rest:06}'.rstrip('0') or '0'}"


def _mean(values: Ints | np.ndarray[tuple[int], np.dtype[np.float64]]) -> str:
    return f"{values.mean():.4f}" if len(values) else UNKNOWN


def _median(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> str:
    # The ONE takes the upper of the two middle values.
    return f"{np.sort(values)[len(values) // 2]:.4f}" if len(values) else UNKNOWN


def _whole_median(values: Ints) -> str:
    return str(int(np.sort(values)[len(values) // 2])) if len(values) else "0"
