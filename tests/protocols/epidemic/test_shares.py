"""A full cache evicts by shares: the flood of one member evicts its own messages."""

from __future__ import annotations

import random

from beforehand.protocols.contract.base import Message
from beforehand.protocols.epidemic.cache import Cache
from beforehand.protocols.epidemic.shares import MEMBERS_MAX
from beforehand.protocols.epidemic.sizes import held_bytes


def shared_cache(capacity, delivered=frozenset(), *, bytes_max=None):
    """Return a cache of `ann`."""
    rng = random.Random(1)
    known = delivered.__contains__
    return Cache(capacity, "shares", rng, bytes_max, own="ann", has_delivered=known)


def made(origin, *seqs, size=40):
    return [Message((origin, seq), (), bytes(size)) for seq in seqs]


def ids(messages):
    return [message.id for message in messages]


def test_a_flood_evicts_its_own_messages_and_leaves_those_of_the_others():
    cache = shared_cache(None, bytes_max=100 * held_bytes(made("bob", 1)[0]))
    quiet = [*made("bob", 1, 2, 3), *made("cid", 4), *made("ann", 5)]
    cache.add(quiet)
    for seq in range(10, 1_000):
        cache.add(made("eve", seq))
        assert all(id[0] == "eve" for id in cache.evict(horizon_us=0))
    assert set(ids(quiet)) < set(cache.entries)
    assert min(seq for origin, seq in cache.entries if origin == "eve") == 1_000 - 95


def test_own_messages_count_with_half_of_their_bytes():
    own, others = made("ann", 1, 2, 3), made("bob", 4, 5)
    cache = shared_cache(4, {*ids(own), *ids(others)})
    cache.add([*own, *others])
    assert cache.evict(horizon_us=0) == [("bob", 4)]
    cache.add(made("cid", 6))
    assert cache.evict(horizon_us=0) == [("ann", 1)], "three halves are more than one"


def test_pending_messages_above_the_fair_share_go_before_delivered_ones():
    large, small, few = made("bob", 1, 2, 3, 4), made("cid", 5, 6, 7), made("dan", 8)
    cache = shared_cache(7, {*ids(large), ("cid", 5), *ids(few)})
    cache.add([*large, *small, *few])
    assert cache.evict(horizon_us=0) == [("cid", 6)], "bob has more, and nothing pending"
    cache = shared_cache(7, {*ids(large), *ids(small)})
    cache.add([*large, *small, *few])
    assert cache.evict(horizon_us=0) == [("bob", 1)], "dan is below its share"


def oracle(entries, delivered):
    """Return the id to evict by the rule of `protocols.epidemic.shares`, from all entries."""
    weights, total = {}, sum(held_bytes(message) for _, message in entries.values())
    for _, message in entries.values():
        weights[message.origin] = weights.get(message.origin, 0) + held_bytes(message)
    fair = total // min(len(weights), MEMBERS_MAX)
    if "ann" in weights:
        weights["ann"] //= 2
    heavy = sorted(weights, key=lambda origin: (-weights[origin], origin))
    for origin in heavy:
        pending = [id for id in entries if id[0] == origin and id not in delivered]
        if pending and weights[origin] > fair:
            return min(pending)
    return min(id for id in entries if id[0] == heavy[0])


def test_every_eviction_of_random_histories_is_the_one_of_the_rule():
    evictions = 0
    for seed in range(150):
        rng, delivered = random.Random(seed), set()
        count = rng.choice((2, 5, 80))
        names = ["ann", *(f"m{n:02d}" for n in range(count))]
        cache = shared_cache(rng.choice((3, 10, 90)), delivered)
        for step in range(80):
            name = names[min(int(rng.expovariate(4 / count)), count)]
            for seq in rng.sample(range(1 + step, 200), rng.choice((1, 1, 6))):
                if (name, seq) not in cache.entries:
                    cache.add(made(name, seq, size=rng.choice((0, 40, 5_000))))
            chosen = rng.sample(sorted(cache.entries), len(cache.entries) // 4)
            delivered.update(chosen)
            horizon_us = step if rng.random() < 0.2 else 0
            before = dict(cache.entries)
            for id in cache.evict(horizon_us):
                if id[1] > horizon_us:
                    assert id == oracle(before, delivered), (seed, step)
                    evictions += 1
                del before[id]
            assert before == cache.entries
    assert evictions > 5_000


def test_the_index_of_shares_stays_within_a_multiple_of_the_held_messages():
    cache = shared_cache(50)
    for seq in range(1, 5_000):
        cache.add(made(f"m{seq % 70}", seq))
        cache.evict(horizon_us=seq - 70)
        cache.purge(horizon_us=seq - 70)
    shares = cache.shares
    assert shares._queued == sum(
        len(heap) for heaps in (shares._pending, shares._delivered) for heap in heaps.values()
    )
    assert shares._queued <= 2 * len(cache.entries) + 70
    assert len(shares._heaviest) <= 2 * len(shares._bytes) + 70


def test_a_cache_with_room_keeps_no_shares():
    cache = shared_cache(10)
    cache.add(made("bob", *range(1, 11)))
    assert cache.evict(horizon_us=0) == []
    assert cache.shares is None
