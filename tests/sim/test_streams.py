"""Draws by key: the k-th draw of a node is a hash, and a shuffle takes one of them."""

from collections import Counter
from itertools import permutations

from beforehand.sim.streams import KeyedDraws, mix, stream_key, unit


def test_the_draw_of_a_node_depends_on_its_key_and_its_number_alone():
    draws = KeyedDraws(7, "transfer", 3)
    key = mix(stream_key(7, "transfer"), 3)
    assert draws.randrange(1000) == int(unit(key, 0) * 1000)
    assert draws.randint(5, 9) == 5 + int(unit(key, 1) * 5)


def test_a_shuffle_takes_one_draw_however_many_items_there_are():
    for count in (0, 1, 100):
        draws = KeyedDraws(7, "transfer", 3)
        items = list(range(count))
        draws.shuffle(items)
        assert sorted(items) == list(range(count))
        assert draws.randrange(1 << 30) == int(
            unit(mix(stream_key(7, "transfer"), 3), 1) * (1 << 30)
        )


def test_every_order_of_a_shuffle_is_as_likely_as_the_others():
    found: Counter[tuple[int, ...]] = Counter()
    for node in range(6000):
        items = [0, 1, 2]
        KeyedDraws(1, "transfer", node).shuffle(items)
        found[tuple(items)] += 1
    assert set(found) == set(permutations(range(3)))
    # 1000 expected each, with a standard deviation of 29.
    assert all(abs(count - 1000) < 150 for count in found.values())
