"""What waits on a link of a node without flow control."""

from __future__ import annotations

from beforehand.runtime.queues.held_frames import CubeLane, Lane


def test_a_plain_link_postpones_nothing():
    assert not Lane().must_wait(is_open=False)
    assert not Lane().may_go_on(is_open=True)


def test_in_an_overlay_frames_wait_while_the_program_does_not_read_and_keep_their_order():
    lane = CubeLane()
    assert not lane.must_wait(is_open=True)
    assert lane.must_wait(is_open=False)
    lane.hold(b"one", now=5.0)
    lane.hold(b"two", now=6.0)
    assert (lane.held_since, lane.news_bytes) == (5.0, 6)
    assert lane.must_wait(is_open=True), "a later frame does not overtake what is held"
    assert not lane.may_go_on(is_open=False)
    assert [lane.next_news(), lane.next_news()] == [b"one", b"two"]
    assert (lane.held_since, lane.news_bytes) == (None, 0)
    assert not lane.must_wait(is_open=True)
