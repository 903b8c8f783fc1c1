"""Merge the logs of real nodes into one run, by causality alone.

The nodes' clocks disagree, and no node saw the whole run. Each incarnation of a node numbers its
events 0, 1, 2, ... It logs when it starts, with the number of the start, and when it stops. So the
verifier knows what is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from beforehand.errors import InputError
from beforehand.events import NODE_COLUMNS, NODE_KINDS, NODE_TEXTS, About
from beforehand.files import read_parquet
from beforehand.kernels.verify.index import RepeatedBroadcast, index_log
from beforehand.kernels.verify.merge import merge_by_causality
from beforehand.verify.about import about_run, read_about
from beforehand.verify.event_log import (
    NODE_FILES,
    SHOWN_MAX,
    Log,
    content_of,
    count_kinds,
    doubt_of_speakers,
    empty_log,
    joined,
    strange_kinds,
)
from beforehand.verify.floors import FloorBreaches, Floors

NUMBERS = tuple(name for name in NODE_COLUMNS if name not in NODE_TEXTS)
HINT = f"give the files that a node wrote, `{NODE_FILES}`, or a folder of them"

Ints = NDArray[np.int64]


def are_of_nodes(files: Sequence[Path]) -> bool:
    """Return whether the files are node logs, which need to be merged."""
    return all(fnmatch(file.name, NODE_FILES) for file in files)


def read_node_logs(files: Sequence[Path]) -> Iterator[Log]:
    """Yield every run in the logs, merged."""
    where = _place_of(files)
    is_empty = True
    for merge, about in read_merges(files):
        is_empty = False
        yield merge.log(about)
    if is_empty:
        yield empty_log(files[0], where, ("there are no events in the log",))


def read_merges(files: Sequence[Path]) -> Iterator[tuple[Merge, About]]:
    """Yield every run in the logs, with its metadata."""
    where = _place_of(files)
    columns = (*NODE_TEXTS, *NUMBERS)
    parts = [read_parquet(file, columns, hint=HINT, content=content_of(file)) for file in files]
    table = joined(parts, NUMBERS, NODE_TEXTS, where)
    metadata = [read_about(part.schema.metadata) for part in parts]
    for run in pc.unique(table["run"]):
        name = str(run.as_py())
        rows = table.filter(pc.equal(table["run"], run))
        yield Merge(name, rows, where), about_run(name, metadata)


def _place_of(files: Sequence[Path]) -> str:
    return str(files[0] if len(files) == 1 else Path(*_shared(files)))


def _shared(files: Sequence[Path]) -> Iterator[str]:
    for parts in zip(*(file.parent.parts for file in files), strict=False):
        if len({*parts}) > 1:
            return
        yield parts[0]


def _coded(column: Any) -> tuple[list[str], Ints]:
    """Return the distinct texts, and the index of each row's text."""
    plain = column.cast(pa.string())
    uniques = pc.unique(plain)
    codes = pc.index_in(plain, value_set=uniques).to_numpy().astype(np.int64)
    return uniques.to_pylist(), codes


def _is(kinds: Any, *wanted: str) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = pc.is_in(kinds, value_set=pa.array(wanted)).to_numpy()
    return found


def _listed(names: Sequence[str]) -> str:
    return _shortened([f"`{name}`" for name in names])


def _shortened(items: Sequence[str]) -> str:
    more = f", {len(items) - SHOWN_MAX} more" if len(items) > SHOWN_MAX else ""
    return f"{', '.join(items[:SHOWN_MAX])}{more}"


class Merge:
    """The rows of one run.

    A *line* is the log of one incarnation of one node; its order is known.
    """

    def __init__(self, run: str, table: pa.Table, where: str) -> None:
        self.run, self.where = run, where
        (nodes, node), (incarnations, incarnation) = _coded(table["node"]), _coded(table["life"])
        keys, line = np.unique(node * len(incarnations) + incarnation, return_inverse=True)
        self.nodes: list[str] = [nodes[key // len(incarnations)] for key in keys.tolist()]
        self.incarnations: list[str] = [
            incarnations[key % len(incarnations)] for key in keys.tolist()
        ]
        self.has_one_incarnation = {name for name, many in Counter(self.nodes).items() if many == 1}
        step = table["step"].to_numpy()
        if ((np.diff(line) < 0) | ((np.diff(line) == 0) & (np.diff(step) <= 0))).any():
            order = np.lexsort((step, line))
            table, line = table.take(order), line[order]
        self.table, self.line = table, line
        self._drop_copies()
        if (low := int(step.min())) < 0:
            problem = f"step {low} of run `{run}` is below 0"
            raise InputError(problem, where=where, hint="a node numbers its events 0, 1, 2, ...")
        self.step = self.table["step"].to_numpy()

    def log(self, about: About) -> Log:
        doubts = [*self._doubts(), *about.doubts]
        kinds = self.table["kind"]
        rows = np.flatnonzero(_is(kinds, "broadcast", "deliver"))
        events = self.table.take(rows)
        names, origin = self.origins(events["origin"])
        line, seq = self.line[rows], events["seq"].to_numpy()
        is_broadcast = _is(events["kind"], "broadcast")
        own = {name: at for at, name in enumerate(names)}
        speaker = np.array([own.get(node, -1) for node in self.nodes], np.int64)[line]
        doubts += doubt_of_speakers(int((speaker != origin)[is_broadcast].sum()))
        message, broadcast_rows = self._index(line, is_broadcast, origin, seq, self.step[rows])
        doubts += self._absent(names, origin[message < 0], about.members)
        # `merge_by_causality` needs dense line numbers; lines without such rows would leave gaps.
        _, dense = np.unique(line, return_inverse=True)
        order, forced = merge_by_causality(dense.astype(np.int32), message, broadcast_rows)
        return Log(
            run=self.run,
            step=self.step[rows][order],
            t_us=self._since_first()[rows][order],
            node=line[order],
            is_broadcast=is_broadcast[order],
            origin=origin[order],
            seq=seq[order],
            where=self.where,
            about=msgspec.structs.replace(about, events=None, names=names),
            doubts=tuple(doubts),
            impossible=len(forced),
            below_floor=self._below_floor(),
        )

    def _below_floor(self) -> FloorBreaches:
        """Return the deliveries at or below the floor of their node, within one incarnation."""
        floors, kinds = Floors(), self.table["kind"]
        if (is_skip := _is(kinds, "skip")).any():
            rows = np.flatnonzero(is_skip | _is(kinds, "deliver"))
            columns = {"step": self.step, "t_us": self._since_first(), "node": self.line}
            columns |= {"origin": self.origins(self.table["origin"])[1]}
            columns |= {"seq": self.table["seq"].to_numpy()}
            floors.add(is_skip[rows], {name: values[rows] for name, values in columns.items()})
        return floors.breaches()

    def _drop_copies(self) -> None:
        """Drop repeated rows, as from a copied file; raise InputError if two copies differ."""
        step = self.table["step"].to_numpy()
        again = np.flatnonzero((np.diff(self.line) == 0) & (np.diff(step) == 0)) + 1
        if not len(again):
            return
        for name in ("kind", "origin", "seq", "value"):
            column = self.table[name]
            same = pc.equal(column.take(again), column.take(again - 1)).to_numpy()
            if not same.all():
                at = int(again[np.argmin(same)])
                problem = f"two logs of `{self.nodes[self.line[at]]}` differ in step {step[at]}"
                raise InputError(
                    problem, where=self.where, hint="two processes may have used one store"
                )
        kept = np.delete(np.arange(len(step)), again)
        self.table, self.line = self.table.take(kept), self.line[kept]

    def _doubts(self) -> Iterator[str]:
        """Yield the reasons why a node's log may be incomplete."""
        kinds, value = self.table["kind"], self.table["value"].to_numpy()
        is_start = _is(kinds, "start")
        is_stop = _is(kinds, "stop")
        bounds = np.searchsorted(self.line, np.arange(len(self.incarnations) + 1))
        found: dict[str, list[str]] = {}
        for node, low, high in zip(self.nodes, bounds[:-1], bounds[1:], strict=True):
            if missing := int(self.step[high - 1]) + 1 - (high - low):
                found.setdefault("events are missing from the log of", []).append(
                    f"`{node}` ({missing:,})"
                )
            if not is_stop[high - 1]:
                found.setdefault("no stop event, so killed or running:", []).append(f"`{node}`")
            starts = value[low:high][is_start[low:high]]
            is_complete = is_start[low] and np.array_equal(starts, np.arange(1, len(starts) + 1))
            if not is_complete and not missing:
                found.setdefault("ran without a log:", []).append(f"`{node}`")
        if twice := sorted({*self.nodes} - self.has_one_incarnation):
            found["several incarnations in no known order:"] = [f"`{node}`" for node in twice]
        for doubt, nodes in found.items():
            yield f"{doubt} {_shortened(nodes)}"
        yield from strange_kinds(count_kinds(kinds), NODE_KINDS)

    def origins(self, column: Any) -> tuple[tuple[str, ...], Ints]:
        """Return the names by number, those of the lines first, and each row's origin."""
        lines = zip(self.nodes, self.incarnations, strict=True)
        names = [
            n if n in self.has_one_incarnation else f"{n} ({incarnation[:8]})"
            for n, incarnation in lines
        ]
        numbers = {name: at for at, name in enumerate(names) if name in self.has_one_incarnation}
        origins, codes = _coded(column)
        for origin in origins:
            if origin not in numbers:
                numbers[origin] = len(names)
                names.append(origin)
        return tuple(names), np.array([numbers[origin] for origin in origins], np.int64)[codes]

    def _index(
        self, line: Ints, is_broadcast: NDArray[np.bool_], origin: Ints, seq: Ints, step: Ints
    ) -> tuple[Any, Ints]:
        """Return the message index of each row, and the row of each message's broadcast."""
        try:
            history = index_log(line, is_broadcast, origin, seq)
        except RepeatedBroadcast as error:
            rows = (error.first, error.second)
            broadcasts = " and ".join(
                f"step {step[row]} of `{self.nodes[line[row]]}`" for row in rows
            )
            problem = f"a message of one name is broadcast twice, in {broadcasts}"
            hint = "origin and seq must name one message"
            raise InputError(problem, where=self.where, hint=hint) from error
        return history.message, history.broadcast_rows

    def _absent(self, names: Sequence[str], origins: Ints, members: Sequence[str]) -> Iterator[str]:
        """Yield doubts about members without a log: their broadcasts and deliveries are unknown."""
        strangers = origins[origins >= len(self.nodes)]
        absent = [names[at] for at in np.unique(strangers)]
        if absent:
            yield f"{len(strangers):,} deliveries from members without a log: {_listed(absent)}"
        if silent := sorted({*members} - {*self.nodes, *absent}):
            yield f"members without a log: {_listed(silent)}"

    def _since_first(self) -> Ints:
        """Return times since the first event of each line: clocks of nodes are not comparable."""
        t_us = self.table["t_us"].to_numpy()
        first = np.searchsorted(self.line, np.arange(len(self.incarnations)))
        since: Ints = t_us - t_us[first][self.line]
        return since
