"""A TCP connection end by end, and two of them together."""

import pytest

from beforehand.protocols.contract.base import CANCEL, Message
from beforehand.protocols.contract.outbox import Outbox
from beforehand.protocols.mobile.tcp_flooding.connection import ACK, RESEND, Connection, Tcp
from beforehand.protocols.mobile.tcp_flooding.frames import Segment

S, H = 1, 7
LONG = bytes(100)


class End:
    """The station's end, with the effects of its last step."""

    def __init__(self, **tcp):
        self.core = Connection(S, S, H, 1, Tcp(**tcp))
        self.out = Outbox()
        self.count = 0

    def offer(self, count, now_us=0, payload=LONG):
        """The numbers that are sent, segment by segment."""
        for _ in range(count):
            self.core.offer(message(self.count, payload))
            self.count += 1
        self.out.clear()
        self.core.push(now_us, self.out)
        return self.sent()

    def get(self, first=0, ack=0, count=0, now_us=0):
        self.out.clear()
        messages = tuple(message(first + at) for at in range(count))
        segment = Segment(S, H, 1, first, ack, messages)
        self.taken = [m.seq for m in self.core.on_segment(now_us, segment, self.out)]
        return self.sent()

    def fire(self, kind, now_us=0):
        self.out.clear()
        self.core.on_timer(now_us, (kind, H), self.out)
        return self.sent()

    def sent(self):
        return [[m.seq for m in frame.messages] for _, frame in self.out.sends]

    def acks(self):
        return [frame.ack for _, frame in self.out.sends]

    def due(self, kind):
        return [due_us for timer, due_us in self.out.timers if timer == (kind, H)][-1:]


def message(seq, payload=LONG):
    return Message((9, seq), (), payload)


def test_data_is_sent_at_once_if_nothing_is_in_flight():
    end = End()
    assert end.offer(1) == [[0]]
    assert end.out.sends == [(H, Segment(S, H, 1, 0, 0, (message(0),)))]
    assert end.due(RESEND) == [200_000]


def test_waiting_messages_share_segments_as_far_as_they_fit():
    end = End(window_start=46)
    assert end.offer(9) == [[0, 1, 2, 3], [4, 5, 6, 7]]  # 4 * 108 <= 536 bytes
    assert end.get(ack=8) == [[8]]


def test_a_message_longer_than_a_segment_goes_alone():
    end = End()
    assert end.offer(2, payload=bytes(600)) == [[0]]
    assert end.get(ack=1) == [[1]]


def test_small_data_waits_while_a_segment_is_in_flight():
    end = End()
    end.offer(1)
    assert end.offer(1) == []
    assert end.get(ack=1) == [[1]]


def test_slow_start_doubles_the_window_with_each_round():
    end = End(window_start=1, segment_bytes=1)
    assert end.offer(20) == [[0]]
    assert end.get(ack=1) == [[1], [2]]
    assert end.get(ack=3) == [[3], [4], [5], [6]]


def test_no_more_than_the_window_is_in_flight():
    end = End(window_start=100, segment_bytes=1)
    assert len(end.offer(60)) == 46
    assert end.get(ack=1) == [[46]]


def test_the_timeout_doubles_with_every_attempt_and_progress_resets_it():
    end = End()
    end.offer(1)
    dues_us = []
    for _ in range(3):
        assert end.fire(RESEND) == [[0]]
        dues_us += end.due(RESEND)
    assert dues_us == [400_000, 800_000, 1_600_000]
    end.core.offer(message(1))
    assert end.get(ack=1) == [[1]]
    assert end.due(RESEND) == [200_000]


def test_the_timeout_has_an_upper_bound():
    end = End(timeout_us_max=500_000)
    end.offer(1)
    for _ in range(4):
        end.fire(RESEND)
    assert end.due(RESEND) == [500_000]


def test_a_timeout_goes_back_and_starts_slowly():
    end = End(window_start=2, segment_bytes=1)
    end.offer(20)
    end.get(ack=2)
    end.get(ack=6)
    assert end.fire(RESEND) == [[6], [7]]


def test_three_duplicate_acknowledgements_send_the_first_segment_again_without_a_timeout():
    end = End(window_start=8, segment_bytes=1)
    end.offer(8)
    assert [end.get(ack=0) for _ in range(3)] == [[], [], [[0]]]
    assert end.get(ack=0) == []


def test_after_a_fast_retransmission_the_window_is_half_of_what_was_in_flight():
    end = End(window_start=8, segment_bytes=1)
    end.offer(40)
    for _ in range(3):
        end.get(ack=0)
    assert len(end.get(ack=8)) == 4


def test_acknowledgements_that_bring_data_or_nothing_in_flight_are_no_duplicates():
    end = End(window_start=8, segment_bytes=1)
    end.offer(8)
    for at in range(5):
        assert [0] not in end.get(first=at, ack=0, count=1)
    idle = End()
    assert [idle.get(ack=0) for _ in range(5)] == [[]] * 5


def test_acknowledged_data_is_forgotten_and_its_timer_cancelled():
    end = End()
    end.offer(1)
    end.get(ack=1)
    assert end.due(RESEND) == [CANCEL]
    assert end.core.gauges() == (0, 0)
    assert end.fire(RESEND) == []


def test_an_acknowledgement_of_unsent_data_is_ignored():
    end = End()
    end.offer(1)
    end.get(ack=5)
    assert end.core.gauges() == (1, 0)


def test_one_segment_is_acknowledged_after_a_delay_and_the_second_at_once():
    end = End()
    assert end.get(first=0, count=1) == []
    assert end.due(ACK) == [200_000]
    assert end.get(ack=0, now_us=50_000) == []  # a plain acknowledgement postpones nothing
    assert end.due(ACK) == []
    assert end.get(first=1, count=1) == [[]]
    assert end.acks() == [2]
    assert end.fire(ACK) == []
    end.get(first=2, count=1)
    assert (end.fire(ACK), end.acks()) == ([[]], [3])


def test_a_gap_is_acknowledged_at_once_and_again_for_every_segment_behind_it():
    end = End()
    for first in (1, 2):
        assert end.get(first=first, count=1) == [[]]
        assert (end.acks(), end.taken) == ([0], [])
    assert end.get(first=0, count=1) == [[]]
    assert (end.acks(), end.taken) == ([3], [0, 1, 2])


def test_a_duplicate_segment_is_acknowledged_at_once_and_discarded():
    end = End()
    end.get(first=0, count=2)
    assert end.get(first=0, count=2) == [[]]
    assert (end.taken, end.acks()) == ([], [2])


def test_data_carries_the_acknowledgement_that_is_owed():
    end = End()
    end.get(first=0, count=1)
    assert end.offer(1) == [[0]]
    assert (end.acks(), end.due(ACK)) == ([1], [CANCEL])
    assert end.fire(ACK) == []


def test_sent_data_is_unsure_until_it_is_acknowledged():
    end = End(window_start=1)
    end.offer(3)
    seqs = [[m.seq for m in part] for part in (end.core.unsure(), end.core.unsent())]
    assert seqs == [[0], [1, 2]]


@pytest.mark.parametrize("lost", [{1}, {1, 2, 3}, {2, 9}, set(range(0, 40, 3))])
def test_data_arrives_in_order_under_any_loss(lost):
    """`lost`: which of all segments, in the order in which they are sent."""
    ends = {S: Connection(S, S, H, 1, Tcp()), H: Connection(H, S, H, 1, Tcp())}
    for seq in range(60):
        ends[S].offer(message(seq))
    timers, flights, taken, count, now_us = {}, [], [], 0, 0
    out = Outbox()
    ends[S].push(0, out)
    actor = S
    while True:
        for peer, frame in out.sends:
            if count not in lost:
                flights.append((peer, frame))
            count += 1
        timers |= {(actor, timer): due_us for timer, due_us in out.timers}
        timers = {key: due_us for key, due_us in timers.items() if due_us is not CANCEL}
        out.clear()
        if flights:
            actor, frame = flights.pop(0)
            taken += [m.seq for m in ends[actor].on_segment(now_us, frame, out)]
        elif timers:
            key = min(timers, key=timers.get)
            actor, now_us = key[0], timers.pop(key)
            ends[actor].on_timer(now_us, key[1], out)
        else:
            break
    assert taken == list(range(60))
    assert ends[S].gauges() == (0, 0)
