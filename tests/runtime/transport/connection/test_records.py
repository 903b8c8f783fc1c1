"""Inside a record: frames are unpacked as they were packed, and other bytes are refused."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beforehand.runtime.transport.connection.records import (
    content_bytes_max,
    count_frames,
    pack_frames,
    pack_goodbye,
    unpack_frames,
    unpack_goodbye,
)
from beforehand.runtime.transport.disconnects import Refused
from beforehand.runtime.transport.limits import Limits

FRAMES = st.lists(st.binary(min_size=1, max_size=50), min_size=1, max_size=20)


@given(FRAMES)
def test_frames_come_out_as_they_went_in(frames):
    packed = pack_frames(frames)
    assert unpack_frames(packed, 50) == frames
    assert count_frames(packed) == len(frames)


@given(FRAMES, st.data())
def test_a_damaged_record_is_refused_or_holds_as_many_bytes(frames, data):
    packed = bytearray(pack_frames(frames))
    at = data.draw(st.integers(1, len(packed) - 1))
    packed[at] = data.draw(st.integers(0, 255))
    found = []
    with suppress(Refused):
        found = unpack_frames(bytes(packed), 50)
    assert not found or 5 + sum(4 + len(frame) for frame in found) == len(packed)


@given(st.binary(max_size=100))
def test_any_bytes_are_frames_or_refused(content):
    try:
        found = unpack_frames(b"\3" + content, 50)
    except Refused:
        return
    assert pack_frames(found) == b"\3" + content


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"\3", "malformed"),
        (b"\3\0\0\0\0", "malformed"),
        (b"\3\1\0\0\0\0\0\0\0", "malformed"),
        (b"\3\xff\xff\xff\xff", "malformed"),
        (b"\3\1\0\0\0\7\0\0\0x", "too_large"),
        (b"\3\1\0\0\0\1\0\0\0xx", "malformed"),
    ],
)
def test_each_flaw_of_a_record_has_its_kind(content, kind):
    with pytest.raises(Refused) as found:
        unpack_frames(content, 6)
    assert found.value.kind == kind


def test_the_longest_frame_fits_into_the_longest_record():
    limits = Limits()
    assert len(pack_frames([bytes(limits.frame_bytes_max)])) <= content_bytes_max(limits)


def test_a_goodbye_has_a_reason_that_can_be_shown():
    assert unpack_goodbye(pack_goodbye("too_many_connections")) == "too_many_connections"
    for reason in ("", "x" * 33, "a b", "\x1b[2J", "é"):
        with pytest.raises(Refused):
            unpack_goodbye(pack_goodbye(reason))
