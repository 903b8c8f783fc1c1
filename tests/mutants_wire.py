"""Ways to break the wire and the proof of an origin, each with the test that must notice.

Rows of name, file, text before, text after, and the pytest node that must fail; the text before
occurs exactly once in its file.
"""

from __future__ import annotations

CODEC = "src/beforehand/core/codec.py"
FRAMES = "src/beforehand/core/frames.py"
PACKETS = "src/beforehand/core/packets.py"
BASE = "src/beforehand/core/base.py"
PROOF = "src/beforehand/core/proof.py"
CODEC_TEST = "tests/core/test_codec.py"
FRAMES_TEST = "tests/core/test_frames.py"
PROOF_TEST = "tests/core/test_proof.py"

MUTANTS: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "a frame may be as large as it likes",
        CODEC,
        "if len(data) > self.bytes_max:",
        "if False:",
        f"{CODEC_TEST}::test_what_is_too_large_is_refused_before_it_is_read",
    ),
    (
        "a frame is read before its size is looked at",
        CODEC,
        "        self._refuse_unread(data)\n        try:\n"
        "            frame = self._decoder.decode(memoryview(data)[1:])",
        "        try:\n            frame = self._decoder.decode(memoryview(data)[1:])\n"
        "            self._refuse_unread(data)",
        f"{CODEC_TEST}::test_what_is_too_large_is_refused_before_it_is_read",
    ),
    (
        "any version will do",
        CODEC,
        "if data[0] != WIRE_VERSION:",
        "if False:",
        f"{CODEC_TEST}::test_another_version_is_refused_and_both_are_named",
    ),
    (
        "the version is not written",
        CODEC,
        "return _VERSION_BYTE + self._encoder.encode(frame)",
        'return b"\\x00" + self._encoder.encode(frame)',
        f"{CODEC_TEST}::test_the_wire_has_not_changed",
    ),
    (
        "any seq is taken, also those that stand for long ago and long ahead",
        BASE,
        "MessageId = tuple[NodeId, Int62]",
        "MessageId = tuple[NodeId, int]",
        f"{CODEC_TEST}::test_what_the_types_do_not_allow_is_refused",
    ),
    (
        "a VCube takes message 0",
        PACKETS,
        "msgspec.Meta(ge=1, lt=1 << 62)",
        "msgspec.Meta(ge=0, lt=1 << 62)",
        f"{CODEC_TEST}::test_what_the_types_do_not_allow_is_refused",
    ),
    (
        "sets are written as they come",
        CODEC,
        'msgspec.msgpack.Encoder(order="deterministic")',
        "msgspec.msgpack.Encoder()",
        f"{CODEC_TEST}::test_the_same_set_gives_the_same_bytes_in_whatever_order_it_was_made",
    ),
    (
        "sets of ints and names are written as they come",
        CODEC,
        "        return in_order(value)\n",
        "        return list(value)\n",
        f"{CODEC_TEST}::test_the_same_set_gives_the_same_bytes_in_whatever_order_it_was_made",
    ),
    (
        "a second encoding of a frame is taken",
        CODEC,
        "if self._pack(frame) != data:",
        "if False:",
        f"{CODEC_TEST}::test_a_second_way_to_write_a_frame_is_refused",
    ),
    (
        "a nest of arrays comes out as a RecursionError",
        CODEC,
        "(msgspec.DecodeError, UnicodeDecodeError, RecursionError)",
        "(msgspec.DecodeError, UnicodeDecodeError)",
        f"{CODEC_TEST}::test_bytes_that_are_no_message_pack_are_refused",
    ),
    (
        "a name that is no text comes out as a UnicodeDecodeError",
        CODEC,
        "(msgspec.DecodeError, UnicodeDecodeError, RecursionError)",
        "(msgspec.DecodeError, RecursionError)",
        f"{CODEC_TEST}::test_no_bytes_get_anything_else_out_of_a_codec",
    ),
    (
        "what a frame says of itself is not asked",
        CODEC,
        "        if flaw:\n",
        "        if False:\n",
        f"{CODEC_TEST}::test_a_message_that_comes_twice_is_refused",
    ),
    (
        "frames are sent that no peer takes",
        CODEC,
        "            self._read(data)\n",
        "",
        f"{CODEC_TEST}::test_a_frame_that_no_peer_would_take_is_the_callers_error",
    ),
    (
        "one id is lost where a set is cut",
        FRAMES,
        "yield frozenset(ordered[start : start + count])",
        "yield frozenset(ordered[start : start + count - 1] or ordered[start : start + 1])",
        f"{FRAMES_TEST}::test_ids_are_cut_to_size_and_none_is_lost",
    ),
    (
        "a set is cut one id too late",
        FRAMES,
        "(bytes_max - FRAME_BYTES) // ID_BYTES)",
        "(bytes_max - FRAME_BYTES) // ID_BYTES + 1)",
        f"{FRAMES_TEST}::test_ids_are_cut_to_size_and_none_is_lost",
    ),
    (
        "a proof weighs nothing",
        FRAMES,
        " + len(message.proof)",
        "",
        f"{FRAMES_TEST}::test_a_proof_counts",
    ),
    (
        "a proof does not cover the past",
        PROOF,
        "(group, message.id, message.past, message.payload)",
        "(group, message.id, message.payload)",
        f"{PROOF_TEST}::test_nothing_can_be_changed_on_the_way",
    ),
    (
        "a proof does not cover the group",
        PROOF,
        "(group, message.id, message.past, message.payload)",
        "(message.id, message.past, message.payload)",
        f"{PROOF_TEST}::test_a_message_of_one_group_proves_nothing_in_another",
    ),
    (
        "fields are signed without their borders",
        PROOF,
        "_encode((*signed, message.stamp) if message.stamp else signed)",
        'repr((*message.id, *message.past, group)).replace("\'", "").encode() + message.payload',
        f"{PROOF_TEST}::test_the_border_between_two_fields_is_signed_too",
    ),
    (
        "no proof is proof enough",
        PROOF,
        "        if not message.proof:\n            return False\n",
        "",
        f"{PROOF_TEST}::test_without_a_proof_nothing_is_proven_whatever_the_check_says",
    ),
)
