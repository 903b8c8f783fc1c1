"""The channel against tables that another simulator measured, which stay outside the repository.

Both sides are noisy: the tables are one seed each. Ours is the mean over some seeds, and the
deviation from one of our seeds to another says what one seed of theirs is worth.
"""

from __future__ import annotations

import csv
import logging
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import pytest

from beforehand.sim.radio import Radio
from tests.conftest import REPO
from tests.sim.radio_play import Traffic
from tests.sim.radio_traffic import (
    SECOND_US,
    Losses,
    backlog,
    everybody,
    in_order,
    measure,
    periodic,
    placed,
    poisson,
)

# Of each mode of the tables: the radio, bytes of an application frame, bytes of an ack.
MODES = {
    "e1": (Radio("ofdm", 6_000_000), 1008, 552),
    "e1cw15": (Radio("ofdm", 6_000_000, cw=15), 1008, 552),
    "b1": (Radio("dsss", 1_000_000, capture=True), 148, 72),
    "g24": (Radio("ofdm", 24_000_000, cw=15), 148, 72),
}
CLOSE = 0.05
NOISY_BELOW = 0.01
Row = dict[str, str]
LOG = logging.getLogger(__name__)


both_ways = pytest.mark.parametrize("answers_draw", [False, True])
"""As the tables of docs/radio.md were made, and as the world of cells has its radios."""


def radio_of(mode: str, answers_draw: bool) -> tuple[Radio, int, int]:
    radio, app_bytes, ack_bytes = MODES[mode]
    return msgspec.structs.replace(radio, answers_draw=answers_draw), app_bytes, ack_bytes


@pytest.fixture(scope="session")
def reference() -> Path:
    folder = REPO.parent / "shared" / "reference" / "wireless"
    if not folder.is_dir():
        pytest.skip("no reference here: it is expected in `../shared/reference/wireless`")
    return folder


def read(path: Path) -> list[Row]:
    with path.open() as lines:
        return list(csv.DictReader(line for line in lines if not line.startswith("#")))


class Difference(NamedTuple):
    """One row of a table: `pytest --log-cli-level=INFO` shows them all."""

    row: str
    theirs: float
    ours: float
    error: float
    """The standard error of theirs."""

    @property
    def deviations(self) -> float:
        return (self.ours - self.theirs) / self.error

    def is_close(self, deviations_max: float) -> bool:
        is_near = abs(self.ours - self.theirs) <= CLOSE * self.theirs
        return is_near or abs(self.deviations) <= deviations_max


def differ(row: str, theirs: float, ours: float, error: float) -> Difference:
    found = Difference(row, theirs, ours, error)
    relative = f"{ours / theirs - 1:+.1%}" if theirs else "-"
    LOG.info("| %s | %.4f | %.4f | %s | %+.1f |", row, theirs, ours, relative, found.deviations)
    return found


def groups(rows: list[Row], *names: str) -> dict[tuple[str, ...], list[Row]]:
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


def once_per_sender(rows: list[Row]) -> tuple[float, float]:
    """The loss and its standard error: what one receiver loses, all lose, and they lose in pairs.

    One row for each class of senders, whatever receivers it has rows of.
    """
    first = {row["class"] if "n_nodes" in row else row["receivers"]: row for row in rows}
    sent = [int(row["frames_tx" if "n_nodes" in row else "rx_expected"]) for row in first.values()]
    losses = [float(row["loss"]) for row in first.values()]
    loss = float(np.average(losses, weights=sent))
    return loss, float(np.sqrt(2 * loss * (1 - loss) / sum(sent)))


@both_ways
def test_saturated_senders_collide_as_often_as_in_the_reference(reference, answers_draw):
    tables = groups(read(reference / "saturated.csv"), "mode", "n_nodes")
    found = []
    for (mode, nodes), rows in tables.items():
        radio, app_bytes, _ = radio_of(mode, answers_draw)
        losses = Losses()
        seconds = 20 if int(nodes) > 5 else 160  # few senders rarely collide
        requests = backlog(int(nodes), 450 * seconds, app_bytes)
        traffic = Traffic(everybody(int(nodes)), requests, seconds * SECOND_US)
        measure(losses, radio, traffic, seed=1)
        theirs, error = once_per_sender(rows)
        found.append(differ(f"saturated {mode}, {nodes} nodes", theirs, losses.total(), error))
    assert all(row.is_close(2) for row in found)


@both_ways
def test_a_hidden_pair_collides_as_often_as_in_the_reference(reference, answers_draw):
    tables = groups(read(reference / "hidden_pair.csv"), "mode", "sta_rate")
    found = []
    until_us = 150 * SECOND_US
    for (mode, rate), rows in tables.items():
        radio, app_bytes, _ = radio_of(mode, answers_draw)
        losses = Losses()
        for seed in range(6):
            draws = np.random.default_rng(seed)
            parts = (poisson(draws, node, app_bytes, float(rate), until_us) for node in (0, 1))
            in_range = placed([(0, 0), (200, 0), (100, 0)])
            measure(losses, radio, Traffic(in_range, in_order(*parts), until_us), seed=seed)
        theirs, error = once_per_sender(rows)
        found.append(differ(f"hidden {mode}, {rate}/s", theirs, losses.total(), error))
    assert all(row.is_close(2) for row in found)


def compare(name: str, rows: list[Row], losses: Losses) -> list[Difference]:
    found = []
    for row in rows:
        key = (row["class"], row["receivers"])
        theirs, ours = float(row["loss"]), losses.loss(key)
        # Where next to nothing is lost, our few seeds may show no spread: then the chance that two
        # more frames meet is what one seed is worth.
        meeting = 2 / int(row["frames_tx"])
        error = max(losses.spread(key), meeting if ours < NOISY_BELOW else 0)
        found.append(differ(f"{name} {' to '.join(key)}", theirs, ours, error))
    return found


@pytest.mark.parametrize(
    ("answers_draw", "misses"),
    [
        (False, []),
        pytest.param(True, ["sync b1, 40 hosts, jitter 0.1 s,"], marks=pytest.mark.slow),
    ],
)
def test_aligned_ack_timers_lose_as_much_as_in_the_reference(reference, answers_draw, misses):
    found = []
    for (mode, hosts, jitter_s), rows in groups(
        read(reference / "sync.csv"), "mode", "K", "ack_jitter_s"
    ).items():
        radio, app_bytes, ack_bytes = radio_of(mode, answers_draw)
        losses = Losses()
        until_us = 60 * SECOND_US
        timer = {"size": ack_bytes, "phase_us": 0, "period_us": 500_000, "until_us": until_us}
        for seed in range(20):
            draws = np.random.default_rng(seed)
            acks = (
                periodic(draws, node=host, jitter_us=round(float(jitter_s) * SECOND_US), **timer)
                for host in range(1, int(hosts) + 1)
            )
            requests = in_order(poisson(draws, 0, app_bytes, 20, until_us), *acks)
            traffic = Traffic(everybody(int(hosts) + 1), requests, until_us)
            measure(losses, radio, traffic, seed=seed, ack_bytes=ack_bytes)
        acks_only = [row for row in rows if row["receivers"] == "own_station"]
        found += compare(f"sync {mode}, {hosts} hosts, jitter {jitter_s} s,", acks_only, losses)
    missed = [row.row for row in found if not row.is_close(3)]
    assert missed == [f"{row} host_ack to own_station" for row in misses]


@pytest.mark.slow
@pytest.mark.parametrize("table", ["e1_thr4", "b1_native", "g24_native"])
def test_one_cell_loses_as_much_as_in_the_reference(reference, table):
    found = []
    rows = read(reference / f"onecell_{table}_R120.csv")
    for (mode, hosts, rate), some in groups(rows, "mode", "K", "sta_rate").items():
        radio, app_bytes, ack_bytes = MODES[mode]
        topology = np.loadtxt(reference / "topo" / f"onep_{hosts}_120_{rate}_1.txt")
        losses = Losses()
        for seed in range(10):
            requests = one_cell(topology, app_bytes, ack_bytes, 40 * SECOND_US, seed)
            traffic = Traffic(placed(topology[:, 2:4].tolist()), requests, 40 * SECOND_US)
            measure(losses, radio, traffic, seed=seed, ack_bytes=ack_bytes)
        found += compare(f"cell {mode}, {hosts} hosts, {rate}/s,", some, losses)
    deviations = np.array([row.deviations for row in found])
    # As noise is: two rows in three within one deviation, hardly any beyond three.
    assert np.mean(np.abs(deviations) > 2) < 0.1
    assert np.abs(deviations).max() < 4
    assert abs(deviations.mean()) < 0.5


def one_cell(
    topology: np.ndarray, app_bytes: int, ack_bytes: int, until_us: int, seed: int
) -> np.ndarray:
    """Poisson frames of everybody, and the acks of hosts with their own phases."""
    draws = np.random.default_rng(seed)
    parts = []
    for node, row in enumerate(topology):
        parts.append(poisson(draws, node, app_bytes, row[5], until_us))
        if row[6]:
            period_us, jitter_us, phase_us = (round(s * SECOND_US) for s in row[6:9].tolist())
            timer = {"period_us": period_us, "jitter_us": jitter_us, "phase_us": phase_us}
            parts.append(periodic(draws, node=node, size=ack_bytes, until_us=until_us, **timer))
    return in_order(*parts)
