"""Who is in range of whom while nodes walk: a grid whose squares are one range wide."""

from __future__ import annotations

from bisect import insort


class Places:
    """`neighbours[node]`: all that stand within `range_m`, sorted; kept up to date by `move`."""

    def __init__(self, nodes: int, range_m: float) -> None:
        self.range_m = range_m
        self.neighbours: list[list[int]] = [[] for _ in range(nodes)]
        self._at: list[tuple[float, float] | None] = [None] * nodes
        self._squares: dict[tuple[int, int], list[int]] = {}

    def move(self, node: int, x_m: float, y_m: float) -> None:
        """The node is there now. The work follows the nodes around, not all of them."""
        self.remove(node)
        self._at[node] = (x_m, y_m)
        column, row = self._square(x_m, y_m)
        around = [
            peer
            for x in (column - 1, column, column + 1)
            for y in (row - 1, row, row + 1)
            for peer in self._squares.get((x, y), ())
            if self._reaches(x_m, y_m, peer)
        ]
        self._squares.setdefault((column, row), []).append(node)
        self.neighbours[node] = sorted(around)
        for peer in around:
            insort(self.neighbours[peer], node)

    def remove(self, node: int) -> None:
        """The node is nowhere: it hears nobody, and nobody hears it."""
        at = self._at[node]
        if at is None:
            return
        self._at[node] = None
        self._squares[self._square(*at)].remove(node)
        for peer in self.neighbours[node]:
            self.neighbours[peer].remove(node)
        self.neighbours[node] = []

    def _square(self, x_m: float, y_m: float) -> tuple[int, int]:
        return int(x_m // self.range_m), int(y_m // self.range_m)

    def _reaches(self, x_m: float, y_m: float, peer: int) -> bool:
        at = self._at[peer]
        if at is None:
            return False
        return (x_m - at[0]) ** 2 + (y_m - at[1]) ** 2 <= self.range_m**2
