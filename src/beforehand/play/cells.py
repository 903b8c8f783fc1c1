"""The details of a run of cells: phases of handoffs, and frames on the air."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from beforehand.errors import InputError
from beforehand.files import read_parquet
from beforehand.play.messages import MessageIndex
from beforehand.play.pack import Pack
from beforehand.play.run import Ints, PageClock
from beforehand.verify.event_log import coded

PHASE_COLUMNS = ("t_us", "node", "station", "phase")
FRAME_COLUMNS = ("t_us", "airtime_us", "node", "target", "kind", "received", "collided", "deaf")


@dataclass(frozen=True)
class CellsTrack:
    """The changes of phase of the hosts, and the frames that ended, in the order of the run."""

    kind: ClassVar[str] = "cells"
    phases: Ints
    """Rows of t_us, node, station (-1: no cell), and an index into `phase_names`."""
    phase_names: tuple[str, ...]
    frames: Ints
    """Rows of t_us (the end), airtime_us (-1: the queue was full), node, target (-1: all), an index
    into `frame_kinds`, and how many nodes received it, had a collision, were deaf (-1: unknown)."""
    frame_kinds: tuple[str, ...]
    stations: int = 0

    def encode(self, pack: Pack, clock: PageClock, messages: MessageIndex) -> dict[str, Any]:
        del messages
        order = np.lexsort((np.arange(len(self.phases)), self.phases[:, 1]))
        t_us, node, station, phase = self.phases[order].T
        pack.add("phase.t", clock.ms(t_us), delta=True)
        pack.add("phase.node", node, delta=True)
        pack.add("phase.station", station)
        pack.add("phase.phase", phase)
        t_us, airtime_us, node, target, kind, received, collided, deaf = self.frames.T
        pack.add("frame.t", clock.ms(t_us), delta=True)
        pack.add("frame.airtime", airtime_us)
        pack.add("frame.node", node)
        pack.add("frame.target", target)
        pack.add("frame.kind", kind)
        for name, column in (("received", received), ("collided", collided), ("deaf", deaf)):
            pack.add(f"frame.{name}", column)
        names = {"phases": list(self.phase_names), "frame_kinds": list(self.frame_kinds)}
        return {"stations": self.stations, **names}

    def cut(self, begin_us: int, end_us: int, chosen: Ints) -> CellsTrack:
        phases = self.phases[(self.phases[:, 0] < end_us) & np.isin(self.phases[:, 1], chosen)]
        phases = phases.copy()
        phases[:, 0] = np.maximum(phases[:, 0], begin_us)  # the phase in which the window begins
        t_us = self.frames[:, 0]
        kept = (t_us >= begin_us) & (t_us < end_us) & np.isin(self.frames[:, 2], chosen)
        return replace(self, phases=phases, frames=self.frames[kept])


def read_cells(phases: Path, frames: Path) -> CellsTrack:
    """Read the tables beside the event log of a run of cells."""
    (phase_rows, phase_names), (frame_rows, frame_kinds) = (
        _read(phases, PHASE_COLUMNS, "phase"),
        _read(frames, FRAME_COLUMNS, "kind"),
    )
    return CellsTrack(phase_rows, phase_names, frame_rows, frame_kinds)


def _read(path: Path, names: tuple[str, ...], text: str) -> tuple[Ints, tuple[str, ...]]:
    table = read_parquet(path, names)
    if missing := [name for name in names if name not in table.column_names]:
        hint = "another program wrote this table; remove it, and the page does without it"
        raise InputError(f"no column `{missing[0]}`", where=str(path), hint=hint)
    texts, codes = coded(table[text])
    columns = [codes if name == text else table[name].to_numpy() for name in names]
    rows = np.column_stack([column.astype(np.int64) for column in columns])
    return rows, tuple(str(one) for one in texts)


def names_of_nodes(stations: int, nodes: int) -> tuple[str, ...]:
    """Return `S0`, `S1`, ... and `H7`, `H8`, ...: stations and hosts by their number in the log."""
    return tuple(f"{'S' if node < stations else 'H'}{node}" for node in range(nodes))
