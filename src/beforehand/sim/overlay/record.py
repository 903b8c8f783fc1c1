"""Write the event log of a run of the overlay, and the causes of its messages beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from beforehand.events import EVENTS_FILE, PASTS_FILE, About
from beforehand.protocols.registry import written_promise
from beforehand.sim.log import event_table, packet_senders, pasts_table, write_events
from beforehand.sim.overlay.world import OverlayRun

SYSTEM = "vcube"


def write_run(name: str, run: OverlayRun, folder: Path) -> None:
    senders, promise = packet_senders(run.events), written_promise(SYSTEM)
    about = About(protocol=SYSTEM)
    log = event_table(name, run.events, senders=senders, promise=promise, about=about)
    write_events(log, folder / EVENTS_FILE)
    write_events(pasts_table(_pasts(run)), folder / PASTS_FILE)


def _pasts(run: OverlayRun) -> NDArray[np.int64]:
    """Return rows of origin, seq, cause_origin, cause_seq, in the order of the messages."""
    causes = np.diff(run.past.start)
    nodes = int(run.events["node"].max()) + 1
    index = np.repeat(np.arange(len(causes)), causes)
    origin, at = np.divmod(index, len(causes) // nodes)
    return np.column_stack([origin, at + 1, run.past.origin, run.past.seq]).astype(np.int64)
