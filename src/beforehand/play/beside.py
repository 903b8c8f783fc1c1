"""Find and read the tables that belong to an event log: links, causes, places, presence."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np

from beforehand.errors import InputError
from beforehand.events import (
    EVENTS_FILE,
    FRAMES_FILE,
    LINKS_FILE,
    LINKS_SUFFIX,
    PAST_COLUMNS,
    PASTS_FILE,
    PASTS_SUFFIX,
    PHASES_FILE,
    POSITIONS_FILE,
    POSITIONS_SUFFIX,
    About,
)
from beforehand.files import MANIFEST, find_damage, read_parquet, read_text
from beforehand.play.cells import CellsTrack, read_cells
from beforehand.play.run import Ints, Movement

CONTACTS_FILE, PRESENCE_FILE = "contacts.parquet", "presence.parquet"
CONTACT_COLUMNS = ("a", "b", "up_us", "down_us")
LINK_COLUMNS = ("t_us", "a", "b", "up")
MOVEMENT_COLUMNS = ("node", "t0_us", "x0", "y0", "t1_us", "x1", "y1")
FOREVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Beside:
    """The data kept with an event log. None: it was not kept."""

    contacts: Ints | None = None
    pasts: Ints | None = None
    movement: Movement | None = None
    cells: CellsTrack | None = None
    about: About = field(default_factory=About)
    """The facts of the run in the datasets of a results folder, for logs that do not say."""


class _Made(msgspec.Struct):
    """The fields of a dataset's manifest that a page needs."""

    inputs: tuple[str, ...] = ()
    parameters: dict[str, object] = {}


def read_beside_file(events: Path) -> Beside:
    """Read the tables that `simulate --events` writes beside a log."""
    stem = events.name.removesuffix(".parquet")
    links, pasts, places = (
        events.with_name(stem + suffix) for suffix in (LINKS_SUFFIX, PASTS_SUFFIX, POSITIONS_SUFFIX)
    )
    if events.name == EVENTS_FILE:
        names = (LINKS_FILE, PASTS_FILE, POSITIONS_FILE)
        links, pasts, places = (events.with_name(name) for name in names)
    phases, frames = events.with_name(PHASES_FILE), events.with_name(FRAMES_FILE)
    is_cells = events.name == EVENTS_FILE and phases.is_file() and frames.is_file()
    return Beside(
        contacts=_read_links(links) if links.is_file() else None,
        pasts=_read_pasts(pasts) if pasts.is_file() else None,
        movement=_read_movement(places) if places.is_file() else None,
        cells=read_cells(phases, frames) if is_cells else None,
    )


def read_beside_dataset(root: Path, folder: Path) -> Beside:
    """Read the datasets of a results folder from which a run was made."""
    made, about = _manifest(folder), About()
    lifetime, protocol = made.parameters.get("lifetime_us"), made.parameters.get("protocol")
    if isinstance(protocol, str):
        about = About(protocol=protocol)
    if isinstance(lifetime, int):
        about = msgspec.structs.replace(about, lifetime_us=lifetime)
    contacts, movement = None, None
    for name in made.inputs:
        for trace in sorted((root / "data").glob(f"*/{name}")):
            _refuse_damage(trace)
            if (trace / CONTACTS_FILE).is_file():
                contacts = _read_contacts(trace / CONTACTS_FILE)
            of_trace = _manifest(trace)
            range_m = of_trace.parameters.get("range_m")
            if isinstance(range_m, int | float):
                about = msgspec.structs.replace(about, range_m=float(range_m))
            for above in of_trace.inputs:
                for places in (root / "data").glob(f"*/{above}/{POSITIONS_FILE}"):
                    _refuse_damage(places.parent)
                    movement = _read_movement(places)
    pasts = folder / PASTS_FILE
    read = _read_pasts(pasts) if pasts.is_file() else None
    return Beside(contacts, read, movement, about=about)


def _manifest(folder: Path) -> _Made:
    path = folder / MANIFEST
    if not path.is_file():
        return _Made()
    try:
        return msgspec.json.decode(read_text(path), type=_Made)
    except msgspec.MsgspecError as error:
        raise InputError(f"not a manifest: {error}", where=str(path)) from error


def _refuse_damage(folder: Path) -> None:
    if damage := find_damage(folder):
        hint = "run the scenario again: it makes damaged datasets anew"
        raise InputError("; ".join(damage), where=str(folder), hint=hint)


def _columns(path: Path, names: tuple[str, ...]) -> list[np.ndarray]:
    table = read_parquet(path, names)
    missing = [name for name in names if name not in table.column_names]
    if missing:
        hint = "another program wrote this table; remove it, and the page does without it"
        raise InputError(f"no column `{missing[0]}`", where=str(path), hint=hint)
    return [table[name].to_numpy() for name in names]


def _read_contacts(path: Path) -> Ints:
    return np.column_stack([c.astype(np.int64) for c in _columns(path, CONTACT_COLUMNS)])


def _read_pasts(path: Path) -> Ints:
    return np.column_stack([c.astype(np.int64) for c in _columns(path, PAST_COLUMNS)])


def _read_movement(path: Path) -> Movement:
    return Movement(*_columns(path, MOVEMENT_COLUMNS))


def _read_links(path: Path) -> Ints:
    """Return contacts from changes of links: each `up` ends at the next change of its pair."""
    t_us, a, b, up = _columns(path, LINK_COLUMNS)
    order = np.lexsort((np.arange(len(t_us)), b, a))
    t_us, a, b, up = (column[order] for column in (t_us, a, b, up.astype(bool)))
    same = np.append((a[1:] == a[:-1]) & (b[1:] == b[:-1]), False)[: len(a)]
    until = np.where(same, np.append(t_us[1:], 0)[: len(t_us)], t_us)
    rows = np.column_stack([a, b, t_us, until]).astype(np.int64)
    contacts: Ints = rows[up]
    return contacts
