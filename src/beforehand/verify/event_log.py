"""An event log on disk, read for the verifier: its broadcasts and deliveries, run by run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from beforehand.errors import InputError
from beforehand.kernels.causality import History, RepeatedBroadcast, index_log

EVENTS_FILE = "events.parquet"
COLUMNS = ("run", "step", "t_us", "node", "kind", "origin", "seq")
NUMBERS = ("step", "t_us", "node", "origin", "seq")
HINT = "give a Parquet file with the columns of the event log, or a folder of them"


@dataclass(frozen=True)
class Log:
    """The broadcasts and deliveries of one run, in the order in which they happened."""

    run: str
    step: NDArray[np.int64]
    t_us: NDArray[np.int64]
    node: NDArray[Any]
    is_broadcast: NDArray[np.bool_]
    origin: NDArray[Any]
    seq: NDArray[np.int64]
    missing: int
    """Steps that the run had and the log has not, of whatever kind they were."""
    where: str

    def history(self) -> History:
        try:
            return index_log(self.node, self.is_broadcast, self.origin, self.seq)
        except RepeatedBroadcast as error:
            message = f"{self.origin[error.first]}:{self.seq[error.first]}"
            steps = f"steps {self.step[error.first]} and {self.step[error.second]}"
            raise InputError(
                f"message {message} is broadcast twice, in {steps} of run `{self.run}`",
                where=self.where,
                hint="origin and seq must name one message",
            ) from error


def find_logs(path: Path) -> list[Path]:
    """The event logs at a path: the file itself, or those of all runs below a folder."""
    if not path.exists():
        raise InputError("no such file or folder", where=str(path), hint=HINT)
    found = [path] if path.is_file() else sorted(path.rglob(EVENTS_FILE))
    if not found:
        raise InputError(f"no `{EVENTS_FILE}` in the folder", where=str(path), hint=HINT)
    return found


def read_logs(path: Path) -> Iterator[Log]:
    """Every run of one file."""
    table = _read(path)
    for run in pc.unique(table["run"]):
        yield _log(str(run.as_py()), table.filter(pc.equal(table["run"], run)), str(path))


def _read(path: Path) -> pa.Table:
    try:
        names = pq.read_schema(path).names
        missing = [name for name in COLUMNS if name not in names]
        if not missing:
            table = pq.read_table(path, columns=list(COLUMNS))
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError("not a Parquet file", where=str(path), hint=HINT) from error
    if missing:
        listed = ", ".join(f"`{name}`" for name in missing)
        raise InputError(f"no column {listed} in the event log", where=str(path), hint=HINT)
    for name in NUMBERS:
        if not pa.types.is_integer(table[name].type):
            kind = table[name].type
            raise InputError(f"column `{name}` is {kind}, not whole numbers", where=str(path))
    if any(table[name].null_count for name in COLUMNS):
        raise InputError("empty fields in the event log", where=str(path), hint=HINT)
    return table


def _log(run: str, table: pa.Table, where: str) -> Log:
    step = table["step"].to_numpy()
    if len(step) and not (np.diff(step) > 0).all():
        table = table.sort_by("step")
        step = table["step"].to_numpy()
        again = np.flatnonzero(np.diff(step) == 0)
        if len(again):
            raise InputError(
                f"step {step[again[0]]} of run `{run}` is there twice",
                where=where,
                hint="`step` is the order of all events of one run",
            )
    missing = int(step[-1]) + 1 - len(step) if len(step) else 0
    chosen = pc.is_in(table["kind"], value_set=pa.array(["broadcast", "deliver"]))
    kept = table.filter(chosen)
    return Log(
        run=run,
        step=kept["step"].to_numpy(),
        t_us=kept["t_us"].to_numpy(),
        node=kept["node"].to_numpy(),
        is_broadcast=pc.equal(kept["kind"], pa.scalar("broadcast")).to_numpy(),
        origin=kept["origin"].to_numpy(),
        seq=kept["seq"].to_numpy(),
        missing=missing,
        where=where,
    )
