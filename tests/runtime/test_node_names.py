"""A numbered core addressed by names answers like the core itself."""

from __future__ import annotations

import pytest

from beforehand.errors import LocalError, RemoteError
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.vcube.node import VCube
from beforehand.runtime.node_names import NamedCore

NAMES = ("ann", "bob", "cid")
SECOND = 1_000_000


def named(name, **options):
    options = {"keep_us": 3600 * SECOND, "durable": True, **options}
    return NamedCore(VCube(NAMES.index(name), 3, **options), NAMES)


def test_messages_frames_and_questions_go_by_names():
    ann, bob, out = named("ann"), named("bob"), Outbox()
    assert (ann.node, bob.node) == ("ann", "bob")
    first = ann.on_broadcast(0, b"one", out)
    second = ann.on_broadcast(0, b"two", out)
    assert (first, second) == (("ann", 1), ("ann", 2))
    assert [message.id for message in out.deliveries] == [first, second]
    frames = [frame for peer, frame in out.sends if peer == "bob"]
    assert {peer for peer, _ in out.sends} <= {"bob", "cid"}
    heard = Outbox()
    bob.on_message(1, "ann", frames[1], heard)
    assert heard.deliveries == []
    assert [message.id for message in heard.receives] == [second]
    fate = bob.explain(second)
    assert (fate.state, fate.missing) == ("waiting", (first,))
    bob.on_message(2, "ann", frames[0], heard)
    assert [(m.id, m.payload) for m in heard.deliveries] == [(first, b"one"), (second, b"two")]
    assert bob.explain(first).state == "delivered"
    assert bob.explain(("eve", 1)).state == "unknown"
    assert bob.counters.delivered == 2
    assert bob.gauges(2)["kept"] == 2


def test_saved_rows_are_those_of_the_core_and_suffice_to_continue(tmp_path):
    ann, out = named("ann"), Outbox()
    ann.on_broadcast(0, b"one", out)
    assert {table for table, *_ in out.saves} <= {table.name for table in ann.tables}
    rows = {table.name: {} for table in ann.tables}
    for table, key, value in out.saves:
        rows[table][key] = value
    again, out = named("ann"), Outbox()
    again.restore(5, rows, out)
    assert again.on_broadcast(6, b"two", out) == ("ann", 2)


def test_losses_are_reported_by_name():
    ann, out = named("ann"), Outbox()
    from beforehand.protocols.vcube.frames import Answer

    for up in (False, True):  # so that it is asked
        ann.on_link(0, "bob", up, out)
    ann.on_message(1, "bob", Answer((0, 2, 0)), out)
    assert out.losses == [("drop", ("bob", 1)), ("drop", ("bob", 2))]
    assert ann.explain(("bob", 2)).state == "missed"


def test_a_stranger_is_refused_as_an_origin_and_every_name_is_accepted_as_a_link():
    ann, out = named("ann"), Outbox()
    with pytest.raises(RemoteError, match="not a member: eve"):
        ann.on_message(1, "eve", None, out)
    ann.on_link(1, "eve", True, out)
    assert out == Outbox()


def test_effects_of_passing_time_are_kept_when_an_input_is_refused():
    ann, out = named("ann", keep_us=10), Outbox()
    ann.on_broadcast(0, b"one", out)
    out.clear()
    with pytest.raises(LocalError):
        ann.on_broadcast(100, b"two", out, lifetime_us=5)
    ann.on_broadcast(100, b"two", out)
    assert ("messages", (0, 1), None) in out.saves  # it was forgotten meanwhile
