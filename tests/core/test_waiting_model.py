"""The index of waiting messages against a model that recomputes everything each time."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beforehand.core.base import Message
from beforehand.core.order import LONG_AGO
from beforehand.core.waiting import DEADLINES_MIN, Waiting

IDS = st.tuples(st.integers(0, 3), st.integers(1, 12))
PASTS = st.lists(IDS, max_size=3, unique=True).map(tuple)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("admit"), IDS, PASTS),
        st.tuples(st.just("settle"), IDS, PASTS),
        st.tuples(st.just("drop"), IDS),
        st.tuples(st.just("expire"), st.integers(0, 4)),
    ),
    max_size=40,
)


class Model:
    """What is delivered, what is pending, and since when deadlines have passed: no index."""

    def __init__(self):
        self.delivered, self.pending, self.horizon_us = {}, {}, LONG_AGO

    def is_over(self, id):
        return self.delivered.get(id[0], LONG_AGO) >= id[1] or id[1] <= self.horizon_us

    def missing(self, message):
        return [id for id in message.past if not self.is_over(id)]

    def settle(self, settled, late):
        """Follow what the index did, one by one: each was there, and missed nothing."""
        for message in settled:
            assert self.pending.pop(message.id) is message
            assert self.missing(message) == []
            assert not self.is_over(message.id)
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
        return [min(m.seq, max(seq for _, seq in self.missing(m))) for m in self.pending.values()]


class Pair:
    """The index and the model, given the same."""

    def __init__(self, *, expires):
        self.waiting, self.model, self.expires = Waiting(expires=expires), Model(), expires

    def do(self, kind, *args):
        getattr(self, kind)(*args)
        self.compare()

    def admit(self, id, past):
        if self.model.is_over(id) or id in self.model.pending or id in past:
            return  # such a one is never given to it
        message = self.model.pending[id] = Message(id, past, b"")
        self.follow(self.waiting.admit(0, message, self.model.horizon_us))

    def settle(self, id, _):
        """As for an own message, which names what is delivered."""
        if self.model.is_over(id) or id in self.model.pending:
            return
        message = self.model.pending[id] = Message(id, (), b"")
        self.follow(self.waiting.settle([message], self.model.horizon_us))

    def drop(self, id):
        assert self.waiting.drop(id) == (self.model.pending.pop(id, None) is not None)

    def expire(self, by_us):
        if not self.expires:
            return
        self.model.horizon_us = max(self.model.horizon_us, 0) + by_us
        lapsed, ready = self.waiting.expire(self.model.horizon_us)
        assert {message.id: message for message in lapsed} == self.model.lapse()
        self.follow(ready)

    def follow(self, settled):
        self.model.settle(settled, self.waiting.late)
        self.waiting.late.clear()

    def compare(self):
        waiting, model = self.waiting, self.model
        assert waiting.delivered == model.delivered
        assert {id: entry.message for id, entry in waiting.pending.items()} == model.pending
        for id, message in model.pending.items():
            assert model.missing(message), f"{id} waits for nothing"
            missing = waiting.missing(waiting.pending[id], model.horizon_us)
            assert list(missing) == model.missing(message)
        if self.expires and model.pending:
            due_us = waiting.next_deadline_us()
            assert model.horizon_us < due_us <= min(model.events_us())
        else:
            assert waiting.next_deadline_us() is None
            assert waiting._deadlines == []
        self.compare_sizes()

    def compare_sizes(self):
        pending, gauges = len(self.model.pending), self.waiting.gauges()
        assert gauges["pending"] == gauges["parked"] == pending
        assert gauges["deadlines"] <= DEADLINES_MIN + 4 * pending
        lists = sum(map(len, self.waiting._waiters.values()))
        assert lists <= (DEADLINES_MIN + 4 * pending if self.expires else pending)
        assert all(self.waiting._waiters.values())


@given(steps=STEPS, expires=st.booleans())
def test_whatever_comes_it_is_as_if_everything_were_recomputed_each_time(steps, expires):
    pair = Pair(expires=expires)
    for step in steps:
        pair.do(*step)


@pytest.mark.parametrize("expires", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_the_same_in_long_runs(seed, expires):
    """Among more messages, so that what is left behind by some is swept away under others."""
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
        else:
            pair.do(kind, ids[0], past)
