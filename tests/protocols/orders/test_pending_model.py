"""The index of waiting messages against a model that recomputes everything each time."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beforehand.protocols.contract.base import Message
from beforehand.protocols.orders import pending as waiting
from beforehand.protocols.orders.order import LONG_AGO

IDS = st.tuples(st.integers(0, 3), st.integers(1, 12))
PASTS = st.lists(IDS, max_size=3, unique=True).map(tuple)
AHEAD_US = 3
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("admit"), IDS, PASTS, st.integers(0, 20)),
        st.tuples(st.just("settle"), IDS, PASTS),
        st.tuples(st.just("drop"), IDS),
        st.tuples(st.just("expire"), st.integers(0, 4)),
    ),
    max_size=40,
)


class Model:
    """A model without an index: delivered messages, pending messages, passed deadlines."""

    def __init__(self):
        self.delivered, self.pending, self.horizon_us = {}, {}, LONG_AGO

    def is_over(self, id):
        return self.delivered.get(id[0], LONG_AGO) >= id[1] or id[1] <= self.horizon_us

    def missing(self, message):
        return [id for id in message.past if not self.is_over(id)]

    def is_deferred(self, message):
        return message.stamp > self.horizon_us + AHEAD_US

    def settle(self, settled, late):
        """Follow what the index did, one by one: each was there, and missed nothing."""
        for message in settled:
            assert self.pending.pop(message.id) is message
            assert self.missing(message) == []
            assert not self.is_over(message.id)
            assert not self.is_deferred(message)
            self.delivered[message.origin] = message.seq
        for message in late:
            assert self.pending.pop(message.id) is message
            assert self.missing(message) == []
            assert self.delivered[message.origin] > message.seq

    def lapse(self):
        ids = [id for id in self.pending if id[1] <= self.horizon_us]
        return {id: self.pending.pop(id) for id in ids}

    def events_us(self):
        """For each pending message, when something becomes of it if nothing else happens."""
        return [
            min(m.seq, max([m.stamp - AHEAD_US, *(seq for _, seq in self.missing(m))]))
            for m in self.pending.values()
        ]


class Pair:
    """The index and the model, with the same inputs."""

    def __init__(self, *, expires):
        self.index, self.model = waiting.Waiting(expires=False), Model()
        if expires:
            self.index = waiting.Waiting(expires=True, ahead_us=AHEAD_US)
        self.expires = expires

    def do(self, kind, *args):
        getattr(self, kind)(*args)
        self.compare()

    def admit(self, id, past, stamp):
        if self.model.is_over(id) or id in self.model.pending or id in past:
            return  # such a one is never given to it
        stamp = stamp if self.expires else LONG_AGO
        message = self.model.pending[id] = Message(id, past, b"", stamp=stamp)
        self.follow(self.index.admit(0, message, self.model.horizon_us))

    def settle(self, id, _):
        """Deliver an own message, which names the delivered messages."""
        if self.model.is_over(id) or id in self.model.pending:
            return
        message = self.model.pending[id] = Message(id, (), b"", stamp=LONG_AGO)
        self.follow(self.index.settle([message], self.model.horizon_us))

    def drop(self, id):
        assert self.index.drop(id) == (self.model.pending.pop(id, None) is not None)

    def expire(self, by_us):
        if not self.expires:
            return
        self.model.horizon_us = max(self.model.horizon_us, 0) + by_us
        lapsed, ready = self.index.expire(self.model.horizon_us)
        assert {message.id: message for message in lapsed} == self.model.lapse()
        self.follow(ready)

    def follow(self, settled):
        self.model.settle(settled, self.index.late)
        self.index.late.clear()

    def compare(self):
        index, model = self.index, self.model
        assert index.delivered == model.delivered
        assert {id: entry.message for id, entry in index.pending.items()} == model.pending
        for id, message in model.pending.items():
            entry, missing = index.pending[id], model.missing(message)
            assert missing or model.is_deferred(message), f"{id} waits for nothing"
            assert list(index.missing(entry, model.horizon_us)) == missing
            until_us = index.deferred_until_us(entry)
            assert until_us == (None if missing else message.stamp - AHEAD_US)
        if self.expires and model.pending:
            due_us = index.next_deadline_us()
            assert model.horizon_us < due_us <= min(model.events_us())
        else:
            assert index.next_deadline_us() is None
            assert index._deadlines == index._deferred == []
        self.compare_sizes()

    def compare_sizes(self):
        pending, gauges = len(self.model.pending), self.index.gauges()
        deferred = sum(entry.is_deferred for entry in self.index.pending.values())
        assert gauges["pending"] == gauges["parked"] + deferred == pending
        deadlines_max = waiting.DEADLINES_MIN + 4 * pending
        assert gauges["deadlines"] <= deadlines_max + waiting.DEADLINES_MIN + 2 * pending
        assert len(self.index._deadlines) <= deadlines_max
        lists = sum(map(len, self.index._waiters.values()))
        for origin, waiters in self.index._waiters.items():
            assert waiters.keys() <= set(self.index._seqs[origin])
            assert len(self.index._seqs[origin]) <= waiting.SEQS_MIN + 3 * deadlines_max
        assert self.index._seqs.keys() == self.index._waiters.keys()
        assert lists <= (deadlines_max if self.expires else pending)
        assert all(self.index._waiters.values())


def test_a_seq_that_is_waited_for_again_and_again_is_noted_a_few_times_at_most():
    index = waiting.Waiting(expires=False)
    index.admit(0, Message((1, 1), ((0, 1),), b""), LONG_AGO)
    for _ in range(500):
        index.admit(0, Message((2, 1), ((0, 2),), b""), LONG_AGO)
        index.drop((2, 1))
    assert len(index._seqs[0]) <= waiting.SEQS_MIN + 8


@given(steps=STEPS, expires=st.booleans())
def test_incremental_waiting_equals_recomputation_for_any_input(steps, expires):
    pair = Pair(expires=expires)
    for step in steps:
        pair.do(*step)


@pytest.mark.parametrize("expires", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_incremental_waiting_equals_recomputation_in_long_runs(seed, expires, monkeypatch):
    """Among more messages, and with what some have left behind swept away under others."""
    monkeypatch.setattr(waiting, "DEADLINES_MIN", 0)
    monkeypatch.setattr(waiting, "SEQS_MIN", 0)
    rng, pair, now_us = random.Random(seed), Pair(expires=expires), 0
    for _ in range(300):
        ids = [(rng.randrange(20), now_us + rng.randint(1, 40)) for _ in range(4)]
        past = tuple(dict.fromkeys(ids[1:]))
        kind = rng.choice(["admit", "admit", "admit", "drop", "expire", "settle"])
        if kind == "drop":
            pair.do("drop", rng.choice([*pair.model.pending, ids[0]]))
        elif kind == "expire":
            now_us = max(pair.model.horizon_us, 0) + 1
            pair.do("expire", 1)
        elif kind == "admit":
            pair.do(kind, ids[0], past, now_us + rng.randint(-10, 20))
        else:
            pair.do(kind, ids[0], past)
