"""The frames that wait on a link of a node without flow control."""

from __future__ import annotations

from beforehand.runtime.queues.held_frames import HeldFrames, VCubeHeldFrames


def test_a_plain_link_postpones_nothing():
    assert not HeldFrames().must_wait(is_open=False)
    assert not HeldFrames().may_go_on(is_open=True)


def test_in_an_overlay_frames_wait_in_order_while_the_application_does_not_read():
    held = VCubeHeldFrames()
    assert not held.must_wait(is_open=True)
    assert held.must_wait(is_open=False)
    held.hold(b"one", now=5.0)
    held.hold(b"two", now=6.0)
    assert (held.held_since, held.held_bytes) == (5.0, 6)
    assert held.must_wait(is_open=True), "a later frame does not overtake what is held"
    assert not held.may_go_on(is_open=False)
    assert [held.next_held(), held.next_held()] == [b"one", b"two"]
    assert (held.held_since, held.held_bytes) == (None, 0)
    assert not held.must_wait(is_open=True)
