"""The length of frames, counted by hand."""

from beforehand.protocols.contract.base import Message
from beforehand.protocols.mobile.sizes import Size, size_of
from beforehand.protocols.mobile.was.frames import BroadcastAck, Cast, HostAck, Place, StationAck

MESSAGE = Message((7, 3), (), bytes(100))


def test_a_cast_is_its_payload_and_a_few_integers() -> None:
    # A type; cell, seq, origin and its number.
    assert size_of(Cast(1, 5, MESSAGE)) == Size(1 + 4 * 4, 100)


def test_a_vector_on_a_message_counts_with_its_length() -> None:
    vector = Message((7, 3), ((0, 1), (1, 4)), b"")
    assert (
        size_of(Cast(1, 5, vector)).control_bytes - size_of(Cast(1, 5, MESSAGE)).control_bytes == 20
    )


def test_nested_lists_count_all_their_numbers() -> None:
    ack = HostAck(1, 7, Place(2, False, 9), ((11, 12), (14, 14)))
    assert size_of(ack).total_bytes == 1 + 4 * (2 + 3 + 1 + 2 * 3)
    heard = StationAck(1, (BroadcastAck(7, 2, 4), BroadcastAck(8, 1, 6, ((9, 9),))))
    assert size_of(heard).total_bytes == 1 + 4 * (1 + 1 + 4 + (4 + 3))
