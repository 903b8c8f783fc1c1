"""Compute the figures of OPP section VI from the event log of one run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from beforehand.events import BROADCAST, CRASH, DELIVER, DROP, EXPIRE, JOIN, LEAVE, RECEIVE, RECOVER
from beforehand.kernels.hops import count_hops
from beforehand.kernels.verify.causality import KINDS as VIOLATIONS
from beforehand.kernels.verify.causality import find_violations
from beforehand.kernels.verify.index import index_log

Ints = NDArray[np.int64]
NEVER_US = np.iinfo(np.int64).max


def summarise(columns: Mapping[str, NDArray[Any]], *, life_us: int | None = None) -> dict[str, Any]:
    """Return counts, ratios, and min/max/avg/stdev of the delays in microseconds.

    - counts: see `Delays`
    - delay: from broadcast to first reception
    - delivered_delay: the delays of the delivered messages alone
    - latency: from first reception to delivery
    - age: from broadcast to delivery, the sum of delivered_delay and latency
    - delivery_ratio: deliveries divided by broadcasts and receptions
    - reach: receptions divided by reachable (see `count_reachable`)

    A ratio with a denominator of 0 is None. life_us: how long a message can be received; None:
    until the run ends.
    """
    kind = columns["kind"]
    found = measure_delays(columns)
    counts = count_outcomes(columns, found)
    handed = counts["broadcasts"] + counts["receptions"]
    reachable = count_reachable(columns, life_us)
    is_broadcast = kind == BROADCAST
    return {
        **counts,
        "delivery_ratio": _ratio(counts["deliveries"], handed),
        "expiry_ratio": _ratio(counts["expired"], counts["receptions"]),
        "reachable": reachable,
        "reach": _ratio(counts["receptions"], reachable),
        "past_entries": describe(columns["value"][is_broadcast]),
        **{f"{measure}_us": spread for measure, spread in describe_delays(found).items()},
    }


def count_outcomes(columns: Mapping[str, NDArray[Any]], found: Delays) -> dict[str, int]:
    """Return the counts of a run, of which each pair of a node and a message is part once.

    broadcasts + receptions = deliveries + expired + dropped + waiting, unless a message was
    delivered twice.
    """
    kind = columns["kind"]
    received = int(np.count_nonzero(kind == RECEIVE))
    return {
        "broadcasts": int(np.count_nonzero(kind == BROADCAST)),
        "receptions": len(found.received),
        "again": received - len(found.received),
        "deliveries": int(np.count_nonzero(kind == DELIVER)),
        "expired": found.expired,
        "dropped": found.dropped,
        "waiting": found.waiting,
    }


def describe_delays(found: Delays) -> dict[str, dict[str, float | None]]:
    """Return min, max, avg and stdev in microseconds of each kind of delay."""
    return {
        "delay": describe(found.delay_us),
        "delivered_delay": describe(found.age_us - found.latency_us),
        "latency": describe(found.latency_us),
        "age": describe(found.age_us),
    }


def count_reachable(columns: Mapping[str, NDArray[Any]], life_us: int | None) -> int:
    """Return how many first receptions there could have been at most.

    Each message counts once for every node, other than its own, that was present at some time in
    its life. A life begins at the broadcast and ends `life_us` later, or at the end of the run.
    Return 0 if the log does not record presence.
    """
    kind, t_us = columns["kind"], columns["t_us"]
    sent_us = np.sort(t_us[kind == BROADCAST])
    up_us, down_us, is_last = _stays(columns)
    if not len(up_us):
        return 0
    over_us = sent_us + (NEVER_US - sent_us.max(initial=0) if life_us is None else life_us)

    def overlaps(from_us: Ints, until_us: Ints) -> int:
        # Both ends of a message's life rise with its broadcast, so the overlapping messages are a
        # slice.
        begun, over = np.searchsorted(sent_us, until_us), np.searchsorted(over_us, from_us, "right")
        return int(np.maximum(begun - over, 0).sum())

    # A message that outlives a time of absence would count for both of the stays beside it.
    again = np.flatnonzero(~is_last)
    reachable = overlaps(up_us, down_us) - overlaps(up_us[again + 1], down_us[again])
    return reachable - len(sent_us)


def tally_hops(
    columns: Mapping[str, NDArray[Any]], senders: NDArray[Any], found: Delays
) -> dict[int, int]:
    """Return how many first receptions there were after each number of hops.

    senders: the forwarding node of every reception."""
    received = columns["kind"] == RECEIVE
    message, _ = index_messages(columns)
    node, origin = (columns[name][received].astype(np.int64) for name in ("node", "origin"))
    hops = count_hops(node, message[received], senders.astype(np.int64), origin)
    is_first = np.zeros(len(received), bool)
    is_first[found.received] = True
    values, counts = np.unique(hops[is_first[received]], return_counts=True)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def _stays(columns: Mapping[str, NDArray[Any]]) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Return (begin, end, whether it is the last of its node) of every stay, node by node."""
    rows = np.flatnonzero(np.isin(columns["kind"], (JOIN, LEAVE, CRASH, RECOVER)))
    rows = rows[np.argsort(columns["node"][rows], kind="stable")]
    comes = np.isin(columns["kind"][rows], (JOIN, RECOVER))
    node, t_us = columns["node"][rows], columns["t_us"][rows].astype(np.int64)
    ends = np.full(len(rows), NEVER_US)
    is_followed = node[:-1] == node[1:]
    ends[:-1][is_followed] = t_us[1:][is_followed]
    stayed = node[comes]
    is_last = np.ones(len(stayed), bool)
    is_last[:-1] = stayed[:-1] != stayed[1:]
    return t_us[comes], ends[comes], is_last


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def count_violations(columns: Mapping[str, NDArray[Any]]) -> dict[str, int]:
    """Return the exact numbers of deliveries that are late, duplicate, or of an unknown message."""
    kind = columns["kind"]
    kept = (kind == BROADCAST) | (kind == DELIVER)
    rows = {name: columns[name][kept] for name in ("node", "kind", "origin", "seq")}
    is_broadcast = rows["kind"] == BROADCAST
    history = index_log(rows["node"], is_broadcast, rows["origin"], rows["seq"])
    found = find_violations(history)
    counts = np.bincount(found.kind, minlength=len(VIOLATIONS)).tolist()
    return dict(zip(VIOLATIONS, counts, strict=True))


def describe(values: NDArray[Any]) -> dict[str, float | None]:
    """Return min, max, avg and stdev; None, rather than 0, if there are no values."""
    if not len(values):
        return dict.fromkeys(("min", "max", "avg", "stdev"))
    return {
        "min": float(values.min()),
        "max": float(values.max()),
        "avg": float(values.mean()),
        "stdev": float(values.std()),
    }


class Delays(NamedTuple):
    """The outcome of each message at each node other than its origin, and the delays."""

    received: Ints
    """Rows of the first reception of each message by each node. A message that the node evicted and
    received again, also one of its own, has further rows of receptions; they are not here."""
    delay_us: Ints
    """The time since the broadcast, for each first reception."""
    delivered: Ints
    """Rows of the deliveries of received messages, the first one if there are several."""
    latency_us: Ints
    """The time since the first reception, for each delivery."""
    age_us: Ints
    """The time since the broadcast, for each delivery."""
    expired: int
    """Received messages whose lifetime ended before the delivery."""
    dropped: int
    """Received messages that the node removed before the delivery and never received again."""
    waiting: int
    """Received messages that still wait for a predecessor at the end."""


def measure_delays(columns: Mapping[str, NDArray[Any]]) -> Delays:
    """Return the delays and the outcomes of all first receptions."""
    kind, t_us = columns["kind"], columns["t_us"]
    message, broadcast_rows = index_messages(columns)
    is_own = columns["node"] == columns["origin"]
    handled = np.flatnonzero(np.isin(kind, (RECEIVE, DELIVER, EXPIRE, DROP)) & ~is_own)
    place = (
        columns["node"][handled].astype(np.int64) * max(1, len(broadcast_rows)) + message[handled]
    )
    # The sort is stable, so that the rows of a node and a message stay in the order of the log.
    order = np.argsort(place, kind="stable")
    rows, place = handled[order], place[order]
    begins = np.flatnonzero(np.concatenate(([True], place[1:] != place[:-1]))[: len(place)])
    if not len(begins):
        none = np.empty(0, np.int64)
        return Delays(none, none, none, none, none, 0, 0, 0)
    first = {code: _first_of_each(kind[rows] == code, begins) for code in (RECEIVE, DELIVER)}
    has_expired = _first_of_each(kind[rows] == EXPIRE, begins) < len(rows)
    last = np.append(begins[1:], len(rows)) - 1
    is_received = first[RECEIVE] < len(rows)
    is_delivered = is_received & (first[DELIVER] < len(rows))
    is_open = is_received & ~is_delivered & ~has_expired
    received = rows[first[RECEIVE][is_received]]
    delivered, since = rows[first[DELIVER][is_delivered]], rows[first[RECEIVE][is_delivered]]
    sent_us = t_us[broadcast_rows]
    received.sort()
    is_dropped = is_open & (kind[rows[last]] == DROP)
    return Delays(
        received,
        t_us[received] - sent_us[message[received]],
        delivered,
        t_us[delivered] - t_us[since],
        t_us[delivered] - sent_us[message[delivered]],
        int(np.count_nonzero(is_received & ~is_delivered & has_expired)),
        int(np.count_nonzero(is_dropped)),
        int(np.count_nonzero(is_open & ~is_dropped)),
    )


def _first_of_each(is_wanted: NDArray[np.bool_], begins: Ints) -> Ints:
    """Return the first wanted position of each group; the number of rows if it has none.

    begins: the first position of each group.
    """
    size = len(is_wanted)
    return np.minimum.reduceat(np.where(is_wanted, np.arange(size), size), begins)


def index_messages(columns: Mapping[str, NDArray[Any]]) -> tuple[Ints, Ints]:
    """Return (index of the message of each row, row of the broadcast of each message).

    Messages are in the order of origin and seq. The index is meaningless for a row without a
    message, or with a message that no node broadcast.
    """
    broadcast_rows = np.flatnonzero(columns["kind"] == BROADCAST)
    seqs = np.unique(columns["seq"][broadcast_rows])
    # Origin and rank of the seq in one number, which is small even if seqs are microseconds.
    keys = columns["origin"].astype(np.int64) * (len(seqs) + 1)
    keys += np.searchsorted(seqs, columns["seq"])
    order = np.argsort(keys[broadcast_rows], kind="stable")
    index = np.searchsorted(keys[broadcast_rows][order], keys)
    return np.minimum(index, max(0, len(order) - 1)), broadcast_rows[order]
