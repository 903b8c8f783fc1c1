"""The model of the page answers as the log says, in Node."""

import numpy as np
import pytest

from beforehand.errors import InputError
from beforehand.events import (
    BROADCAST,
    CRASH,
    DELIVER,
    DROP,
    EXPIRE,
    JOIN,
    LEAVE,
    RECEIVE,
    RECOVER,
    About,
)
from beforehand.play.encode import encode
from beforehand.play.gather import gather_run
from beforehand.play.restrict import restrict
from beforehand.play.run import NO_RECEPTION
from beforehand.sim.log import pasts_table, write_events
from tests.play.made_up import HOSTILE, SECOND_US, late_log, write_log
from tests.play.node import ask_model, needs_node

pytestmark = needs_node
NEVER = 0x7FFFFFFF


def chain_log(folder, *, with_pasts=True, about=None):
    """Write a log in which node 2 waits for 0:1, the cause of 1:1, from 4 s to 6 s."""
    rows = [
        *((0, node, JOIN, -1, -1) for node in range(3)),
        (1, 0, BROADCAST, 0, 1),
        (2, 1, RECEIVE, 0, 1),
        (2, 1, DELIVER, 0, 1),
        (3, 1, BROADCAST, 1, 1),
        (4, 2, RECEIVE, 1, 1),
        (6, 2, RECEIVE, 0, 1),
        (6, 2, DELIVER, 0, 1),
        (6, 2, DELIVER, 1, 1),
        (7, 2, RECEIVE, 1, 1),
        (8, 1, CRASH, -1, -1),
        (9, 1, RECOVER, -1, -1),
        (10, 1, EXPIRE, 0, 1),
        (10, 2, DROP, 1, 1),
    ]
    rows = [(t * SECOND_US, *rest) for t, *rest in rows]
    path = write_log(
        folder / "chain.parquet",
        rows,
        ("a", "b", "c"),
        senders=np.array([0, 1, 0, 1], np.int32),
        about=about,
    )
    if with_pasts:
        write_events(pasts_table(np.array([[1, 1, 0, 1]])), folder / "chain.pasts.parquet")
    return path


def test_a_message_waits_for_the_cause_that_has_not_come(tmp_path):
    run = gather_run(chain_log(tmp_path))
    assert ask_model(tmp_path, run, "model.missing(2, 1, 5000)") == [{"cause": 0, "isHere": False}]
    assert ask_model(tmp_path, run, "model.roots(2, 1, 5000)") == [0]
    assert ask_model(tmp_path, run, "model.missing(2, 1, 6000)") == []
    assert ask_model(tmp_path, run, "[...model.spread(1).done]") == [NEVER, 3000, 6000]
    assert ask_model(tmp_path, run, "[...model.spread(0).from]") == [-1, 0, 0]
    assert ask_model(tmp_path, run, "[model.cone(0).future, model.cone(1).past]") == [1, 1]


def test_a_message_received_again_does_not_wait_again(tmp_path):
    run = gather_run(chain_log(tmp_path))
    waiting = "[4500, 5999, 6000, 7500].map((t) => model.waitingAt(2, t).length)"
    assert ask_model(tmp_path, run, waiting) == [1, 1, 0, 0]
    assert ask_model(tmp_path, run, "[...model.again].length") == 1


def test_losses_and_crashes_are_on_the_page(tmp_path):
    run = gather_run(chain_log(tmp_path))
    assert ask_model(tmp_path, run, "[[...model.lost.node], [...model.lost.kind]]") == [
        [1, 2],
        [0, 1],
    ]
    assert ask_model(tmp_path, run, "[...model.stays.crashed]") == [0, 1, 0, 0]
    assert ask_model(tmp_path, run, "[7999, 8000, 9000].map((t) => model.isPresent(1, t))") == [
        True,
        False,
        True,
    ]


def test_unknown_senders_and_causes_are_noted_on_the_page_and_not_guessed(tmp_path):
    log = late_log(tmp_path / "late.parquet")
    rows = gather_run(log)
    assert any("causes" in note for note in rows.notes)
    bare = write_log(tmp_path / "bare.parquet", [(0, 0, BROADCAST, 0, 1), (9, 1, RECEIVE, 0, 1)])
    run = gather_run(bare)
    assert any("senders" in note for note in run.notes)
    assert any("join and leave" in note for note in run.notes)
    assert ask_model(tmp_path, run, "[...model.recSender]") == [-1]
    assert ask_model(tmp_path, run, "model.about.has_senders") is False
    assert ask_model(tmp_path, run, "model.hasPast") is False


def test_a_delivery_without_reception_is_shown_as_one(tmp_path):
    rows = [(0, 0, BROADCAST, 0, 1), (5000, 1, DELIVER, 0, 1)]
    run = gather_run(write_log(tmp_path / "log.parquet", rows))
    assert ask_model(tmp_path, run, "[...model.recSender, ...model.recEnd]") == [NO_RECEPTION, 5]


def test_a_message_without_a_broadcast_is_named_by_origin_and_seq(tmp_path):
    run = gather_run(late_log(tmp_path / "late.parquet"))
    assert ask_model(tmp_path, run, "[model.messages, model.spoken]") == [3, 2]
    assert ask_model(tmp_path, run, "model.title(2)").endswith(":99")


def test_sequence_numbers_of_63_bits_stay_exact(tmp_path):
    wide = 2**62 + 3
    run = gather_run(write_log(tmp_path / "log.parquet", [(0, 0, BROADCAST, 0, wide)]))
    assert ask_model(tmp_path, run, "model.seqText(0)") == str(wide)


def test_hostile_names_arrive_unchanged_but_for_control_characters(tmp_path):
    rows = [(0, node, JOIN, -1, -1) for node in range(len(HOSTILE))]
    run = gather_run(write_log(tmp_path / "log.parquet", rows, HOSTILE))
    names = ask_model(tmp_path, run, "model.names")
    assert names[0] == HOSTILE[0]
    assert "\u202e" not in names[1]
    assert names[2] == HOSTILE[2]


def test_one_node_without_messages_is_a_run(tmp_path):
    rows = [(0, 0, JOIN, -1, -1), (5 * SECOND_US, 0, LEAVE, -1, -1)]
    run = gather_run(write_log(tmp_path / "log.parquet", rows))
    assert ask_model(tmp_path, run, "[model.messages, model.receptions, model.length]") == [
        0,
        0,
        5000,
    ]


def test_a_run_of_more_than_24_days_is_refused_with_a_hint(tmp_path):
    rows = [(0, 0, JOIN, -1, -1), (2**31 * 1000, 0, LEAVE, -1, -1)]
    run = gather_run(write_log(tmp_path / "log.parquet", rows))
    with pytest.raises(InputError, match="24") as refused:
        encode(run)
    assert "--from" in refused.value.hint
    part = restrict(run, (0, 10**9), None)
    assert ask_model(tmp_path, part, "model.length") == 1_000_000


def test_a_part_of_a_run_keeps_the_broadcasts_of_what_it_shows(tmp_path):
    run = restrict(gather_run(chain_log(tmp_path)), (5 * SECOND_US, 8 * SECOND_US), None)
    assert ask_model(tmp_path, run, "model.spoken") == 2
    assert ask_model(tmp_path, run, "model.waitingAt(2, 4000 + 500).length") == 1
    assert any("part" in note for note in run.notes)
    only = restrict(gather_run(chain_log(tmp_path)), None, "b")
    assert ask_model(tmp_path, only, "[...model.recNode]") == [1]
    with pytest.raises(InputError, match="no node is named"):
        restrict(gather_run(chain_log(tmp_path)), None, "bb")


def test_lifetimes_come_from_deadlines_and_only_from_such(tmp_path):
    at = 3 * SECOND_US
    rows = [(at, 0, BROADCAST, 0, at + 60 * SECOND_US)]
    about = About(protocol="delta", lifetime_us=60 * SECOND_US)
    run = gather_run(write_log(tmp_path / "log.parquet", rows, about=about))
    assert ask_model(tmp_path, run, "model.deadline(0)") == 60_000
    rows = [(at, 0, BROADCAST, 0, 1)]
    run = gather_run(write_log(tmp_path / "log.parquet", rows, about=about))
    assert ask_model(tmp_path, run, "model.deadline(0)") == NEVER
