"""The proof of an origin: the fields that it covers, which no forwarding node can change."""

import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beforehand.errors import LocalError
from beforehand.protocols.codecs import OPPORTUNISTIC
from beforehand.protocols.contract.base import PROOF_BYTES_MAX, Message
from beforehand.protocols.contract.proof import SIGNED_PREFIX, Proofs, signed_bytes
from beforehand.protocols.epidemic.frames import Data
from beforehand.protocols.vcube.frames import VCubeMessage

KEYS = {1: b"one", "b": b"two"}
MESSAGE = Message((1, 7), (("b", 3), (2, 4)), b"payload")

NODES = st.integers(0, 3) | st.sampled_from(["", "0", "a", "aa"])
IDS = st.tuples(NODES, st.integers(-2, 300))
MESSAGES = st.builds(
    Message,
    IDS,
    st.lists(IDS, max_size=3).map(tuple),
    st.binary(max_size=4),
    stamp=st.integers(-2, 2),
)
GROUPS = st.sampled_from(["", "g", "group"])


def proofs(node=1, group="buses"):
    """Keyed hashes stand in for signatures."""

    def check(origin, data, proof):
        key = KEYS.get(origin)
        return key is not None and hmac.compare_digest(
            hmac.digest(key, data, hashlib.sha256), proof
        )

    return Proofs(group, lambda data: hmac.digest(KEYS[node], data, hashlib.sha256), check)


def test_a_proof_verifies_at_other_nodes():
    proven = proofs().prove(MESSAGE)
    assert (proven.id, proven.past, proven.payload) == (MESSAGE.id, MESSAGE.past, MESSAGE.payload)
    assert proofs("b").is_proven(proven)


def test_a_proof_survives_being_forwarded():
    frame = Data((proofs().prove(MESSAGE),))
    for _ in range(3):
        frame = OPPORTUNISTIC.decode(OPPORTUNISTIC.encode(frame))
    assert proofs().is_proven(frame.messages[0])


@pytest.mark.parametrize(
    "forged",
    [
        {"id": (1, 8)},
        {"id": ("b", 7)},
        {"id": ("1", 7)},
        {"past": MESSAGE.past[:1]},
        {"past": MESSAGE.past[::-1]},
        {"past": ()},
        {"payload": b"Payload"},
        {"stamp": 1},
        {"proof": b""},
        {"proof": b"x" * 32},
    ],
)
def test_a_change_of_any_signed_field_is_detected(forged):
    proven = proofs().prove(MESSAGE)
    fields = {name: getattr(proven, name) for name in proven.__struct_fields__}
    assert not proofs().is_proven(Message(**{**fields, **forged}))


def test_a_proof_of_one_group_does_not_verify_in_another():
    assert not proofs(group="trams").is_proven(proofs(group="buses").prove(MESSAGE))


def test_a_message_without_a_proof_does_not_verify():
    assert not Proofs("g", bytes, lambda *_: True).is_proven(MESSAGE)


def test_a_message_keeps_its_kind():
    message = VCubeMessage((1, 7), ((0, 3),), b"")
    assert type(proofs().prove(message)) is VCubeMessage


@pytest.mark.parametrize("size", [0, PROOF_BYTES_MAX + 1])
def test_a_signature_that_does_not_fit_is_the_callers_error(size):
    with pytest.raises(LocalError, match=f"a signature of {size} bytes"):
        Proofs("g", lambda _: bytes(size), lambda *_: True).prove(MESSAGE)


@given(one=MESSAGES, other=MESSAGES, groups=st.tuples(GROUPS, GROUPS))
def test_no_two_messages_have_the_same_signed_bytes(one, other, groups):
    is_same = (groups[0], one) == (groups[1], other)
    assert (signed_bytes(groups[0], one) == signed_bytes(groups[1], other)) == is_same


def test_the_signed_bytes_have_not_changed():
    assert SIGNED_PREFIX == b"beforehand message 1\n"
    assert signed_bytes("g", MESSAGE) == SIGNED_PREFIX + bytes.fromhex(
        "94" + "a167" + "920107" + "9292a16203920204" + "c4077061796c6f6164"
    )
    assert signed_bytes("g", proofs().prove(MESSAGE)) == signed_bytes("g", MESSAGE)
    stamped = Message(MESSAGE.id, MESSAGE.past, MESSAGE.payload, stamp=300)
    assert signed_bytes("g", stamped) == SIGNED_PREFIX + bytes.fromhex(
        "95" + "a167" + "920107" + "9292a16203920204" + "c4077061796c6f6164" + "cd012c"
    )


def test_the_border_between_two_fields_is_signed_too():
    one = signed_bytes("1, g", Message(("a", 1), (), b""))
    assert one != signed_bytes("g", Message(("a, 1", 1), (), b""))
