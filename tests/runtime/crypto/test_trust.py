"""A name is bound to its first key: no other member can use it, and no signed message can be
changed."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beforehand.errors import InputError
from beforehand.protocols.contract.base import Message
from beforehand.protocols.contract.proof import PROOF_HEAD_BYTES, Proofs
from beforehand.runtime.crypto import trust as trust_module
from beforehand.runtime.crypto.keys import new_member
from beforehand.runtime.crypto.trust import Trust


def make(name: str, bound: dict[str, bytes] | None = None) -> tuple[Trust, dict[str, bytes]]:
    told: dict[str, bytes] = {}
    return Trust(name, new_member(), bound or {}, told.__setitem__), told


def test_a_proof_verifies_at_a_node_that_never_met_the_origin():
    ann, _ = make("ann")
    carol, told = make("carol")
    message = Proofs("harbour", ann.sign, ann.check).prove(Message(("ann", 1), (), b"fog"))
    assert Proofs("harbour", carol.sign, carol.check).is_proven(message)
    assert told == {"ann": message.proof[:32]}
    assert carol.counters.bound == 1
    assert ann.check("ann", b"data", ann.sign(b"data"))


@pytest.mark.parametrize(
    "change",
    [
        {"id": ("ann", 2)},
        {"id": ("eve", 1)},
        {"past": (("bob", 1),)},
        {"payload": b"sun"},
    ],
)
def test_any_change_in_a_message_is_detected(change):
    ann, _ = make("ann")
    carol, told = make("carol")
    message = Proofs("harbour", ann.sign, ann.check).prove(Message(("ann", 1), (), b"fog"))
    changed = msgspec.structs.replace(message, **change)
    assert not Proofs("harbour", carol.sign, carol.check).is_proven(changed)
    assert not Proofs("port", carol.sign, carol.check).is_proven(message)
    assert carol.counters.forged == 2
    assert told == {}  # what is not proven binds nothing


def test_another_key_for_a_bound_name_is_refused_and_the_first_stays():
    ann, impostor = make("ann")[0], make("ann")[0]
    carol, told = make("carol")
    assert carol.check("ann", b"1", ann.sign(b"1"))
    assert not carol.check("ann", b"2", impostor.sign(b"2"))
    assert not carol.meet("ann", impostor.sign(b"")[:32])
    assert carol.counters.wrong_key == 2
    assert carol.check("ann", b"3", ann.sign(b"3"))
    assert told == {"ann": ann.sign(b"")[:32]}


def test_name_bindings_survive_a_restart():
    ann, impostor = make("ann")[0], make("ann")[0]
    carol, told = make("carol", {"ann": ann.sign(b"")[:32]})
    assert not carol.check("ann", b"x", impostor.sign(b"x"))
    assert carol.check("ann", b"x", ann.sign(b"x"))
    assert told == {}


def test_no_peer_can_take_the_own_name():
    ann, told = make("ann")
    impostor, _ = make("ann")
    assert not ann.check("ann", b"x", impostor.sign(b"x"))
    assert ann.counters.wrong_key == 1
    assert told == {}
    with pytest.raises(InputError, match="`ann` is bound to another key"):
        make("ann", {"ann": bytes(32)})
    with pytest.raises(InputError, match="no name for a member"):
        make("a\nb")


def test_a_proof_of_another_length_or_without_a_name_is_refused():
    ann, _ = make("ann")
    proof = ann.sign(b"x")
    assert len(proof) == PROOF_HEAD_BYTES == 96
    for origin, bad in (("ann", proof[:-1]), ("ann", proof + b"x"), ("ann", b""), (7, proof)):
        assert not ann.check(origin, b"x", bad)
    assert not ann.check("a\x1bnn", b"x", proof)
    assert ann.counters.malformed == 5


def test_a_link_signature_is_not_accepted_as_a_message_signature():
    ann, _ = make("ann")
    member = new_member()
    carol, _ = make("carol")
    assert not carol.check("ann", b"x", member.public + member.sign(b"x"))
    assert ann.counters.forged == 0


def test_invented_names_use_bounded_memory(monkeypatch):
    monkeypatch.setattr(trust_module, "NAMES_MAX", 10)
    ann, told = make("ann")
    for n in range(20):
        other = make(f"n{n}")[0]
        assert ann.check(f"n{n}", b"x", other.sign(b"x")) == (n < 9)
    assert ann.counters.too_many_names == 11
    assert len(told) == 9


@given(st.sampled_from([7, "", "ann", "eve", "\x1b"]), st.binary(max_size=40), st.binary())
def test_any_bytes_are_refused_without_an_exception(origin, data, proof):
    ann, told = make("ann")
    assert not ann.check(origin, data, proof)
    assert not ann.check(origin, data, proof[:96].ljust(96, b"\0"))
    assert told == {}
