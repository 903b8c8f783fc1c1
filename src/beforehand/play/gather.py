"""Gather the tables of a run from a results folder, an event log, or a mobility trace."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from beforehand.errors import InputError, list_some, visible
from beforehand.events import (
    CRASH,
    EVENTS_FILE,
    JOIN,
    KINDS,
    LEAVE,
    NODE_SUFFIX,
    RECOVER,
    SEND,
    SENDER,
    About,
)
from beforehand.files import MANIFEST, find_damage, read_parquet
from beforehand.mobility.positions import Positions
from beforehand.mobility.trace import Trace
from beforehand.play.beside import Beside, read_beside_dataset, read_beside_file
from beforehand.play.cells import names_of_nodes
from beforehand.play.judge import PROOFS_MAX, violations_of
from beforehand.play.nodes import nodes_run
from beforehand.play.observer import is_observed, observed_run
from beforehand.play.run import UNKNOWN_SENDER, Details, Events, Ints, Movement, Run, Violations
from beforehand.play.vcube import read_packets
from beforehand.verify.event_log import HINT, READ_COLUMNS, coded, content_of, joined, logs_of
from beforehand.verify.plan import EVENTS_STAGE, PLAN_FILE, read_plan
from beforehand.verify.verdict import judge

CONTACTS_WORLD = "contacts"
VALUE = "value"


def gather_run(path: Path, run: str | None = None) -> Run:
    """Return a run of a results folder or of an event log.

    run: its name, or the beginning of it; by default the first one.
    """
    if path.is_dir() and (path / PLAN_FILE).is_file():
        folder, title = _find_dataset(path, run)
        damage = find_damage(folder)
        if damage:
            hint = "run the scenario again: it makes damaged datasets anew"
            raise InputError("; ".join(damage), where=str(folder), hint=hint)
        return _read_run(folder / EVENTS_FILE, None, read_beside_dataset(path, folder), title)
    if is_observed(path):
        return observed_run(path, run)
    if path.is_dir():
        if nodes := sorted(path.rglob(f"*{NODE_SUFFIX}")):
            return nodes_run(nodes, run)
        path = _only_log(path)
    if path.name.endswith(NODE_SUFFIX):
        return nodes_run([path], run)
    return _read_run(path, run, read_beside_file(path), "")


def draws(root: Path) -> bool:
    """Return whether `play` draws the runs of a results folder."""
    plan = read_plan(root)
    return plan.world == CONTACTS_WORLD and bool(plan.stages.get(EVENTS_STAGE))


def _find_dataset(root: Path, run: str | None) -> tuple[Path, str]:
    """Return the folder of a run's events, and the title of the scenario."""
    plan = read_plan(root)
    if plan.world != CONTACTS_WORLD:
        raise InputError(
            f"`play` cannot draw runs of the world `{plan.world}`",
            where=str(root),
            hint=f"it draws runs of the world `{CONTACTS_WORLD}`, such as city-bus and ostermalm",
        )
    folders = [root / folder for folder in plan.stages.get(EVENTS_STAGE, ())]
    found = [f for f in folders if run is None or f.name.startswith(run)]
    finished = [folder for folder in found if (folder / MANIFEST).is_file()]
    if not finished:
        problem = "no run is finished" if run is None or found else f"no run is named `{run}`"
        names = list_some([folder.name for folder in folders])
        hint = f"runs here: {names}" if names else "`beforehand run` goes on with what is missing"
        raise InputError(problem, where=str(root), hint=hint)
    return finished[0], plan.scenario


def _only_log(folder: Path) -> Path:
    """Return the event log of a folder without a plan; refuse several."""
    named = sorted(folder.rglob(EVENTS_FILE))
    if len(named) == 1:
        return named[0]
    problem = f"{len(named)} event logs in the folder" if named else f"no `{EVENTS_FILE}` here"
    raise InputError(problem, where=str(folder), hint="give the Parquet file of one run")


def _read_run(path: Path, wanted: str | None, beside: Beside, title: str) -> Run:
    table = read_parquet(path, (*READ_COLUMNS, SENDER, VALUE), hint=HINT, content=content_of(path))
    columns = joined([table], ("step", "t_us", "node", "origin", "seq"), ("run", "kind"), str(path))
    runs, codes = coded(columns["run"])
    name = _choose_run([str(run) for run in runs], wanted, path)
    rows = np.flatnonzero(codes == [str(run) for run in runs].index(name)) if runs else codes
    events = _events(table, columns, rows)
    only = columns.take(rows).replace_schema_metadata(table.schema.metadata)
    (log,) = logs_of([only], str(path)) if len(rows) else (None,)
    if log is None:
        raise InputError("there are no events in the log", where=str(path), hint=HINT)
    verdict = judge(log)
    about = _merged(log.about, beside.about)
    names = _names(about, events)
    events, details = _details(events, table, rows, beside, about, len(names))
    if not about.names and about.stations:
        names = names_of_nodes(about.stations, len(names))
    presence, notes = _presence(events, len(names))
    notes += _notes(events, beside, details, len(verdict.violations.row))
    return Run(
        name=name,
        title=title or name,
        names=names,
        about=about,
        events=events,
        violations=violations_of(verdict),
        verdict=verdict.state,
        reason=verdict.reason,
        presence=presence,
        contacts=beside.contacts,
        pasts=beside.pasts,
        movement=beside.movement,
        notes=tuple(notes),
        relays=0 if beside.cells is None else about.stations or 0,
        details=details,
    )


def _details(
    events: Events, table: pa.Table, rows: np.ndarray, beside: Beside, about: About, nodes: int
) -> tuple[Events, Details | None]:
    """Return the events without those of packets, and what this kind of run has besides them."""
    if beside.cells is not None:
        return events, replace(beside.cells, stations=about.stations or 0)
    if not (events.kind == SEND).any():
        return events, None
    if VALUE not in table.column_names:
        hint = "`value` is the number of the packet of each `send` and `receive` row"
        raise InputError("the log has packets without numbers: no column `value`", hint=hint)
    rows = rows[np.argsort(table["step"].to_numpy()[rows], kind="stable")]
    return read_packets(events, table[VALUE].to_numpy()[rows], nodes)


def _choose_run(runs: list[str], wanted: str | None, path: Path) -> str:
    found = [run for run in runs if wanted is None or run.startswith(wanted)]
    if wanted in found:
        return str(wanted)
    if not found:
        problem = f"no run is named `{wanted}`" if runs else "there are no events in the log"
        raise InputError(problem, where=str(path), hint=f"runs here: {list_some(runs)}")
    if len(found) > 1:
        hint = f"choose one with `--run`: {list_some(found)}"
        raise InputError(f"{len(found)} runs in the log", where=str(path), hint=hint)
    return found[0]


def _events(table: pa.Table, columns: pa.Table, rows: np.ndarray) -> Events:
    """Return the events of a run in the order of its steps, with codes of the kinds."""
    step = columns["step"].to_numpy()[rows]
    rows = rows[np.argsort(step, kind="stable")]
    kinds, codes = coded(columns["kind"])
    code_of = np.array([KINDS.index(kind) if kind in KINDS else len(KINDS) for kind in kinds])
    sender = np.full(len(rows), UNKNOWN_SENDER, np.int64)
    if SENDER in table.column_names:
        known = table[SENDER].to_numpy(zero_copy_only=False)[rows]
        sender = np.nan_to_num(known, nan=UNKNOWN_SENDER).astype(np.int64)
    plain = {n: columns[n].to_numpy()[rows] for n in ("step", "t_us", "node", "origin", "seq")}
    return Events(**plain, kind=code_of[codes[rows]].astype(np.int64), sender=sender)


def _merged(log: About, datasets: About) -> About:
    """Return the metadata of the log, completed by that of its datasets."""
    names = ("protocol", "lifetime_us", "range_m", "stations", "skew_us")
    missing = {n: getattr(datasets, n) for n in names if getattr(log, n) is None}
    return msgspec.structs.replace(log, **missing)


def _names(about: About, events: Events) -> tuple[str, ...]:
    """Return a name per node number: that of the log, or the number."""
    highest = max(
        int(column.max(initial=-1)) for column in (events.node, events.origin, events.sender)
    )
    lowest = int(events.node.min(initial=0))
    if lowest < 0 or highest >= 1_000_000:
        raise InputError(
            f"the nodes of the log are numbered from {lowest} to {highest}",
            hint="`play` draws nodes that are numbered 0, 1, 2, ...",
        )
    named = [visible(name) for name in about.names]
    return tuple(named + [str(node) for node in range(len(named), highest + 1)])


def _presence(events: Events, nodes_count: int) -> tuple[Ints, list[str]]:
    """Return when nodes were present, for a log with events.

    A node is present from `join` or `recover` to `leave` or `crash`.
    """
    start_us, end_us = int(events.t_us.min()), int(events.t_us.max())
    rows = np.flatnonzero(np.isin(events.kind, (JOIN, LEAVE, CRASH, RECOVER)))
    begun: dict[int, int] = {}
    stays: list[tuple[int, int, int, int]] = []
    for row in rows.tolist():
        node, t_us, kind = int(events.node[row]), int(events.t_us[row]), int(events.kind[row])
        if kind in (JOIN, RECOVER):
            begun.setdefault(node, t_us)
        elif node in begun:
            stays.append((node, begun.pop(node), t_us, int(kind == CRASH)))
    stays += [(node, up_us, end_us, 0) for node, up_us in begun.items()]
    absent = set(range(nodes_count)) - {stay[0] for stay in stays}
    seen = absent & set(np.unique(events.node).tolist())
    notes = []
    if seen:
        stays += [(node, start_us, end_us, 0) for node in sorted(seen)]
        notes.append(
            f"the log does not record when {len(seen):,} nodes join and leave: "
            "their lines are as long as the run"
        )
    return np.array(sorted(stays), np.int64).reshape(-1, 4), notes


def _notes(events: Events, beside: Beside, details: Details | None, violations: int) -> list[str]:
    """Return what the page lacks, because it was not kept with the log."""
    notes = []
    if not (events.sender >= 0).any():
        notes.append("the log does not name senders: no arrows, no hand-overs")
    if beside.pasts is None:
        notes.append(
            "the causes that messages name were not kept: no causal past, no reason to wait"
        )
    if beside.contacts is None and details is None:
        notes.append("contacts were not kept with the log")
    if beside.movement is None and details is None:
        notes.append("places were not kept with the log: the map is a circle")
    if violations > PROOFS_MAX:
        notes.append(
            f"the page proves the first {PROOFS_MAX} of {violations:,} violations; "
            "`beforehand verify --explain` proves others"
        )
    return notes


def trace_run(trace: Trace, places: Positions | None, range_m: float | None, name: str) -> Run:
    """Return a mobility trace as a run without messages."""
    none = np.zeros(0, np.int64)
    rows = np.column_stack([trace.presence, np.zeros(len(trace.presence), np.int64)])
    return Run(
        name=name,
        title=name,
        names=tuple(visible(n) for n in trace.names),
        about=About(range_m=range_m),
        events=Events(*(none,) * 7),
        violations=Violations(*(none,) * 5),
        verdict="",
        reason="",
        presence=rows,
        contacts=trace.contacts,
        movement=None if places is None else Movement(*places.segments),
        notes=("this is a mobility trace: nodes and contacts, no messages",),
    )
