"""Small runs of every kind that a page plays."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from beforehand.events import KINDS
from beforehand.mobility.generators.crowd import generate
from beforehand.protocols.observer.observer import cbd
from beforehand.sim.cells.spec import CellsSpec, Failure, Walk
from beforehand.sim.cells.track import record_run
from beforehand.sim.contacts.run import Spec, run_one
from beforehand.sim.drift import Drift
from beforehand.sim.drift_record import record_deliveries
from beforehand.sim.overlay.record import write_run
from beforehand.sim.overlay.twin import run_compiled
from beforehand.sim.overlay.world import OverlaySpec
from beforehand.sim.radio import Radio
from tests.play.made_up import HOSTILE, SECOND_US
from tests.verify.test_node_logs import split, write

CELLS = CellsSpec(
    stations=7,
    hosts=42,
    rate_per_s=8.0,
    walk=Walk(speed_m_s=6.0),
    radio=Radio(bits_per_s=1_000_000, answers_draw=True),
    placement="area",
    duration_us=24 * SECOND_US,
    settle_us=6 * SECOND_US,
    failures=(Failure(12 * SECOND_US, 4 * SECOND_US),),
)


def make_cells(folder: Path, system: str = "was", queue_max: int = 100) -> Path:
    """Record a run of cells, and return its log."""
    import msgspec

    radio = msgspec.structs.replace(CELLS.radio, queue_max=queue_max)
    changes = {"system": system, "radio": radio} | ({} if system == "was" else {"failures": ()})
    changes |= {"walk": Walk(speed_m_s=0.0)} if system == "tcp_flooding" else {}
    folder.mkdir(exist_ok=True)
    record_run(system, msgspec.structs.replace(CELLS, **changes), 1, folder)
    return folder / "events.parquet"


def make_vcube(folder: Path, nodes: int = 64) -> Path:
    """Record a run of VCube, and return its log."""
    spec = OverlaySpec(nodes, messages=1 if nodes > 16 else 3)
    folder.mkdir(exist_ok=True)
    write_run("vcube", run_compiled(spec, 1), folder)
    return folder / "events.parquet"


def make_observed(folder: Path, messages: int = 3000) -> Path:
    """Record what an observer with a short wait delivers, and return the file."""
    path = folder / "ordered.parquet"
    record_deliveries(Drift(messages=messages, processes=6, seed=2), cbd(40), path)
    return path


def make_nodes(folder: Path, *, gap: bool = False) -> Path:
    """Write the logs of real nodes, with wrong clocks and hostile names; return their folder.

    gap: leave the middle events of one node out.
    """
    shutil.rmtree(folder, ignore_errors=True)
    columns = run_one(generate(3, nodes_mean=16, hours=0.2), Spec("causal", seed=3)).columns
    names = [f"node-{i}" for i in range(int(columns["node"].max()) + 1)]
    names[0], names[1] = HOSTILE[1], HOSTILE[4]
    kinds = ("broadcast", "receive", "deliver")
    rows = [
        (int(node), KINDS[kind], int(origin), int(seq))
        for node, kind, origin, seq in zip(
            *(columns[name] for name in ("node", "kind", "origin", "seq")), strict=True
        )
        if KINDS[kind] in kinds
    ]
    for at, (name, line) in enumerate(split(rows, names).items()):
        middle = len(line) // 2
        if gap and at == 3:
            write(folder / f"n{at}", name, line[:middle])
            write(folder / f"n{at}", name, line[middle + 3 :], first=middle + 3)
        else:
            write(folder / f"n{at}", name, line)
    return folder


CLOCK_HOSTS = ("alpha", "beta", "<b>bold</b>", "delta")


def make_clocks(path: Path, *, events: int = 400, damage: bool = False) -> Path:
    """Write a log of vector clocks. damage: one clock goes back, and one event is missing."""
    rng = random.Random(4)
    clocks: dict[str, dict[str, int]] = {host: {} for host in CLOCK_HOSTS}
    lines, under_way = [], []
    for at in range(events):
        host = rng.choice(CLOCK_HOSTS)
        clock = clocks[host]
        found = [one for one in under_way if one[0] != host]
        if found and rng.random() < 0.45:
            sent = rng.choice(found)
            under_way.remove(sent)
            for other, count in sent[1].items():
                clock[other] = max(clock.get(other, 0), count)
            text = f"receives {sent[2]} from {sent[0]}"
        else:
            text = f"m{at}" if rng.random() < 0.7 else "works"
        clock[host] = clock.get(host, 0) + 1
        if text.startswith("m"):
            under_way.append((host, dict(clock), text))
        lines.append((host, dict(clock), text))
    if damage:
        host, clock, text = lines[events // 2]
        other = next(name for name in clock if name != host)
        lines[events // 2] = (host, {**clock, other: 1}, text)
        del lines[events // 4]
    import json

    path.write_text("".join(f"{host} {json.dumps(c)}\n{text}\n" for host, c, text in lines))
    return path
