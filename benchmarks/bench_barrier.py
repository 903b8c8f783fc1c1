"""Compare minimal and literal barriers on the wire, and the cost of waking or expiring messages.

The first part uses one crowd and one seed. The second measures the cost per waiting message, when
it is woken and when its causes expire, among 1,000 to 32,000 waiting messages.
"""

from __future__ import annotations

import itertools
import json
import platform
import time

from beforehand.mobility.generators import crowd
from beforehand.protocols.contract.base import Message, MessageId
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.orders.barrier import Barrier
from beforehand.protocols.orders.order import Lifetimes
from beforehand.sim.contacts.run import Spec, run_one
from beforehand.sim.contacts.summary import summarise

MINUTE_US = 60_000_000
LIFETIMES = Lifetimes(60 * MINUTE_US, 60 * MINUTE_US)
PENDING = (1_000, 2_000, 4_000, 8_000, 16_000, 32_000)
REPEATS = 3


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


def wake_and_expire(pending: int) -> tuple[float, float]:
    """Return the microseconds per message to wake a chain and to expire a chain.

    All messages have one origin, and each waits for the one before it. In the first case the
    arrival of the first message releases all; in the second, one cause after the other expires.
    """
    first: MessageId = ("ann", 10 * MINUTE_US)
    ids = [("ann", first[1] + n) for n in range(pending + 1)]
    chain = [Message(id, (cause,), b"") for cause, id in itertools.pairwise(ids)]
    seconds = []
    for is_woken in (True, False):
        order, out = Barrier("bob", LIFETIMES), Outbox[object]()
        order.on_receive(0, chain, out)
        assert len(order.pending()) == pending
        start = time.perf_counter()
        if is_woken:
            order.on_receive(0, [Message(first, (), b"")], out)
        else:
            order.on_timer(ids[-1][1], out)
        seconds.append(time.perf_counter() - start)
        assert not order.pending()
    return seconds[0] / pending * 1e6, seconds[1] / pending * 1e6


def growth() -> dict[str, dict[int, float]]:
    """Return the best of a few repetitions for each number of waiting messages."""
    best = {n: min_of([wake_and_expire(n) for _ in range(REPEATS)]) for n in PENDING}
    return {
        "wake_us_per_message": {n: round(wake, 2) for n, (wake, _) in best.items()},
        "expire_us_per_message": {n: round(expire, 2) for n, (_, expire) in best.items()},
    }


def min_of(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    return min(wake for wake, _ in pairs), min(expire for _, expire in pairs)


minimal, literal = measure(literal=False), measure(literal=True)
print(
    json.dumps(
        {
            "bench": "barrier/bytes",
            "minimal": minimal,
            "literal": literal,
            "bytes_saved_share": round(1 - minimal["bytes_sent"] / literal["bytes_sent"], 3),
            "pending": growth(),
            "python": platform.python_version(),
        }
    )
)
