"""What waits on a link, and what goes out when."""

from __future__ import annotations

from beforehand.core.base import Message
from beforehand.core.frames import Announce, Behind, Data, Greeting, Push, Reached, Request
from beforehand.runtime.lanes import (
    JOINED_IDS_MAX,
    LATER_IDS_MAX,
    PUSHES_MAX,
    WINDOW_IDS,
    PacedLane,
)


def ids(origin, *seqs):
    return frozenset((origin, seq) for seq in seqs)


def out(lane):
    return [lane.next_out() for _ in range(len(lane.out)) if lane.out]


def test_own_news_goes_at_once_and_that_of_others_together():
    lane = PacedLane("ann")
    lane.put(Announce(1, ids("ann", 1) | ids("bob", 1)))
    lane.put(Announce(2, ids("bob", 2)))
    assert out(lane) == [Announce(1, ids("ann", 1))]
    assert lane.has_later
    lane.release()
    assert [frame.ids for frame in out(lane)] == [ids("bob", 1, 2)]
    assert not lane.has_later


def test_a_neighbour_is_not_told_what_it_has_told_meanwhile():
    lane = PacedLane("ann")
    lane.put(Announce(1, ids("bob", 1, 2, 3)))
    lane.on_frame(Announce(1, ids("bob", 1)), now=0)
    lane.on_frame(Data((Message(("bob", 2), (), b""),)), now=0)
    lane.release()
    assert [frame.ids for frame in out(lane)] == [ids("bob", 3)]
    lane.put(Announce(2, ids("bob", 4)))
    lane.on_frame(Announce(2, ids("bob", 4)), now=0)
    lane.release()
    assert out(lane) == []


def test_of_marks_the_last_goes_out_unless_the_neighbour_has_come_as_far():
    lane = PacedLane("ann")
    lane.put(Reached(ids("bob", 1) | ids("carol", 5)))
    lane.put(Reached(ids("bob", 7)))
    assert not lane.out
    assert lane.has_marks
    assert not lane.has_later
    lane.on_frame(Reached(ids("bob", 6) | ids("carol", 5) | ids("dave", 1)), now=0)
    lane.release()
    assert out(lane) == []
    lane.release_marks()
    assert out(lane) == [Reached(ids("bob", 7))]
    assert not lane.has_marks


def test_a_greeting_is_a_bundle_already():
    lane = PacedLane("ann")
    greeting = Announce(1, ids("bob", *range(LATER_IDS_MAX + 1)))
    lane.put(greeting)
    assert out(lane) == [greeting]


def test_announcements_side_by_side_go_out_as_one_up_to_the_size_of_a_frame():
    lane = PacedLane("ann")
    for index in range(5):
        lane.put(Announce(index, ids("ann", index)))
    lane.put(Request(0, ids("bob", 1)))
    lane.put(Announce(9, ids("ann", 9)))
    assert [frame.ids for frame in out(lane)] == [
        ids("ann", *range(5)),
        ids("bob", 1),
        ids("ann", 9),
    ]
    lane.put(Announce(1, ids("ann", *range(JOINED_IDS_MAX))))
    lane.put(Announce(2, ids("ann", -1)))
    assert [len(frame.ids) for frame in out(lane)] == [JOINED_IDS_MAX, 1]


def test_the_window_closes_with_what_is_asked_and_opens_with_what_comes_or_is_gone():
    lane = PacedLane("ann")
    asked = ids("bob", *range(WINDOW_IDS))
    news = Announce(1, ids("bob", -1))
    assert not lane.must_wait(news, is_open=True)
    assert lane.must_wait(news, is_open=False)
    lane.on_send(Request(0, asked), now=1)
    assert lane.must_wait(news, is_open=True)
    assert not lane.must_wait(Data(()), is_open=True), "what reduces it never waits"
    assert not lane.must_wait(Request(0, asked), is_open=False), "others are served"
    lane.hold(b"news", now=1)
    lane.on_frame(Data((Message(("bob", 1), (), b""),)), now=2)
    assert lane.may_go_on(is_open=True)
    assert lane.must_wait(news, is_open=True), "it does not overtake what is held"
    assert (lane.next_news(), lane.news_bytes) == (b"news", 0)
    lane.on_frame(Data((), ids("bob", 2)), now=3)
    assert (lane.asked, lane.progress_at) == (WINDOW_IDS - 2, 3)


def test_only_what_tells_of_nothing_unsaved_may_go_ahead():
    lane, unsaved = PacedLane("ann"), {("bob", 1)}
    message = Message(("bob", 1), (), b"")

    def is_saved(table, told):
        return unsaved.isdisjoint(told)

    assert lane.is_safe(Request(0, ids("bob", 1)), is_saved)
    assert not lane.is_safe(Announce(1, ids("bob", 1, 2)), is_saved)
    assert not lane.is_safe(Data((message,)), is_saved)
    assert not lane.is_safe(Reached(ids("bob", 1)), is_saved)
    assert lane.is_safe(Behind(ids("bob", 1)), is_saved)
    assert lane.is_safe(Greeting(ids("bob", 1)), is_saved)
    assert lane.is_safe(Announce(1, ids("bob", 2)), is_saved)
    unsaved.clear()
    assert lane.is_safe(Data((message,)), is_saved)


def pushed(*seqs):
    return Push(tuple(Message(("ann", seq), (), bytes(1000)) for seq in seqs))


def test_who_is_behind_is_told_of_messages_and_not_sent_them():
    lane = PacedLane("ann")
    for seq in range(PUSHES_MAX):
        lane.put(pushed(seq))
    lane.put(pushed(100, 101))
    lane.put(pushed(102))
    frames = out(lane)
    assert all(isinstance(frame, Push) for frame in frames[:-1])
    assert frames[-1].ids == ids("ann", 100, 101, 102)


def test_of_a_push_that_must_wait_only_the_ids_are_kept():
    lane = PacedLane("bob")
    assert not lane.must_wait(pushed(1), is_open=True)
    assert lane.must_wait(pushed(1), is_open=False)
    assert lane.as_news(pushed(1, 2)).ids == ids("ann", 1, 2)
    assert lane.as_news(news := Announce(3, ids("ann", 1))) is news


def test_a_push_is_no_answer_to_what_was_asked_and_tells_what_a_neighbour_has():
    lane = PacedLane("bob")
    lane.on_send(Request(0, ids("ann", 1, 2)), now=1)
    lane.put(Announce(1, ids("ann", 7)))
    lane.on_frame(pushed(7), now=2)
    assert lane.asked == 2
    lane.release()
    assert out(lane) == []
    assert not lane.is_safe(pushed(1), lambda _, told: ("ann", 1) not in told)
