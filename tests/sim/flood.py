"""An ideal flood over a trace: no delay, unlimited bandwidth, no protocol."""

from collections import defaultdict


def ideal_flood(trace, workload, lifetime_us=None):
    """{(node, (origin, index of the message of that origin)): instant of reception}."""
    events = []
    for a, b, up_us, down_us in trace.contacts.tolist():
        events += [(down_us, 0, a, b), (up_us, 1, a, b)]
    spoken = defaultdict(int)
    for broadcast in workload:
        spoken[broadcast.node] += 1
        events.append((broadcast.t_us, 2, broadcast.node, spoken[broadcast.node]))
    events.sort()
    neighbours = defaultdict(set)
    holds = defaultdict(dict)  # node -> message -> deadline
    received = {}

    def spread(now_us, start):
        queue = list(start)
        while queue:
            node, message, deadline = queue.pop()
            for peer in neighbours[node]:
                if message not in holds[peer] and (deadline is None or deadline > now_us):
                    holds[peer][message] = deadline
                    received[peer, message] = now_us
                    queue.append((peer, message, deadline))

    for now_us, kind, a, b in events:
        if kind == 0:
            neighbours[a].discard(b)
            neighbours[b].discard(a)
        elif kind == 1:
            neighbours[a].add(b)
            neighbours[b].add(a)
            both = [(node, m, d) for node in (a, b) for m, d in holds[node].items()]
            spread(now_us, both)
        else:
            deadline = None if lifetime_us is None else now_us + lifetime_us
            holds[a][a, b] = deadline
            spread(now_us, [(a, (a, b), deadline)])
    return received
