"""Write the index of a long log once, for processes that map it into memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from beforehand.errors import InputError
from beforehand.events import About
from beforehand.kernels.verify.causality import History
from beforehand.verify.event_log import Log
from beforehand.verify.floors import FloorBreaches
from beforehand.verify.stream import StoredColumn, groups_of, read_streamed, stored_log

FACTS, STARTS = ".facts.json", ".starts.npy"
"""Hidden names: the files are no results."""


class Facts(msgspec.Struct):
    """The facts about a log besides its events."""

    run: str
    about: About
    doubts: tuple[str, ...]
    below_floor: FloorBreaches


def write_index(file: Path, folder: Path) -> bool:
    """Index the log in a file. Return whether that can be done: see `read_streamed`."""
    log = read_streamed([file], str(file), rows_min=0)
    if log is None:
        return False
    step: Any = log.step
    assert isinstance(step, StoredColumn)
    folder.mkdir(parents=True)
    for name, values in log.history()._asdict().items():
        np.save(folder / f".{name}.npy", values)
    np.save(folder / STARTS, step.groups.starts)
    facts = Facts(log.run, log.about, log.doubts, log.below_floor)
    (folder / FACTS).write_bytes(msgspec.json.encode(facts))
    return True


def open_index(file: Path, folder: Path) -> Log:
    """Return the log in a file with its index, which stays on disk until it is read."""
    found = groups_of((file,), str(file), 0)
    if found is None:
        raise InputError("not the log that was indexed", where=str(file))
    groups, _ = found
    # Copy on write, for Numba compiles kernels anew for arrays that cannot be written.
    mapped = [np.load(folder / f".{name}.npy", mmap_mode="c") for name in History._fields]
    groups.starts = np.load(folder / STARTS)
    facts = msgspec.json.decode((folder / FACTS).read_bytes(), type=Facts)
    history = History(*map(np.asarray, mapped))
    return stored_log(groups, history, facts.run, facts.about, facts.doubts, facts.below_floor)
