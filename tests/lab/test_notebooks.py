"""The examples of docs/notebooks.md run as they stand, and what they return is right."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from beforehand.errors import InputError
from beforehand.lab import Spec, events_frame, make_trace, propagation, read_trace, simulate
from beforehand.sim.log import event_table, write_events

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "notebooks.md"
MINUTE = 60_000_000


@pytest.fixture(scope="module")
def chain():
    contacts = np.array([[0, 1, 0, 4 * MINUTE], [1, 2, 2 * MINUTE, 6 * MINUTE]])
    trace = make_trace(["ann", "bob", "cem"], contacts)
    return trace, simulate(trace, Spec("causal", 3))


def test_the_examples_of_the_page_run_one_after_the_other(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "contacts.txt").write_text("a b 0 600\nb c 100 900\nc d 500 1200\na d 700 800\n")
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    for block in blocks:
        exec(block, names)
    shown = capsys.readouterr().out
    assert len(blocks) == 6
    assert "('a', 'b', 'c', 'd') 4" in shown
    tree = names["tree"]
    assert len(tree) == 3
    assert tree["sender"].iloc[0] == names["first"]["origin"]


def test_names_are_joined_into_the_events(chain):
    trace, result = chain
    events = events_frame(trace, result)
    assert set(events["node"]) == {"ann", "bob", "cem"}
    joined = events[events["kind"] == "join"]
    assert joined["origin"].isna().all()
    received = events[events["kind"] == "receive"]
    assert received["sender"].isin(trace.names).all()
    assert events.loc[events["kind"] != "receive", "sender"].isna().all()
    # `cem` meets `bob` only.
    assert set(received.loc[received["node"] == "cem", "sender"]) == {"bob"}
    with pytest.raises(InputError, match="more nodes than the trace"):
        events_frame(make_trace(["x"], np.empty((0, 4))), result)


def test_a_message_spreads_along_the_chain_in_memory_and_on_disk(chain, tmp_path):
    trace, result = chain
    events = events_frame(trace, result)
    spoken = events[(events["kind"] == "broadcast") & (events["origin"] == "ann")].iloc[0]
    path = tmp_path / "run.parquet"
    log = event_table("r", result.columns, senders=result.senders, names=trace.names)
    write_events(log, path)
    for source in (events, path, str(path)):
        tree = propagation(source, "ann", int(spoken["seq"]))
        assert list(zip(tree["sender"], tree["node"], strict=True)) == [
            ("ann", "bob"),
            ("bob", "cem"),
        ]
        assert tree["t_s"].is_monotonic_increasing
    with pytest.raises(InputError, match="no message 99 of `ann`"):
        propagation(events, "ann", 99)
    write_events(log.drop_columns(["sender"]), path)
    with pytest.raises(InputError, match="does not name the senders"):
        propagation(path, "ann", int(spoken["seq"]))


def test_an_error_has_place_problem_and_cure(tmp_path):
    path = tmp_path / "met.txt"
    path.write_text("1 2 10 20\n1 2 40 30\n")
    with pytest.raises(InputError) as caught:
        read_trace(str(path))
    text = str(caught.value)
    assert "ends before it starts" in text
    assert f"{path}:2" in text
    assert "hint: " in text
