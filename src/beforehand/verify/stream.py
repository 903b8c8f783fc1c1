"""Index a long event log in two passes over its files, with eight bytes in memory per event.

The first pass names the messages and nodes, the second gives each event its node and message. The
other columns stay in the files. A proof reads the few rows that it shows.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from beforehand.events import About
from beforehand.files import unreadable
from beforehand.kernels.verify.causality import History, Ints
from beforehand.kernels.verify.index import MessageNumbers, NodeIndex, RepeatedBroadcast, ranks_of
from beforehand.verify.about import about_run, read_about
from beforehand.verify.event_log import (
    HINT,
    NUMBERS,
    READ_COLUMNS,
    TEXTS,
    Log,
    broadcasts_and_deliveries,
    count_kinds,
    doubts_of,
    joined,
    repeated,
)
from beforehand.verify.floors import FloorBreaches, Floors

ROWS_MIN = 4_000_000
"""Logs of fewer rows are read at once: that is simpler, and allows any order of rows."""
BATCH_ROWS = 1 << 20
GROUPS_KEPT = 16
"""How many columns of row groups stay in memory for proofs."""
CAUSAL = ("kind", "node", "origin", "seq")


@dataclass(frozen=True)
class RowGroup:
    """One row group of one file."""

    file: int
    number: int


@dataclass
class Groups:
    """The row groups of a log in the order of its steps."""

    paths: tuple[Path, ...]
    where: str
    groups: list[RowGroup]
    starts: Ints
    """The broadcasts and deliveries before each group, shape (groups + 1,)."""
    _kept: OrderedDict[tuple[int, str], NDArray[Any]] = field(default_factory=OrderedDict)

    def batches(self, names: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
        """Yield the rows with the number of their group, a million at a time."""
        opened, at = None, -1
        try:
            for number, group in enumerate(self.groups):
                if opened is None or group.file != at:
                    if opened is not None:
                        opened.close()
                    at = group.file
                    opened = open_file(self.paths[at])
                found = opened.iter_batches(
                    BATCH_ROWS, row_groups=[group.number], columns=list(names)
                )
                for batch in found:
                    yield number, self._checked(pa.Table.from_batches([batch]), names)
        except (pa.ArrowException, OSError) as error:
            raise unreadable(self.paths[max(at, 0)], error, HINT) from error
        finally:
            if opened is not None:
                opened.close()

    def _checked(self, table: pa.Table, names: Sequence[str]) -> pa.Table:
        numbers = [name for name in names if name in NUMBERS]
        return joined([table], numbers, [name for name in names if name in TEXTS], self.where)

    def values(self, name: str, rows: Any) -> Any:
        """Return the values of one column in some broadcasts and deliveries."""
        wanted = np.asarray(rows)
        flat = wanted.reshape(-1)
        groups = np.searchsorted(self.starts, flat, side="right") - 1
        found: NDArray[Any] = np.empty(len(flat), np.bool_ if name == "kind" else np.int64)
        for number in np.unique(groups).tolist():
            here = groups == number
            found[here] = self._column(number, name)[flat[here] - self.starts[number]]
        return found.reshape(wanted.shape)[()]

    def _column(self, number: int, name: str) -> NDArray[Any]:
        """Return one column of the broadcasts and deliveries of a group; of `kind`, whether they
        are broadcasts."""
        kept = self._kept.pop((number, name), None)
        if kept is None:
            one = Groups(self.paths, self.where, [self.groups[number]], self.starts)
            tables = [table for _, table in one.batches([*dict.fromkeys(("kind", name))])]
            table = pa.concat_tables(tables).unify_dictionaries()
            is_broadcast, wanted = broadcasts_and_deliveries(table["kind"])
            kept = (is_broadcast if name == "kind" else table[name].to_numpy())[wanted]
        self._kept[number, name] = kept
        if len(self._kept) > GROUPS_KEPT:
            self._kept.popitem(last=False)
        return kept


@dataclass(frozen=True)
class StoredColumn:
    """A column whose values are read when they are asked for."""

    groups: Groups
    name: str

    def __getitem__(self, rows: Any, /) -> Any:
        return self.groups.values(self.name, rows)

    def __len__(self) -> int:
        return int(self.groups.starts[-1])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the whole column, for pictures; the verifier does without it."""
        return np.asarray(self.groups.values(self.name, np.arange(len(self))), dtype)

    def astype(self, dtype: Any) -> NDArray[Any]:
        return self.__array__(dtype)


@dataclass
class _Named:
    """The result of the first pass."""

    run: str = ""
    runs: set[str] = field(default_factory=set)
    is_ordered: bool = True
    steps: int = 0
    rows: int = 0
    kept: int = 0
    strange: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    nodes: NodeIndex = field(default_factory=NodeIndex)
    broadcast_rows: list[Ints] = field(default_factory=list)
    senders: list[Ints] = field(default_factory=list)
    origins: list[Ints] = field(default_factory=list)
    seqs: list[Ints] = field(default_factory=list)
    floors: Floors = field(default_factory=Floors)

    def add(self, table: pa.Table) -> int:
        """Add rows; return how many of them are broadcasts or deliveries."""
        self.runs |= {str(run) for run in table["run"].unique().to_pylist()}
        step = table["step"].to_numpy()
        self.is_ordered &= bool(step[0] >= self.steps and (np.diff(step) > 0).all())
        if len(self.runs) > 1 or not self.is_ordered:
            return 0
        self.steps = int(step[-1]) + 1
        self.rows += len(table)
        kinds = count_kinds(table["kind"])
        self.kinds += kinds
        if kinds["skip"] or self.floors.is_any:
            self.floors.add_table(table)
        is_broadcast, kept = broadcasts_and_deliveries(table["kind"])
        node, origin, seq = (table[name].to_numpy() for name in ("node", "origin", "seq"))
        self.nodes.add(node[kept])
        broadcast_rows = self.kept + np.flatnonzero(is_broadcast[kept])
        for column, values in (
            (self.broadcast_rows, broadcast_rows),
            (self.senders, node[is_broadcast]),
            (self.origins, origin[is_broadcast]),
            (self.seqs, seq[is_broadcast]),
        ):
            column.append(values)
        self.strange += int((node != origin)[is_broadcast].sum())
        count = int(kept.sum())
        self.kept += count
        return count


def open_file(path: Path) -> pq.ParquetFile:
    return pq.ParquetFile(path, page_checksum_verification=True, read_dictionary=list(TEXTS))


def read_streamed(paths: Sequence[Path], where: str, *, rows_min: int | None = None) -> Log | None:
    """Return the log in these files, with its history; None if it must be read at once.

    It must be if it is short, or has several runs, or its row groups are not in the order of steps.
    rows_min: the fewest rows of a log that is not short; default `ROWS_MIN`.
    """
    try:
        found = groups_of(tuple(paths), where, ROWS_MIN if rows_min is None else rows_min)
    except (pa.ArrowException, OSError, KeyError):
        return None  # the reader of short logs reports what is wrong
    if found is None:
        return None
    groups, abouts = found
    named = _Named()
    counts = np.zeros(len(groups.groups), np.int64)
    for number, table in groups.batches(READ_COLUMNS):
        counts[number] += named.add(table)
        if len(named.runs) > 1 or not named.is_ordered:
            return None
    np.cumsum(counts, out=groups.starts[1:])
    (run,) = named.runs
    about = about_run(run, abouts)
    doubts = doubts_of(about, named.steps, named.rows, named.kinds, named.strange)
    history = _history(groups, named, run)
    return stored_log(groups, history, run, about, tuple(doubts), named.floors.breaches())


def stored_log(
    groups: Groups,
    history: History,
    run: str,
    about: About,
    doubts: tuple[str, ...],
    below_floor: FloorBreaches,
) -> Log:
    """Return a log whose columns stay in its files."""
    column: Any = partial(StoredColumn, groups)
    return Log(
        run,
        step=column("step"),
        t_us=column("t_us"),
        node=column("node"),
        is_broadcast=column("kind"),
        origin=column("origin"),
        seq=column("seq"),
        where=groups.where,
        about=about,
        doubts=doubts,
        below_floor=below_floor,
        indexed=history,
    )


def groups_of(
    paths: tuple[Path, ...], where: str, rows_min: int
) -> tuple[Groups, list[dict[str, About]]] | None:
    """Return the row groups in the order of their first steps, and the metadata of each file."""
    found: list[tuple[int, int, RowGroup]] = []
    abouts = []
    rows = 0
    for at, path in enumerate(paths):
        with open_file(path) as opened:
            schema, metadata = opened.schema_arrow, opened.metadata
            rows += metadata.num_rows
            if any(schema.names.count(name) != 1 for name in READ_COLUMNS):
                return None
            abouts.append(read_about(schema.metadata))
            for number in range(metadata.num_row_groups):
                ends = _steps_of(metadata.row_group(number))
                if ends is None:
                    return None
                found.append((*ends, RowGroup(at, number)))
    found.sort(key=lambda each: each[:2])
    if rows < max(1, rows_min) or any(one[1] >= two[0] for one, two in pairwise(found)):
        return None
    groups = [group for _, _, group in found]
    return Groups(paths, where, groups, np.zeros(len(groups) + 1, np.int64)), abouts


def _steps_of(group: Any) -> tuple[int, int] | None:
    """Return the first and the last step of a row group; None if its statistics do not say."""
    for at in range(group.num_columns):
        column = group.column(at)
        if column.path_in_schema == "step":
            known = column.statistics
            if known is not None and known.has_min_max and isinstance(known.min, int):
                return known.min, known.max
    return None


def _history(groups: Groups, named: _Named, run: str) -> History:
    """Return the history, by a second pass over the files."""
    broadcast_rows, origins, seqs = map(
        np.concatenate, (named.broadcast_rows, named.origins, named.seqs)
    )
    try:
        index = MessageNumbers(broadcast_rows, origins, seqs)
    except RepeatedBroadcast as error:
        at = np.searchsorted(broadcast_rows, [error.first, error.second])
        first, second = groups.values("step", np.array([error.first, error.second])).tolist()
        name = f"{origins[at[0]]}:{seqs[at[0]]}"
        raise repeated(name, (first, second), run, groups.where) from error
    node, message = np.empty(named.kept, np.int32), np.empty(named.kept, np.int32)
    done = 0
    for _, table in groups.batches(CAUSAL):
        _, kept = broadcasts_and_deliveries(table["kind"])
        here = slice(done, done + int(kept.sum()))
        node[here] = named.nodes.numbers(table["node"].to_numpy()[kept])
        message[here] = index.numbers(
            table["origin"].to_numpy()[kept], table["seq"].to_numpy()[kept]
        )
        done = here.stop
    senders = named.nodes.numbers(np.concatenate(named.senders))
    return History(node, message, broadcast_rows, ranks_of(senders), named.nodes.names())
