"""One run of an event log as arrays, with its senders and the names of its nodes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from beforehand.errors import InputError
from beforehand.events import (
    BROADCAST,
    COLUMNS,
    FILE_COLUMNS,
    KINDS,
    LINKS_SUFFIX,
    RECEIVE,
    SENDER,
)
from beforehand.files import read_parquet
from beforehand.verify.about import about_run, read_about

Ints = NDArray[np.int64]
HINT = "write the log with `beforehand simulate ... --events run.parquet`"
NUMBERS = tuple(name for name in COLUMNS if name not in ("kind", "value"))


@dataclass(frozen=True)
class RunLog:
    """The events of one run in their total order."""

    where: str
    columns: Mapping[str, Ints]
    """As in `events.COLUMNS`, without `value`."""
    sender_of_row: Ints | None
    """The sender by row, -1 where there is none; None for a log without the column."""
    names: tuple[str, ...]

    def name(self, node: int) -> str:
        """Return the name of a node, or its number if the log has no names."""
        return self.names[node] if node < len(self.names) else str(node)

    @cached_property
    def messages(self) -> tuple[Ints, Ints]:
        """Return the index of the message of each row, and the row of each message's broadcast.

        The index is -1 for rows without a broadcast message.
        """
        ids = np.stack([self.columns["origin"], self.columns["seq"]])
        own_broadcast = np.flatnonzero(self.columns["kind"] == BROADCAST)
        by_id = {tuple(pair): i for i, pair in enumerate(ids[:, own_broadcast].T.tolist())}
        index = [by_id.get(tuple(pair), -1) for pair in ids.T.tolist()]
        return np.array(index, np.int64), own_broadcast

    def senders(self) -> Ints:
        """Return the sender of each `receive` row. Raise InputError if the log does not say it."""
        received = self.columns["kind"] == RECEIVE
        if self.sender_of_row is None or (self.sender_of_row[received] < 0).any():
            problem = "the log does not name the sender of every reception"
            hint = f"an earlier version wrote it, or a world that does not know it; {HINT}"
            raise InputError(problem, where=self.where, hint=hint)
        senders: Ints = self.sender_of_row[received]
        return senders

    def first_receptions(self) -> NDArray[np.bool_]:
        """Return whether each row is the first reception of a message at a node that is not its
        origin."""
        message, _ = self.messages
        rows = np.flatnonzero(
            (self.columns["kind"] == RECEIVE)
            & (message >= 0)
            & (self.columns["node"] != self.columns["origin"])
        )
        pairs = np.stack([self.columns["node"][rows], message[rows]])
        _, first = np.unique(pairs, axis=1, return_index=True)
        is_first = np.zeros(len(message), bool)
        is_first[rows[first]] = True
        return is_first


def read_run(path: str | os.PathLike[str], run: str | None = None) -> RunLog:
    """Return a run of an event log. run: its name, needed if the log has several."""
    path = Path(path)
    table = read_parquet(path, FILE_COLUMNS, hint=HINT)
    if missing := [n for n in ("run", "step", "kind", *NUMBERS) if n not in table.column_names]:
        listed = ", ".join(f"`{name}`" for name in missing)
        raise InputError(f"no column {listed}: no event log", where=str(path), hint=HINT)
    names = table["run"].unique().to_pylist()
    if run is None and len(names) > 1:
        listed = ", ".join(f"`{name}`" for name in names[:5])
        raise InputError(f"{len(names)} runs: {listed}", where=str(path), hint="pass `--run`")
    if not names or (run is not None and run not in names):
        problem = f"no run `{run}` in the log" if names else "no event in the log"
        raise InputError(problem, where=str(path), hint=HINT)
    chosen = str(names[0]) if run is None else run
    rows = table.filter([name == chosen for name in table["run"].to_pylist()])
    rows = rows.sort_by("step")
    return RunLog(
        str(path),
        {"kind": _kinds(rows, path), **{name: _numbers(rows[name]) for name in NUMBERS}},
        _senders(rows[SENDER]) if SENDER in rows.column_names else None,
        about_run(chosen, [read_about(table.schema.metadata)]).names,
    )


def read_links(events: str | os.PathLike[str]) -> list[tuple[int, int, int, bool]]:
    """Return the changes of links (t_us, a, b, is up) beside an event log, in order."""
    events = Path(events)
    path = events.with_name(events.name.removesuffix(".parquet") + LINKS_SUFFIX)
    if not path.is_file():
        raise InputError("no links beside the event log", where=str(path), hint=HINT)
    table = read_parquet(path, ("t_us", "a", "b", "up"))
    return list(zip(*(table[name].to_pylist() for name in ("t_us", "a", "b", "up")), strict=True))


def _kinds(rows: Any, path: Path) -> Ints:
    codes = {name: code for code, name in enumerate(KINDS)}
    kinds = rows["kind"].to_pylist()
    if unknown := set(kinds) - set(codes):
        raise InputError(f"unknown kind of event: `{min(map(str, unknown))}`", where=str(path))
    return np.array([codes[kind] for kind in kinds], np.int64)


def _senders(column: Any) -> Ints:
    return _numbers(column.fill_null(-1))


def _numbers(column: Any) -> Ints:
    found: Ints = column.to_numpy().astype(np.int64)
    return found
