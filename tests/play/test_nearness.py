"""Contacts that follow from the places are derived in the page, and equal those of the log."""

from dataclasses import replace

import numpy as np
import pytest

from beforehand.events import JOIN, LEAVE, About
from beforehand.mobility.generators import waypoint
from beforehand.play.encode import encode
from beforehand.play.gather import gather_run
from beforehand.play.run import Movement
from tests.play.made_up import SECOND_US, write_log
from tests.play.node import ask_node, needs_node

RANGE_M, NODES = 60.0, 40
INSTANTS_MS = [0, 1, 59_999, 300_000, 444_444, 599_000]
PAIRS = f"""{INSTANTS_MS}.map((t) => {{ const out = [];
model.contacts.each(t, (a, b) => out.push(Math.min(a, b) * 1000 + Math.max(a, b)));
return out.sort((a, b) => a - b); }})"""


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    """Return places in a small area, and a run there with many more contacts than ways."""
    places = waypoint.generate(3, nodes=NODES, hours=1 / 6, width_m=150, height_m=100)
    contacts = places.contacts_within(RANGE_M).contacts
    rows = [(0, node, JOIN, -1, -1) for node in range(NODES)]
    rows += [(600 * SECOND_US, node, LEAVE, -1, -1) for node in range(NODES)]
    log = write_log(tmp_path_factory.mktemp("crowd") / "log.parquet", rows)
    movement = Movement(**places.segments._asdict())
    about = About(protocol="made", range_m=RANGE_M)
    run = replace(gather_run(log), contacts=contacts, movement=movement, about=about)
    assert len(contacts) > len(movement.node)
    return places, run


def pairs_at(contacts, t_ms):
    """Return the pairs whose contact lasts from 0.2 s before the instant to 0.2 s after it."""
    around = (contacts[:, 2] <= t_ms * 1000) & (contacts[:, 3] > t_ms * 1000)
    return {int(a * 1000 + b) for a, b in contacts[around][:, :2].tolist()}


def moved(contacts, by_us):
    return contacts + np.array([0, 0, by_us, -by_us])


@needs_node
def test_derived_contacts_are_those_of_the_log_at_every_instant(crowd, tmp_path):
    places, run = crowd
    head, body = encode(run)
    assert head["near_m"] == RANGE_M
    assert any("to half a metre" in note for note in head["notes"])
    least, most = (places.contacts_within(RANGE_M + by).contacts for by in (-0.5, 0.5))
    pairs, met = ask_node(tmp_path, head, body, f"[{PAIRS}, [...model.contacts.met(7)]]")
    for found, t_ms in zip(pairs, INSTANTS_MS, strict=True):
        assert len(found) == len(set(found)) > 50
        assert pairs_at(moved(least, 200_000), t_ms) <= set(found), t_ms
        assert set(found) <= pairs_at(moved(most, -200_000), t_ms), t_ms
    for peer, t_ms in met:
        pair = np.isin(most[:, 0], (7, peer)) & np.isin(most[:, 1], (7, peer))
        assert most[pair][:, 2].min() - 200_000 <= t_ms * 1000
        pair = np.isin(least[:, 0], (7, peer)) & np.isin(least[:, 1], (7, peer))
        assert t_ms * 1000 <= least[pair][:, 2].min(initial=2**62) + 200_000
    assert len(met) == NODES - 1


@needs_node
def test_contacts_that_a_range_does_not_explain_stay_those_of_the_log(crowd, tmp_path):
    _, run = crowd
    rows = run.contacts
    longer, shorter = rows.copy(), rows.copy()
    longest = int(np.argmax(rows[:, 3] - rows[:, 2]))
    early = int(np.argmin(rows[:, 3]))
    longer[early, 3] += 30 * SECOND_US
    shorter[longest, 3] -= 30 * SECOND_US
    for contacts in (longer, shorter, np.delete(rows, longest, axis=0)):
        assert encode(replace(run, contacts=contacts))[0]["near_m"] is None
    head, body = encode(replace(run, about=About(protocol="made")))
    assert head["near_m"] is None
    pairs, met = ask_node(tmp_path, head, body, f"[{PAIRS}, [...model.contacts.met(7)]]")
    for found, t_ms in zip(pairs, INSTANTS_MS, strict=True):
        assert set(found) == pairs_at(rows // [1, 1, 1000, 1000] * [1, 1, 1000, 1000], t_ms)
    assert len(met) == NODES - 1


@pytest.mark.parametrize("contacts", [np.zeros((0, 4), np.int64), None])
def test_a_run_without_contacts_derives_none(crowd, contacts):
    _, run = crowd
    assert encode(replace(run, contacts=contacts))[0]["near_m"] is None
