"""The figures of a run again, from their definitions: row by row, in plain Python.

It shares no code with the package and reads only what a run publishes: the rows of its event log,
its evictions, and its counts of frames. docs/pipeline.md has the definitions.
"""

from __future__ import annotations

import math
from collections import defaultdict


def mean(values):
    return sum(values) / len(values) if values else None


def spread(values):
    if not values:
        return dict.fromkeys(("min", "max", "avg", "stdev"))
    middle = sum(values) / len(values)
    variance = sum((value - middle) ** 2 for value in values) / len(values)
    return {"min": min(values), "max": max(values), "avg": middle, "stdev": math.sqrt(variance)}


class Recomputed:
    """rows: dicts with t_us, node, kind, origin, seq, value, in the order of the log."""

    def __init__(self, rows, evictions, life_us):
        self.sent, self.past, self.first, self.delivered = {}, {}, {}, {}
        self.ends, self.stores = {}, defaultdict(list)
        self.copies = self.own_deliveries = 0
        stays, self.broadcasts_of = defaultdict(list), defaultdict(int)
        self.deliveries_of, self.deliveries_of_message = defaultdict(int), defaultdict(int)
        for row in rows:
            kind, node, t_us = row["kind"], row["node"], row["t_us"]
            message = (row["origin"], row["seq"])
            pair = (node, message)
            if kind == "broadcast":
                self.sent[message], self.past[message] = t_us, row["value"]
                self.stores[pair].append(t_us)
                self.broadcasts_of[node] += 1
            elif kind == "receive":
                self.copies += 1
                self.stores[pair].append(t_us)
                if node != message[0]:
                    self.first.setdefault(pair, t_us)
                    if self.ends.get(pair) == "drop":  # not the last word: it came again
                        del self.ends[pair]
            elif kind == "deliver":
                self.deliveries_of[node] += 1
                self.deliveries_of_message[message] += 1
                if node != message[0]:
                    self.delivered.setdefault(pair, t_us)
            elif kind in ("expire", "drop"):
                if pair in self.first and self.ends.get(pair) != "expire":
                    self.ends[pair] = kind
            elif kind in ("join", "recover"):
                stays[node].append([t_us, math.inf])
            elif kind in ("leave", "crash"):
                stays[node][-1][1] = t_us
        self.stays, self.life_us = stays, life_us
        self.evictions = [(e["t_us"], e["node"], (e["origin"], e["seq"])) for e in evictions]

    def reachable(self):
        count = 0
        for (origin, _), sent in self.sent.items():
            over = math.inf if self.life_us is None else sent + self.life_us
            for node, stays in self.stays.items():
                count += node != origin and any(up < over and sent < down for up, down in stays)
        return count

    def held(self):
        """How long each evicted copy was held: it replays the buffer of each node."""
        turns = defaultdict(int)
        found = []
        for t_us, node, message in self.evictions:
            found.append(t_us - self.stores[node, message][turns[node, message]])
            turns[node, message] += 1
        return found

    def counts(self):
        outcome = {
            pair: "delivered" if pair in self.delivered else self.ends.get(pair, "waiting")
            for pair in self.first
        }
        every = list(outcome.values())
        return {
            "broadcasts": len(self.sent),
            "receptions": len(self.first),
            "again": self.copies - len(self.first),
            "deliveries": sum(self.deliveries_of.values()),
            "expired": every.count("expire"),
            "dropped": every.count("drop"),
            "waiting": every.count("waiting"),
        }

    def measures(self):
        first, sent = self.first, self.sent
        taken = [pair for pair in self.delivered if pair in first]
        return {
            "delay": [first[pair] - sent[pair[1]] for pair in first],
            "delivered_delay": [first[pair] - sent[pair[1]] for pair in taken],
            "latency": [self.delivered[pair] - first[pair] for pair in taken],
            "age": [self.delivered[pair] - sent[pair[1]] for pair in taken],
        }

    def run(self):
        """Return the row of `runs`, as far as the event log has it."""
        counts, reachable = self.counts(), self.reachable()
        handed = counts["broadcasts"] + counts["receptions"]
        return {
            **counts,
            "delivery_ratio": counts["deliveries"] / handed if handed else None,
            "reachable": reachable,
            "reach": counts["receptions"] / reachable if reachable else None,
            "evictions": len(self.evictions),
            "held_us_avg": mean(self.held()),
            "past_entries_avg": mean(list(self.past.values())),
            **{
                f"{name}_us_{kind}": value
                for name, values in self.measures().items()
                for kind, value in spread(values).items()
            },
        }

    def nodes(self):
        """The rows of `nodes`, by node."""
        found = {}
        for node in sorted({*self.broadcasts_of, *self.deliveries_of, *(n for n, _ in self.first)}):
            first = {p: t for p, t in self.first.items() if p[0] == node}
            taken = {p: t for p, t in self.delivered.items() if p[0] == node and p in first}
            found[node] = {
                "broadcasts": self.broadcasts_of[node],
                "receptions": len(first),
                "deliveries": self.deliveries_of[node],
                "delay_us_avg": mean([t - self.sent[p[1]] for p, t in first.items()]),
                "delivered_delay_us_avg": mean([first[p] - self.sent[p[1]] for p in taken]),
                "latency_us_avg": mean([t - first[p] for p, t in taken.items()]),
                "age_us_avg": mean([t - self.sent[p[1]] for p, t in taken.items()]),
            }
        return found

    def messages(self):
        """The rows of `messages`, by message."""
        found = {}
        for message, sent in self.sent.items():
            delays = [t - sent for (_, m), t in self.first.items() if m == message]
            ages = [t - sent for (_, m), t in self.delivered.items() if m == message]
            own = self.deliveries_of_message[message] - len(ages)
            found[message] = {
                "sent_us": sent,
                "past_entries": self.past[message],
                "receptions": len(delays),
                "deliveries": len(ages) + own,
                "delay_us_max": max(delays, default=None),
                "age_us_max": max([*ages, *([0] if own else [])], default=None),
            }
        return found

    def hops(self, senders):
        """First receptions by number of hops. senders: of each `receive` row, with its pair."""
        held, found, seen = {}, defaultdict(int), set()
        for (node, message), sender in senders:
            before = 0 if sender == message[0] else held.get((sender, message), -1)
            made = before + 1 if before >= 0 else -1
            held[node, message] = made
            if node != message[0] and (node, message) not in seen:
                seen.add((node, message))
                found[made] += 1
        return dict(found)


def quantile(values, permille):
    """The smallest value such that at least this share of the values is at most as large."""
    ordered = sorted(values)
    rank = next(n for n in range(1, len(ordered) + 1) if 1000 * n >= permille * len(ordered))
    return ordered[rank - 1]


def gauge_values(rows):
    """Return a function of (node, t_us, gauge) that gives the values which the log allows.

    A sample is taken between two rows of its node: where rows have its time, it is taken before,
    between or after them. For runs without lifetimes and full buffers."""
    states = defaultdict(lambda: [(-1, 0, 0, frozenset())])
    for row in rows:
        node, kind = row["node"], row["kind"]
        _, held, pending, origins = states[node][-1]
        if kind == "broadcast":
            held += 1
        elif kind == "receive":
            held, pending = held + 1, pending + 1
        elif kind == "deliver":
            pending -= row["origin"] != node
            origins |= {row["origin"]}
        states[node].append((row["t_us"], held, pending, origins))

    def allowed(node, t_us, gauge):
        at = [state for state in states[node] if state[0] == t_us]
        before = [state for state in states[node] if state[0] < t_us][-1:]
        place = {"cache": 1, "pending": 2, "delivered": 3}[gauge]
        found = [state[place] for state in before + at]
        return {len(value) if place == 3 else value for value in found}

    return allowed
