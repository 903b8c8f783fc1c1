"""How frames are cut, and how far the sizes that simulations count are from those on the wire."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beforehand.protocols.codecs import OPPORTUNISTIC
from beforehand.protocols.contract.base import NAME_CHARS_MAX, Message
from beforehand.protocols.contract.codec import BYTES_MAX
from beforehand.protocols.epidemic.frames import (
    FRAME_BYTES,
    ID_BYTES,
    IDS_MAX,
    Announce,
    Data,
    Request,
    by_seq,
    message_bytes,
    split_ids,
)
from beforehand.protocols.epidemic.options import Options

# On the wire: version, array, tag, number and the lengths of the two arrays.
FRAME_OVER = 21
# Lengths of the message, its past, payload and proof: 1 + 5 + 5 + 3 bytes, of which 4 are counted.
MESSAGE_OVER = 10

ORIGINS = st.integers(0, 255)
IDS = st.tuples(ORIGINS, st.integers(-(1 << 62) + 1, (1 << 62) - 1))
MESSAGES = st.builds(
    Message,
    IDS,
    st.lists(IDS, max_size=20, unique=True).map(tuple),
    st.binary(max_size=300),
    st.binary(max_size=300),
)


@given(ids=st.frozensets(st.tuples(st.integers(0, 9) | st.text("ab", min_size=1), st.integers())))
@pytest.mark.parametrize("bytes_max", [0, 20, 32, 50, 1000])
def test_ids_are_cut_to_size_and_none_is_lost(bytes_max, ids):
    parts = list(split_ids(ids, bytes_max))
    assert frozenset().union(*parts) == ids
    assert sum(map(len, parts)) == len(ids)
    assert all(parts)
    assert all(len(part) == 1 or Announce(1, part).size_bytes <= bytes_max for part in parts)
    # In order, and no more parts than need be.
    assert [id for part in parts for id in by_seq(part)] == by_seq(ids)
    assert len({len(part) for part in parts[:-1]}) <= 1


def test_the_oldest_ids_are_in_the_first_frame_whatever_their_origins():
    ids = frozenset({("b", 1), (2, 3), (3, 1), (1, 2), ("a", 1)})
    assert by_seq(ids) == [(3, 1), ("a", 1), ("b", 1), (1, 2), (2, 3)]
    assert next(split_ids(ids, FRAME_BYTES + 3 * ID_BYTES)) == {(3, 1), ("a", 1), ("b", 1)}


def test_five_thousand_ids_do_not_go_out_in_one_frame():
    parts = list(split_ids(frozenset((0, seq) for seq in range(5_000)), 1_000))
    assert len(parts) == 61
    assert max(Announce(1, part).size_bytes for part in parts) <= 1_000


def test_no_set_has_more_ids_than_a_peer_takes():
    parts = list(split_ids(frozenset((0, seq) for seq in range(IDS_MAX + 1)), 1 << 30))
    assert [len(part) for part in parts] == [IDS_MAX, 1]
    OPPORTUNISTIC.encode(Announce(1, parts[0]))


def test_sets_within_the_limit_are_not_split():
    ids = frozenset({(1, 1), ("a", 1), (2, 1)})
    assert list(split_ids(ids, FRAME_BYTES + 3 * ID_BYTES)) == [ids]
    assert len(list(split_ids(ids, FRAME_BYTES + 3 * ID_BYTES - 1))) == 2
    assert list(split_ids(frozenset(), 1000)) == []


def test_sizes_are_those_that_published_runs_were_counted_with():
    message = Message((1, 2), ((0, 1), (2, 1)), bytes(100))
    assert message_bytes(message) == 140
    assert Announce(1, frozenset({(0, 1), (2, 1)})).size_bytes == 32
    assert Request(1, frozenset({(0, 1), (2, 1)})).size_bytes == 32
    assert Data((message, message), frozenset({(0, 1)})).size_bytes == 300


def test_a_proof_counts():
    assert message_bytes(Message((1, 2), (), b"", bytes(64))) == 16 + 64


@given(ids=st.frozensets(IDS, max_size=40), number=st.integers(0, (1 << 32) - 1))
def test_an_announcement_is_hardly_larger_on_the_wire(ids, number):
    for frame in (Announce(number, ids), Request(number, ids)):
        assert len(OPPORTUNISTIC.encode(frame)) <= frame.size_bytes + FRAME_OVER - FRAME_BYTES


@given(messages=st.lists(MESSAGES, max_size=5, unique_by=lambda m: m.id), gone=st.frozensets(IDS))
def test_data_is_hardly_larger_on_the_wire(messages, gone):
    frame = Data(tuple(messages), gone)
    over = FRAME_OVER - FRAME_BYTES + MESSAGE_OVER * len(messages)
    assert len(OPPORTUNISTIC.encode(frame)) <= frame.size_bytes + over


def test_no_batch_can_be_too_large_for_the_wire_however_long_the_names_are():
    """Else a hostile message would keep a node from forwarding."""
    options = Options()
    count = options.frame_bytes_max // ID_BYTES
    longest = ["\U0001f68c" * (NAME_CHARS_MAX - 4) + f"{n:04}" for n in range(count)]
    ids = frozenset((name, -(1 << 62) + 1) for name in longest)
    assert len(OPPORTUNISTIC.encode(Announce(1, ids))) < 45 * options.frame_bytes_max < BYTES_MAX
