"""One signature for several messages: each is proven alone, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beforehand.protocols.contract.proof import PROOF_HEAD_BYTES
from beforehand.runtime.crypto import merkle, trust
from beforehand.runtime.crypto.keys import new_member
from beforehand.runtime.crypto.trust import Trust


def root_of(content: bytes, path: bytes) -> bytes:
    *_, last = merkle.climb(merkle.leaf_of(content), path)
    return last.removeprefix(merkle.TOP)


def grown(contents: list[bytes]) -> tuple[bytes, list[bytes]]:
    return merkle.grow([merkle.leaf_of(content) for content in contents])


CONTENTS = st.lists(st.binary(max_size=20), min_size=2, max_size=merkle.LEAVES_MAX)


@given(contents=CONTENTS)
def test_every_path_leads_to_the_root(contents):
    root, paths = grown(contents)
    assert {root_of(*pair) for pair in zip(contents, paths, strict=True)} == {root}


@given(contents=CONTENTS, other=st.binary(max_size=20), place=st.integers(0, 63))
def test_no_path_leads_from_anything_else_to_the_root(contents, other, place):
    root, paths = grown(contents)
    place %= len(contents)
    if other != contents[place]:
        assert root_of(other, paths[place]) != root


def test_an_inner_merkle_node_is_not_accepted_as_a_message():
    root, paths = grown([b"a", b"b", b"c", b"d"])
    beside = paths[0][-32:]
    both = merkle.leaf_of(b"a") + merkle.leaf_of(b"b")
    assert merkle._inner(merkle._inner(both[:32], both[32:]), beside) == root
    assert root_of(both, bytes((1, 0)) + beside) != root


@pytest.mark.parametrize(
    "path",
    [
        b"",
        b"\x01",
        b"\x00\x00",
        bytes((1, 2)) + bytes(32),
        bytes((1, 0)) + bytes(31),
        bytes((1, 0)) + bytes(33),
        bytes((7, 0)) + bytes(7 * 32),
        bytes((2, 0)) + bytes(32),
    ],
)
def test_a_malformed_path_is_refused(path):
    assert not merkle.is_path(path)
    ann, bob = ann_and_bob()
    assert not bob.check("ann", b"a", ann.sign(b"a") + path) or not path


def ann_and_bob():
    member = new_member()
    bound = {}
    return (
        Trust("ann", member, {}, bound.__setitem__),
        Trust("bob", new_member(), {}, bound.__setitem__),
    )


@pytest.mark.parametrize("count", [1, 2, 3, 16, 64, 65, 129, 200])
def test_messages_signed_together_verify_alone_and_in_any_order(count):
    ann, bob = ann_and_bob()
    datas = [b"%d" % index for index in range(count)]
    proofs = ann.sign_all(datas)
    pairs = list(zip(datas, proofs, strict=True))
    assert all(bob.check("ann", *pair) for pair in reversed(pairs))
    assert len(proofs[0]) == PROOF_HEAD_BYTES if count == 1 else len(proofs[0]) > PROOF_HEAD_BYTES
    assert not bob.check("ann", b"another", proofs[0])
    assert not bob.check("eve", datas[0], b"\x01" * 32 + proofs[0][32:])


def test_a_shared_signature_is_verified_once(monkeypatch):
    ann, bob = ann_and_bob()
    datas = [b"%d" % index for index in range(64)]
    checked = []
    is_signed = trust.is_signed
    monkeypatch.setattr(trust, "is_signed", lambda *a: checked.append(1) or is_signed(*a))
    assert all(map(lambda *pair: bob.check("ann", *pair), datas, ann.sign_all(datas)))
    assert len(checked) == 1


def test_a_changed_signature_is_refused_even_if_the_root_is_known():
    """Otherwise the node would store and forward it, and peers without the root would refuse it."""
    ann, bob = ann_and_bob()
    one, other = ann.sign_all([b"one", b"other"])
    assert bob.check("ann", b"one", one)
    changed = other[:40] + bytes([other[40] ^ 1]) + other[41:]
    assert not bob.check("ann", b"other", changed)
    assert bob.check("ann", b"other", other)


def test_a_tree_of_another_member_is_refused():
    ann, bob = ann_and_bob()
    eve = Trust("eve", new_member(), {}, lambda *_: None)
    assert bob.check("ann", b"one", ann.sign(b"one"))
    assert not bob.check("ann", b"two", eve.sign_all([b"two", b"three"])[0])
    assert bob.counters.wrong_key == 1


def test_the_common_part_of_paths_is_hashed_once(monkeypatch):
    ann, bob = ann_and_bob()
    datas = [b"%d" % index for index in range(64)]
    proofs = ann.sign_all(datas)
    hashed, inner = [], merkle._inner
    monkeypatch.setattr(merkle, "_inner", lambda *pair: hashed.append(1) or inner(*pair))
    assert all(map(lambda *pair: bob.check("ann", *pair), datas, proofs))
    assert len(hashed) < 2 * len(datas)  # and not six for each


@given(place=st.integers(0, 7), at=st.integers(PROOF_HEAD_BYTES, PROOF_HEAD_BYTES + 2 + 3 * 32 - 1))
def test_a_changed_path_is_refused_even_if_the_tree_is_known(place, at):
    ann, bob = ann_and_bob()
    datas = [b"%d" % index for index in range(8)]
    proofs = ann.sign_all(datas)
    assert all(map(lambda *pair: bob.check("ann", *pair), datas, proofs))
    proof = proofs[place]
    changed = proof[:at] + bytes([proof[at] ^ 1]) + proof[at + 1 :]
    assert not bob.check("ann", datas[place], changed)


def test_the_memory_of_verified_hashes_is_bounded(monkeypatch):
    monkeypatch.setattr(trust, "SHOWN_MAX", 3)
    ann, bob = ann_and_bob()
    for index in range(10):
        datas = [b"a%d" % index, b"b%d" % index]
        assert bob.check("ann", datas[0], ann.sign_all(datas)[0])
    assert len(bob._shown) + len(bob._shown_before) <= 2 * 4


def signed(ann, datas, origin="ann"):
    return [(origin, data, proof) for data, proof in zip(datas, ann.sign_all(datas), strict=True)]


@pytest.mark.parametrize("count", [1, 2, 3, 64, 65, 200])
@pytest.mark.parametrize("is_met", [False, True])
def test_batched_verification_equals_single_verification(count, is_met):
    ann, bob = ann_and_bob()
    if is_met:
        assert bob.meet("ann", ann.key_of("ann"))
    together = signed(ann, [b"%d" % index for index in range(count)])
    mixed = [*together[5:], ("eve", *together[0][1:]), *together[:5]]
    assert bob.check_all(together) == [True] * count
    assert bob.check_all(mixed) == [bob.check(*one) for one in mixed]


def test_a_whole_tree_costs_one_signature_and_no_path(monkeypatch):
    ann, bob = ann_and_bob()
    assert bob.meet("ann", ann.key_of("ann"))
    together = signed(ann, [b"%d" % index for index in range(64)])
    monkeypatch.setattr(merkle, "climb", None)
    assert all(bob.check_all(together))


def test_a_part_of_a_tree_is_hashed_once(monkeypatch):
    """Long messages that were signed together do not fit into one frame."""
    ann, bob = ann_and_bob()
    assert bob.meet("ann", ann.key_of("ann"))
    together = signed(ann, [b"%d" % index for index in range(64)])
    hashed, leaf_of = [], merkle.leaf_of
    monkeypatch.setattr(merkle, "leaf_of", lambda data: hashed.append(data) or leaf_of(data))
    assert all(bob.check_all(together[:3]))
    assert len(hashed) == 3


@pytest.mark.parametrize("place", [0, 17, 63])
def test_one_message_of_a_batch_with_another_path_is_refused(place):
    """It leads nowhere for those to whom it would be passed on."""
    ann, bob = ann_and_bob()
    assert bob.meet("ann", ann.key_of("ann"))
    together = signed(ann, [b"%d" % index for index in range(64)])
    origin, data, proof = together[place]
    together[place] = (origin, data, proof[:-1] + bytes((proof[-1] ^ 1,)))
    assert [index for index, is_fine in enumerate(bob.check_all(together)) if not is_fine] == [
        place
    ]
    changed = [*together[:place], (origin, b"another", proof), *together[place + 1 :]]
    assert [index for index, is_fine in enumerate(bob.check_all(changed)) if not is_fine] == [place]


def test_a_whole_tree_that_another_key_signed_is_refused():
    ann, bob = ann_and_bob()
    eve = Trust("ann", new_member(), {}, lambda *_: None)
    assert bob.meet("ann", ann.key_of("ann"))
    together = signed(eve, [b"a", b"b", b"c"])
    assert bob.check_all(together) == [False] * 3
    assert bob.counters.wrong_key == 3
    root, start = ann.key_of("ann"), len(ann.key_of("ann"))
    posing = [(origin, data, root + proof[start:]) for origin, data, proof in together]
    assert bob.check_all(posing) == [False] * 3
    assert bob.counters.forged == 3
