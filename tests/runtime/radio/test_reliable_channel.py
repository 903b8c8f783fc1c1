"""A reliable channel loses, duplicates and reorders no frame, wherever its links break."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beforehand.errors import InputError, RemoteError
from beforehand.runtime.radio import reliable_channel as wires
from beforehand.runtime.radio.reliable_channel import PART_BYTES, ReliableChannel


class Pair:
    """Two ends, and a link between them that breaks."""

    def __init__(self):
        self.got = {"a": [], "b": []}
        self.ends = {
            "a": ReliableChannel("b", 11, self.got["a"].append),
            "b": ReliableChannel("a", 22, self.got["b"].append),
        }
        self.under_way = {"a": [], "b": []}  # towards
        self.up()

    def up(self):
        for name, other in (("a", "b"), ("b", "a")):
            self.under_way[other].append(self.ends[name].on_link(True))

    def cut(self):
        """Drop all frames in transit."""
        for name in "ab":
            self.under_way[name].clear()
            assert self.ends[name].on_link(False) is None

    def send(self, name, most=None):
        other = "b" if name == "a" else "a"
        for count, part in enumerate(self.ends[name].next_parts()):
            self.under_way[other].append(part)
            if most is not None and count + 1 >= most:
                break
        if self.ends[name].owes_ack():
            self.under_way[other].append(self.ends[name].ack())

    def arrive(self, name, count=None):
        for data in self.under_way[name][:count]:
            self.ends[name].on_data(data)
        del self.under_way[name][:count]

    def settle(self):
        for _ in range(20):
            for name in "ab":
                self.arrive(name)
                self.send(name)


def test_frames_arrive_in_their_order_and_are_forgotten_when_they_are_acknowledged():
    pair = Pair()
    pair.ends["a"].add(b"one")
    pair.ends["a"].add(b"two")
    pair.ends["b"].add(b"three")
    pair.settle()
    assert pair.got == {"b": [b"one", b"two"], "a": [b"three"]}
    assert pair.ends["a"].kept_bytes == pair.ends["b"].kept_bytes == 0


def test_a_long_frame_travels_in_parts():
    pair = Pair()
    long = bytes(range(256)) * (PART_BYTES // 100)
    pair.ends["a"].add(long)
    pair.arrive("a")
    pair.arrive("b")
    pair.send("a", most=1)
    pair.arrive("b")
    pair.cut()
    assert pair.got["b"] == []
    pair.up()
    pair.settle()
    assert pair.got["b"] == [long]


ACTS = st.lists(
    st.tuples(
        st.sampled_from(["add", "send", "arrive", "cut"]),
        st.sampled_from("ab"),
        st.integers(0, 5),
    ),
    max_size=80,
)


@given(ACTS)
@settings(max_examples=300, deadline=None)
def test_link_breaks_neither_lose_duplicate_nor_reorder_frames(acts):
    pair = Pair()
    said = {"a": [], "b": []}
    for act, name, count in acts:
        if act == "add":
            said[name].append(b"%s%d" % (name.encode(), len(said[name])))
            pair.ends[name].add(said[name][-1])
        elif act == "send":
            pair.send(name, count)
        elif act == "arrive":
            pair.arrive(name, count)
        else:
            pair.cut()
            pair.up()
    pair.settle()
    assert pair.got == {"a": said["b"], "b": said["a"]}
    assert pair.ends["a"].kept_bytes == pair.ends["b"].kept_bytes == 0


def test_a_loss_of_channel_state_is_reported_to_both_ends():
    pair = Pair()
    pair.ends["a"].add(b"one")
    pair.settle()
    pair.cut()
    pair.ends["b"] = ReliableChannel("a", 33, pair.got["b"].append)
    pair.up()
    with pytest.raises(RemoteError, match="lost the state of the channel"):
        pair.arrive("a")
    with pytest.raises(InputError, match="knows an earlier incarnation of this one"):
        pair.arrive("b")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"nonsense", "not a record of a channel"),
        (wires._encode(wires.Part(1, True, b"x")), "not a hello"),
        (wires._encode(wires.Hello(22, 0, 3)), "parts of an unknown incarnation"),
    ],
)
def test_frames_that_no_station_sends_are_refused(data, problem):
    end = ReliableChannel("b", 11, pytest.fail)
    end.on_link(True)
    with pytest.raises(RemoteError, match=problem):
        end.on_data(data)


def test_parts_out_of_turn_and_claims_of_more_than_was_sent_are_refused():
    pair = Pair()
    pair.settle()
    with pytest.raises(RemoteError, match="out of order"):
        pair.ends["a"].on_data(wires._encode(wires.Part(2, True, b"x")))
    pair.ends["a"].add(b"not sent yet")
    with pytest.raises(RemoteError, match="were sent"):
        pair.ends["a"].on_data(wires._encode(wires.Ack(1)))


def test_a_station_that_is_away_for_too_long_is_dropped(monkeypatch):
    monkeypatch.setattr(wires, "WIRE_BYTES_MAX", 10)
    pair = Pair()
    pair.settle()
    end = pair.ends["a"]
    end.on_link(False)
    end.add(b"12345")
    assert not end.is_dropped
    end.add(b"123456")
    end.add(b"more")
    assert (end.is_dropped, end.kept_bytes) == (True, 0)
    with pytest.raises(RemoteError, match="away for too long"):
        end.on_data(pair.ends["b"].on_link(True))


def test_a_restarted_station_ended_the_tree():
    """The frames that waited for it filled its wired stations, which ended one after the other."""
    pair = Pair()
    pair.settle()
    end, restarted = pair.ends["a"], ReliableChannel("a", 77, [].append)
    end.on_link(False)
    with pytest.raises(RemoteError, match="restarted"):
        end.on_data(restarted.on_link(True))
    for _ in range(3):
        end.add(bytes(wires.WIRE_BYTES_MAX // 2 + 1))
    assert (end.is_dropped, end.kept_bytes) == (True, 0)
