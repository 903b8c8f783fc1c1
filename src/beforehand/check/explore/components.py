"""Strongly connected components of a graph (Tarjan 1972), without recursion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def components(targets: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yield the strongly connected components. targets: for every node, the ends of its edges."""
    count = 0
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    is_open: set[int] = set()
    for root in range(len(targets)):
        if root in number:
            continue
        work = [(root, iter(targets[root]))]
        while work:
            node, rest = work[-1]
            if node not in number:
                number[node] = low[node] = count
                count += 1
                stack.append(node)
                is_open.add(node)
            for target in rest:
                if target not in number:
                    work.append((target, iter(targets[target])))
                    break
                if target in is_open:
                    low[node] = min(low[node], low[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    found: list[int] = []
                    while not found or found[-1] != node:
                        found.append(stack.pop())
                        is_open.discard(found[-1])
                    yield found
