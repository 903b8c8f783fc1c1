"""The cache stores, evicts and expires messages."""

import random

from beforehand.protocols.contract.base import Message
from beforehand.protocols.epidemic.cache import EVICTED_MAX, Cache, Evicted
from beforehand.protocols.epidemic.sizes import held_bytes


def fill(cache, seqs):
    cache.add([Message(("ann", seq), (), b"") for seq in seqs])


def test_the_oldest_goes_first():
    cache = Cache(3, "oldest", random.Random(1))
    fill(cache, [5, 1, 9, 7])
    assert cache.evict(horizon_us=0) == [("ann", 5)]
    assert list(cache.entries) == [("ann", 1), ("ann", 9), ("ann", 7)]


def test_the_oldest_go_until_whole_messages_fit():
    def message(seq, size, past=()):
        return Message(("ann", seq), past, bytes(size))

    each = held_bytes(message(1, 40))
    cache = Cache(None, "oldest", random.Random(1), bytes_max=2 * each)
    cache.add([message(5, 40), message(1, 40)])
    assert cache.evict(horizon_us=0) == []
    cache.add([message(9, each + 40 - 1)])
    assert cache.evict(horizon_us=0) == [("ann", 5), ("ann", 1)]
    cache.add([message(7, 0)])
    assert cache.evict(horizon_us=0) == [("ann", 9)], "what has gone counts no more"
    cache.add([message(8, 0)])
    assert cache.evict(horizon_us=7) == []
    causes = tuple((f"bob{n}", 1) for n in range(20))
    cache.add([message(10, 0, causes)])
    assert cache.evict(horizon_us=7) == [("ann", 7), ("ann", 8)], "causes count, the expired go"


def test_the_expired_go_before_anything_else():
    cache = Cache(3, "oldest", random.Random(1))
    fill(cache, [5, 1, 9, 7])
    assert cache.evict(horizon_us=1) == [("ann", 1)]


class Walked(dict):
    """Counts the entries that were iterated over."""

    steps = 0

    def __iter__(self):
        for key in super().__iter__():
            self.steps += 1
            yield key


def test_a_full_cache_is_not_scanned_for_every_message():
    cache = Cache(100, "oldest", random.Random(1))
    cache.entries = Walked()
    for seq in range(1000, 2000):
        fill(cache, [seq])
        cache.evict(horizon_us=500)
    assert cache.entries.steps < 2000
    fill(cache, [600, 2001])
    assert ("ann", 600) in cache.evict(horizon_us=700), "what has expired is found even so"


def test_random_eviction_keeps_to_the_capacity_and_spares_no_place():
    gone = set()
    for seed in range(200):
        cache = Cache(3, "random", random.Random(seed))
        fill(cache, [1, 2, 3, 4])
        (id,) = cache.evict(horizon_us=0)
        assert id not in cache.entries
        assert len(cache.entries) == 3
        gone.add(id)
    assert gone == {("ann", seq) for seq in (1, 2, 3, 4)}


def test_random_eviction_survives_purges():
    cache = Cache(40, "random", random.Random(1))
    for seq in range(1, 2000):
        fill(cache, [seq])
        cache.purge(horizon_us=seq - 20)
        cache.evict(horizon_us=seq - 20)
        assert len(cache.entries) <= 64
        assert ("ann", seq) in cache.entries


def test_pick_gives_what_is_here_and_alive_in_the_order_of_storing():
    cache = Cache(None, "oldest", random.Random(1))
    fill(cache, [5, 1, 9, 7])
    wanted = {("ann", 9), ("ann", 5), ("ann", 1), ("bob", 1)}
    assert [m.seq for m in cache.pick(wanted, horizon_us=1)] == [5, 9]


def test_for_a_random_transfer_the_order_does_not_depend_on_when_messages_were_stored():
    wanted = {("ann", 9), ("ann", 5), ("ann", 1), ("bob", 1)}
    for stored in ([5, 1, 9, 7], [9, 7, 5, 1]):
        cache = Cache(None, "oldest", random.Random(1))
        fill(cache, stored)
        assert [m.seq for m in cache.pick_by_seq(wanted, horizon_us=1)] == [5, 9]


def test_the_latest_evicted_undelivered_ids_are_remembered():
    evicted = Evicted(has_delivered=lambda _: False)
    ids = [("ann", seq) for seq in range(EVICTED_MAX + 1)]
    evicted.add(ids)
    assert evicted.taken_from(frozenset(ids)) == frozenset(ids[: -EVICTED_MAX // 2])
