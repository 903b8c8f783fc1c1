"""The codec: decoding restores each encoded frame, and refuses all other bytes."""

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beforehand.check.fuzz import codec as fuzz_codec
from beforehand.check.fuzz.draw_frames import draw_frame
from beforehand.errors import LocalError, RemoteError
from beforehand.protocols.codecs import CODECS, MOBILE, OBSERVER, OPPORTUNISTIC, VCUBE
from beforehand.protocols.contract.base import NAME_CHARS_MAX, PROOF_BYTES_MAX, Message
from beforehand.protocols.contract.codec import WIRE_VERSION, Codec, in_order
from beforehand.protocols.epidemic.frames import (
    IDS_MAX,
    Announce,
    Data,
    Digest,
    Frame,
    Missing,
    NotHeld,
    Push,
    Request,
    SyncHello,
    Want,
)
from beforehand.protocols.observer.observer import Stamped
from beforehand.protocols.observer.timestamp import Stamp
from beforehand.protocols.vcube.frames import Answer, Ask, Known, Packet, VCubeMessage

FUZZ_STRINGS = 7_000  # per family
END = 1 << 62

INTS = st.integers(-END + 1, END - 1)
COUNTS = st.integers(0, END - 1)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=NAME_CHARS_MAX)
IDS = st.tuples(INTS | NAMES, INTS)
PROOFS = st.binary(max_size=80)
MESSAGES = st.builds(
    Message, IDS, st.lists(IDS, max_size=5, unique=True).map(tuple), st.binary(), PROOFS, INTS
)
ID_SETS = st.frozensets(IDS, max_size=12)
ENTRIES = st.dictionaries(COUNTS, st.integers(1, END - 1), max_size=5)


def cube_message(id, entries, payload, proof):
    """Its own origin is never among its causes."""
    past = tuple(sorted(entry for entry in entries.items() if entry[0] != id[0]))
    return VCubeMessage(id, past, payload, proof)


SEQS = st.integers(1, END - 1)
CUBE_MESSAGES = st.builds(cube_message, st.tuples(COUNTS, SEQS), ENTRIES, st.binary(), PROOFS)
STAMPS = st.builds(Stamp, INTS, INTS, st.lists(INTS, max_size=12).map(tuple))
CLOCKS = st.lists(COUNTS, max_size=8).map(tuple)
FRAMES = {
    Announce: st.builds(Announce, COUNTS, ID_SETS),
    Request: st.builds(Request, COUNTS, ID_SETS),
    Data: st.builds(
        Data,
        st.lists(MESSAGES, max_size=4, unique_by=lambda message: message.id).map(tuple),
        ID_SETS,
    ),
    Push: st.builds(
        Push, st.lists(MESSAGES, max_size=4, unique_by=lambda message: message.id).map(tuple)
    ),
    Digest: st.builds(Digest, ID_SETS),
    Want: st.builds(Want, ID_SETS),
    SyncHello: st.builds(SyncHello, ID_SETS),
    Missing: st.builds(Missing, ID_SETS),
    NotHeld: st.builds(lambda gone, ids: NotHeld(gone, ids - gone), ID_SETS, ID_SETS),
    Packet: st.builds(Packet, COUNTS, st.lists(CUBE_MESSAGES, max_size=4).map(tuple)),
    Ask: st.builds(Ask, CLOCKS),
    Answer: st.builds(Answer, CLOCKS),
    Known: st.builds(Known, st.integers(1, 2**62 - 1)),
    Stamped: st.builds(Stamped, MESSAGES, COUNTS, STAMPS),
} | {
    kind: st.builds(draw_frame, st.randoms(use_true_random=False), st.just(kind))
    for kind in MOBILE.kinds
}
CODEC_OF = {kind: codec for codec in CODECS for kind in codec.kinds}

GOLDEN = [
    (
        Announce(7, frozenset({("a", 5), (3, 300), (-1, 2)})),
        "0293a8616e6e6f756e636507" + "93" + "92ff02" + "9203cd012c" + "92a16105",
    ),
    (Request(0, frozenset()), "0293a7726571756573740090"),
    (
        Data((Message((1, 2), ((0, 1),), b"hi", b"ok", 300),), frozenset({(4, 9)})),
        "0293a46461746191" + "95920102" + "91920001c4026869c4026f6b" + "cd012c" + "91920409",
    ),
    (
        Push((Message((1, 2), ((0, 1),), b"hi", b"ok"),)),
        "0292a47075736891" + "95920102" + "91920001" + "c4026869" + "c4026f6b" + "00",
    ),
    (Digest(frozenset({("a", 5)})), "0292a7726561636865649192a16105"),
    (Want(frozenset({("a", 1 - 2**62)})), "0292a6626568696e64" + "9192a161d3c000000000000001"),
    (SyncHello(frozenset({("a", 7), (3, -1)})), "0292a86772656574696e67" + "929203ff92a16107"),
    (Missing(frozenset({("a", 5)})), "0292a76d697373696e67" + "9192a16105"),
    (
        NotHeld(frozenset({("a", 5)}), frozenset({(4, 9)})),
        "0293a76e6f7468656c64" + "9192a16105" + "91920409",
    ),
    (Ask((3, 0, 300)), "0292a361736b" + "930300cd012c"),
    (Answer(()), "0292a6616e7377657290"),
    (Known(7), "0292a56b6e6f776e07"),
    (
        Packet(3, (VCubeMessage((2, 1), ((0, 4), (5, 6)), b"x"),)),
        "0293a67061636b65740391" + "95920201" + "92920004920506" + "c40178" + "c400" + "00",
    ),
    (
        Stamped(Message(("b", 1), (), b""), 4, Stamp(-2, 1, (1, 0))),
        "0294a77374616d706564" + "9592a1620190c400c40000" + "04" + "93fe01920100",
    ),
]


def wire(*values, version=WIRE_VERSION):
    """Bytes of anything, right or wrong."""
    return bytes([version]) + msgspec.msgpack.encode(values)


def refused(codec, data, match):
    with pytest.raises(RemoteError, match=match) as caught:
        codec.decode(data)
    assert caught.value.where.startswith(f"{codec.family} frame of {len(data)} bytes")
    assert caught.value.hint
    return caught.value


# ---- what goes out comes in ----------------------------------------------------------------------


def test_every_frame_of_every_family_is_tried():
    assert set(FRAMES) == set(CODEC_OF)
    golden = {type(frame) for frame, _ in GOLDEN}
    assert golden | set(MOBILE.kinds) == set(CODEC_OF)  # for those: test_codec_mobile
    assert fuzz_codec.FAMILIES.keys() == {codec.family for codec in CODECS}


@pytest.mark.parametrize("kind", FRAMES)
@given(data=st.data())
def test_encoded_frames_decode_to_themselves(kind, data):
    frame = data.draw(FRAMES[kind])
    encoded = CODEC_OF[kind].encode(frame)
    again = CODEC_OF[kind].decode(encoded)
    assert again == frame
    assert type(again) is kind
    assert CODEC_OF[kind].decode(memoryview(encoded)) == frame
    assert CODEC_OF[kind].decode(bytearray(encoded)) == frame


@pytest.mark.parametrize(("frame", "golden"), GOLDEN, ids=lambda value: type(value).__name__)
def test_the_wire_has_not_changed(frame, golden):
    """If it must: raise WIRE_VERSION, then change these bytes."""
    codec = CODEC_OF[type(frame)]
    assert codec.encode(frame).hex() == golden
    assert codec.decode(bytes.fromhex(golden)) == frame


@given(ids=st.frozensets(IDS, max_size=30), seed=st.integers(0, 1000))
def test_the_same_set_gives_the_same_bytes_in_whatever_order_it_was_made(ids, seed):
    shuffled = random.Random(seed).sample(in_order(ids), len(ids))
    encoded = OPPORTUNISTIC.encode(Announce(1, ids))
    assert OPPORTUNISTIC.encode(Announce(1, frozenset(shuffled))) == encoded
    _, _, listed = msgspec.msgpack.decode(encoded[1:])
    assert listed == [list(id) for id in in_order(shuffled)]


def test_ints_come_before_names_and_each_in_their_order():
    ids = [(10, 1), (9, 2), (9, 1), (-1, 5), ("b", 1), ("a", 2), ("B", 3)]
    ordered = [(-1, 5), (9, 1), (9, 2), (10, 1), ("B", 3), ("a", 2), ("b", 1)]
    assert in_order(frozenset(ids)) == ordered


# ---- what is refused -----------------------------------------------------------------------------


def test_another_version_is_refused_and_both_are_named():
    data = OPPORTUNISTIC.encode(Request(1, frozenset()))
    error = refused(OPPORTUNISTIC, b"\x09" + data[1:], "theirs is 9, ours is 2")
    assert "same release" in error.hint


def test_an_oversized_frame_is_refused_before_it_is_decoded():
    codec = Codec("small", Frame, bytes_max=30)
    codec.decode(OPPORTUNISTIC.encode(Data((Message((1, 1), (), bytes(10)),))))
    refused(codec, b"\x02" + b"\xc1" * 30, "too large: 31 bytes where 30 are allowed")
    refused(codec, b"\x09" + bytes(30), "too large")


def test_an_oversized_frame_is_not_encoded():
    codec = Codec("small", Frame, bytes_max=30)
    with pytest.raises(LocalError, match=r"too large: 1\d\d bytes where 30 are allowed") as caught:
        codec.encode(Data((Message((1, 1), (), bytes(100)),)))
    assert "30 bytes" in caught.value.hint


def test_a_frame_of_another_family_is_not_encoded():
    with pytest.raises(LocalError, match="not a frame of this family: Request") as caught:
        VCUBE.encode(Request(1, frozenset()))
    assert caught.value.hint == "frames are Packet, Ask, Answer, Known"


ID = (1, 2)
TYPES = [
    ("no such frame", OPPORTUNISTIC, wire("packet", 1, []), "Invalid value 'packet'"),
    ("a frame of another family", VCUBE, wire("request", 1, []), "'request'"),
    ("no tag", OPPORTUNISTIC, wire(1, [ID]), "Expected `str`"),
    ("no array", OPPORTUNISTIC, b"\x02\x07", "Expected `array`, got `int`"),
    ("a field too few", OPPORTUNISTIC, wire("announce", 1), "length"),
    ("a negative number", OPPORTUNISTIC, wire("announce", -1, [ID]), ">= 0"),
    ("a negative acknowledgement", OPPORTUNISTIC, wire("request", -1, [ID]), ">= 0"),
    ("a number too large", OPPORTUNISTIC, wire("announce", END, [ID]), "<= "),
    ("a seq too large", OPPORTUNISTIC, wire("announce", 1, [(1, END)]), "<= 46116"),
    ("a seq too small", OPPORTUNISTIC, wire("announce", 1, [(1, -END)]), ">= -46116"),
    ("a seq beyond int64", OPPORTUNISTIC, wire("announce", 1, [(1, 1 << 63)]), "<= 46116"),
    ("an origin beyond int64", OPPORTUNISTIC, wire("announce", 1, [(1 << 63, 1)]), "<= 46116"),
    ("an origin that is true", OPPORTUNISTIC, wire("announce", 1, [(True, 1)]), "got `bool`"),
    ("an origin that is a float", OPPORTUNISTIC, wire("announce", 1, [(1.0, 1)]), "`float`"),
    ("an origin of bytes", OPPORTUNISTIC, wire("announce", 1, [(b"a", 1)]), "got `bytes`"),
    ("no origin", OPPORTUNISTIC, wire("announce", 1, [(None, 1)]), "got `None`"),
    ("an empty name", OPPORTUNISTIC, wire("announce", 1, [("", 1)]), "length >= 1"),
    ("a name too long", OPPORTUNISTIC, wire("announce", 1, [("é" * 129, 1)]), "length <= 128"),
    (
        "a name that is no text",
        OPPORTUNISTIC,
        wire("announce", 1, [("##", 1)]).replace(b"##", b"\xff\xff"),
        "can't decode byte 0xff",
    ),
    (
        "ids too many",
        OPPORTUNISTIC,
        wire("announce", 1, [(1, n) for n in range(IDS_MAX + 1)]),
        "length <= 2048",
    ),
    (
        "too many that are gone",
        OPPORTUNISTIC,
        wire("data", [], [(1, n) for n in range(IDS_MAX + 1)]),
        "length <= 2048",
    ),
    ("half an id", OPPORTUNISTIC, wire("announce", 1, [(1,)]), "length 2, got 1"),
    ("an id and a half", OPPORTUNISTIC, wire("announce", 1, [(1, 2, 3)]), "length 2, got 3"),
    (
        "a stamp too large",
        OPPORTUNISTIC,
        wire("data", [(ID, [], b"", b"", END)], []),
        "<= 46116",
    ),
    ("a payload of text", OPPORTUNISTIC, wire("data", [(ID, [], "x", b"")], []), "`bytes`"),
    (
        "a proof too long",
        OPPORTUNISTIC,
        wire("data", [(ID, [], b"", bytes(PROOF_BYTES_MAX + 1))], []),
        "length <= 8192",
    ),
    ("a name in a VCube", VCUBE, wire("packet", 1, [(("a", 1), [], b"", b"")]), "`int`"),
    ("an origin below 0", VCUBE, wire("packet", 1, [((-1, 1), [], b"", b"")]), ">= 0"),
    ("a seq below 1", VCUBE, wire("packet", 1, [((1, 0), [], b"", b"")]), ">= 1"),
    ("a cause of seq 0", VCUBE, wire("packet", 1, [(ID, [(0, 0)], b"", b"")]), ">= 1"),
    ("a cause of nobody", VCUBE, wire("packet", 1, [(ID, [(-1, 1)], b"", b"")]), ">= 0"),
    (
        "causes out of order",
        VCUBE,
        wire("packet", 1, [(ID, [(3, 1), (0, 1)], b"", b"")]),
        "causes out of order",
    ),
    (
        "two causes of one origin",
        VCUBE,
        wire("packet", 1, [(ID, [(3, 1), (3, 2)], b"", b"")]),
        "causes out of order",
    ),
    ("a height below 0", VCUBE, wire("packet", -1, []), ">= 0"),
    ("a process below 0", OBSERVER, wire("stamped", (ID, [], b"", b""), -1, (1, 1, [])), ">= 0"),
    (
        "a clock beyond int64",
        OBSERVER,
        wire("stamped", (ID, [], b"", b""), 0, (1 << 63, 1, [])),
        "<= 46116",
    ),
    (
        "a count beyond int64",
        OBSERVER,
        wire("stamped", (ID, [], b"", b""), 0, (1, 1, [1 << 63])),
        "<= 46116",
    ),
]


@pytest.mark.parametrize(
    ("codec", "data", "match"), [row[1:] for row in TYPES], ids=[row[0] for row in TYPES]
)
def test_values_of_other_types_are_refused(codec, data, match):
    error = refused(codec, data, match)
    assert error.problem.startswith("not a frame: ")


def test_an_error_names_the_position_in_the_frame():
    error = refused(OPPORTUNISTIC, wire("announce", 1, [(1, 2), (1, "x")]), "got `str`")
    assert error.where == "opportunistic frame of 20 bytes, $[2][1][1]"


OTHER_BYTES = [
    ("an id that stands twice", wire("announce", 1, [(1, 2), (1, 2)])),
    ("a set out of order", wire("announce", 1, [(2, 1), (1, 2)])),
    ("names before ints", wire("announce", 1, [("a", 1), (1, 2)])),
    ("a field too many", wire("announce", 1, [(1, 2)], 5)),
    ("a message without a proof", wire("data", [(ID, [], b"")], [])),
    ("data without its last field", wire("data", [])),
    ("a number longer than need be", b"\x02\x93\xa7request\xcc\x05\x90"),
    ("a long array of nothing", b"\x02\x93\xa7request\x05\xdc\x00\x00"),
    ("a long string", b"\x02\x93\xd9\x07request\x05\x90"),
]


@pytest.mark.parametrize(
    "data", [row[1] for row in OTHER_BYTES], ids=[row[0] for row in OTHER_BYTES]
)
def test_a_second_way_to_write_a_frame_is_refused(data):
    refused(OPPORTUNISTIC, data, "not in canonical form")


def test_a_duplicate_message_in_a_frame_is_refused():
    messages = [(ID, [], b"one", b""), (ID, [], b"other", b"")]
    refused(OPPORTUNISTIC, wire("data", messages, []), "contradicts itself: a message comes twice")


def test_a_duplicate_cause_is_refused():
    messages = [(ID, [(0, 1), (0, 1)], b"", b"")]
    refused(OPPORTUNISTIC, wire("data", messages, []), r"message \(1, 2\) names a cause twice")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x02",
        wire("request", 1, []) + b"\x00",
        wire("request", 1, [])[:-1],
        b"\x02\x93\xa7request\x01\xdd\xff\xff\xff\xff",
        b"\x02\x92\xa4data\xdd\xff\xff\xff\xff",
        b"\x02\x91\xdb\xff\xff\xff\xff",
        b"\x02" + b"\x91" * 1_000_000,
        b"\x02\x94\xa7request\x01\x90" + b"\x91" * 1_000_000,
        b"\x02\x94\xa7request\x01\x90" + b"\x81" * 1_000_000,
        b"\x02\xc1",
    ],
    ids=[
        "nothing at all",
        "a version alone",
        "a byte too many",
        "a byte too few",
        "four billion ids",
        "four billion messages",
        "four billion letters",
        "a nest of arrays",
        "a nest behind a frame",
        "a nest of maps behind a frame",
        "a byte that means nothing",
    ],
)
def test_bytes_that_are_no_message_pack_are_refused(data):
    refused(OPPORTUNISTIC, data, "^(not a frame|empty): ")


@pytest.mark.parametrize(
    ("frame", "match"),
    [
        (Announce(1, frozenset({("x" * 129, 1)})), "length <= 128"),
        (Announce(1, frozenset({("\ud800", 1)})), "surrogates"),
        (Announce(1, frozenset({(1, END)})), "<= 46116"),
        (Announce(1 << 64, frozenset()), "ints"),
        (Announce(1, frozenset({(1, None)})), "got `None`"),
        (Announce(1, frozenset({object()})), "unsupported|not supported"),
        (Data((Message((1, 1), (), b""),) * 2), "comes twice"),
    ],
)
def test_a_frame_that_no_peer_would_take_is_the_callers_error(frame, match):
    with pytest.raises(LocalError, match=match) as caught:
        OPPORTUNISTIC.encode(frame)
    assert caught.value.problem.startswith("a frame that no peer would accept: ")
    assert caught.value.where


def test_a_family_without_tags_is_no_family():
    with pytest.raises(AssertionError, match="tags"):
        Codec("messages", Message)


# ---- any bytes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", fuzz_codec.fuzz_codecs(), ids=lambda codec: codec.family)
def test_any_bytes_decode_to_a_frame_or_raise_the_codec_error(codec):
    tally = fuzz_codec.fuzz(codec, seed=1, block=0, count=FUZZ_STRINGS)
    assert tally.failures == []
    assert tally.tried == FUZZ_STRINGS == tally.decoded + tally.refused.total()
    assert tally.decoded > FUZZ_STRINGS // 50
    told = {"not a frame", "not in canonical form", "too large", "another wire version", "empty"}
    assert told <= tally.refused.keys()


def test_the_fuzzer_notices_an_exception_and_a_frame_that_changes():
    class Leaky(Codec):
        def decode(self, data):
            return self._decoder.decode(data[1:])

    tally = fuzz_codec.fuzz(Leaky("opportunistic", Frame), seed=1, block=0, count=2_000)
    told = {problem.partition(":")[0] for _, _, problem in tally.failures}
    assert {"ValidationError", "UnicodeDecodeError", "encodes as other bytes"} <= told


def test_the_same_seed_gives_the_same_strings():
    codec = fuzz_codec.fuzz_codecs()[0]
    assert fuzz_codec.fuzz(codec, 3, 1, 500) == fuzz_codec.fuzz(codec, 3, 1, 500)
    assert fuzz_codec.fuzz(codec, 3, 1, 500) != fuzz_codec.fuzz(codec, 3, 2, 500)
