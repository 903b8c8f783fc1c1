"""A grid index of moving nodes: which nodes are in radio range. Its squares are one range wide."""

from __future__ import annotations

from bisect import insort


class GridIndex:
    """Keeps `neighbours[node]`, the sorted nodes within `range_m`, up to date with every `move`."""

    def __init__(self, nodes: int, range_m: float) -> None:
        self.range_m = range_m
        self.neighbours: list[list[int]] = [[] for _ in range(nodes)]
        self._at: list[tuple[float, float] | None] = [None] * nodes
        self._squares: dict[tuple[int, int], list[int]] = {}

    def move(self, node: int, x_m: float, y_m: float) -> None:
        """Put the node at a position. The cost depends on the nodes nearby, not on all nodes."""
        column, row = self._square(x_m, y_m)
        squares, places, range_m2 = self._squares, self._at, self.range_m**2
        around = []
        for x in (column - 1, column, column + 1):
            for y in (row - 1, row, row + 1):
                for peer in squares.get((x, y), ()):
                    px_m, py_m = places[peer]  # type: ignore[misc]
                    if (x_m - px_m) ** 2 + (y_m - py_m) ** 2 <= range_m2 and peer != node:
                        around.append(peer)
        self._settle(node, (x_m, y_m), (column, row))
        around.sort()
        before, self.neighbours[node] = self.neighbours[node], around
        if before != around:
            for peer in set(before).difference(around):
                self.neighbours[peer].remove(node)
            for peer in set(around).difference(before):
                insort(self.neighbours[peer], node)

    def _settle(self, node: int, at: tuple[float, float], square: tuple[int, int]) -> None:
        was = self._at[node]
        self._at[node] = at
        if was is not None and self._square(*was) == square:
            return
        if was is not None:
            self._squares[self._square(*was)].remove(node)
        self._squares.setdefault(square, []).append(node)

    def remove(self, node: int) -> None:
        """Take the node off the grid. It is in range of no node."""
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
