"""The handshake and the records, without a socket: valid ones decrypt, all others do not."""

from __future__ import annotations

import msgspec
import pytest

from beforehand.runtime.crypto import handshake
from beforehand.runtime.crypto.handshake import HELLO_BYTES, Handshake, Introduction, Opener, Sealer
from beforehand.runtime.crypto.keys import GroupKey, new_group, new_member
from beforehand.runtime.transport.disconnects import Refused

KEY = new_group("harbour-secret-name")
ANN, BOB = new_member(), new_member()


def dialer(key: GroupKey = KEY) -> Handshake:
    return Handshake(key, "ann-the-dialer", ANN, is_dialer=True)


def listener(key: GroupKey = KEY) -> Handshake:
    return Handshake(key, "bob-the-listener", BOB, is_dialer=False)


def refused(kind: str):
    return pytest.raises(Refused, check=lambda error: error.kind == kind)


def test_both_ends_authenticate_and_exchange_records():
    ann, bob = dialer(), listener()
    bob_out, bob_in = bob.on_hello(ann.hello)
    ann_out, ann_in = ann.on_hello(bob.hello)
    assert len(ann.hello) == len(bob.hello) == HELLO_BYTES
    found = ann.on_introduction(ann_in.open(bob_out.seal(bob.introduction())))
    assert (found.name, found.public) == ("bob-the-listener", BOB.public)
    found = bob.on_introduction(bob_in.open(ann_out.seal(ann.introduction())))
    assert (found.name, found.public) == ("ann-the-dialer", ANN.public)
    for n in range(100):
        assert bob_in.open(ann_out.seal(b"a%d" % n)) == b"a%d" % n
        assert ann_in.open(bob_out.seal(b"b%d" % n)) == b"b%d" % n


def test_a_reflected_record_does_not_decrypt():
    ann, bob = dialer(), listener()
    bob.on_hello(ann.hello)
    ann_out, ann_in = ann.on_hello(bob.hello)
    with refused("altered"):
        ann_in.open(ann_out.seal(b"an echo"))


def test_stealing_all_long_term_keys_later_does_not_decrypt_a_connection(monkeypatch):
    ann, bob = dialer(), listener()
    _, bob_in = bob.on_hello(ann.hello)
    scalarmult = handshake.bindings.crypto_scalarmult
    # A thief has secret, seeds and all that was said, so all of this but the result of the fresh
    # keys; those were forgotten.
    monkeypatch.setattr(
        handshake.bindings, "crypto_scalarmult", lambda own, _: scalarmult(own, own)
    )
    thief_out, _ = ann.on_hello(bob.hello)
    with refused("altered"):
        bob_in.open(thief_out.seal(b"x"))
    assert ann._ephemeral == bob._ephemeral == b""


def test_the_group_secret_enters_the_session_keys_and_not_the_hello_alone():
    ann, bob = dialer(), listener()
    ann._sealing_key = dialer(KEY.rotate())._sealing_key
    _, bob_in = bob.on_hello(ann.hello)
    ann_out, _ = ann.on_hello(bob.hello)
    with refused("altered"):
        bob_in.open(ann_out.seal(b"x"))


def test_nothing_about_the_group_or_its_members_is_visible():
    ann, bob = dialer(), listener()
    bob_out, _ = bob.on_hello(ann.hello)
    ann_out, _ = ann.on_hello(bob.hello)
    seen = ann.hello + bob.hello
    seen += bob_out.seal(bob.introduction()) + ann_out.seal(ann.introduction())
    for hidden in (b"harbour", b"ann", b"bob", ANN.public, BOB.public, KEY.secret):
        assert hidden not in seen
    assert dialer().hello[5:] != ann.hello[5:]


@pytest.mark.parametrize(
    "key", [new_group("harbour-secret-name"), GroupKey("another", KEY.secret), KEY.rotate()]
)
def test_another_secret_or_group_is_refused_before_any_reply(key):
    with refused("wrong_key"):
        listener().on_hello(dialer(key).hello)
    bob = listener(key)
    bob.on_hello(dialer(key).hello)
    with refused("wrong_key"):
        dialer().on_hello(bob.hello)


def test_a_hello_with_any_byte_changed_is_refused():
    hello = dialer().hello
    for at in range(HELLO_BYTES):
        changed = hello[:at] + bytes([hello[at] ^ 1]) + hello[at + 1 :]
        kind = "no_key" if at < 4 else "another_version" if at == 4 else "wrong_key"
        with refused(kind):
            listener().on_hello(changed)


def test_an_answer_to_another_hello_is_refused():
    bob = listener()
    bob.on_hello(dialer().hello)
    with refused("wrong_key"):
        dialer().on_hello(bob.hello)


def test_a_reflected_hello_is_refused():
    ann = dialer()
    with refused("wrong_key"):
        ann.on_hello(ann.hello)
    bob = listener()
    bob.on_hello(ann.hello)
    with refused("wrong_key"):
        listener().on_hello(bob.hello)


def test_a_replayed_hello_gives_no_connection():
    ann, bob = dialer(), listener()
    bob_out, _ = bob.on_hello(ann.hello)
    ann_out, _ = ann.on_hello(bob.hello)
    introduction = ann_out.seal(ann.introduction())
    again = listener()
    _, again_in = again.on_hello(ann.hello)  # valid as such, so it is answered
    with refused("altered"):
        again_in.open(introduction)
    assert bob_out


def test_a_fresh_key_that_fixes_the_result_is_refused():
    # The point of order one: whatever our key is, the shared one is zero.
    class Weak(Handshake):
        def _make_hello(self, before: bytes) -> bytes:
            content = handshake.MAGIC + bytes([handshake.VERSION]) + bytes(32)
            return content + self._tag(self.is_dialer, before, content)

    with refused("altered"):
        listener().on_hello(Weak(KEY, "ann", ANN, is_dialer=True).hello)


def connected() -> tuple[Handshake, Handshake]:
    ann, bob = dialer(), listener()
    bob.on_hello(ann.hello)
    ann.on_hello(bob.hello)
    return ann, bob


def test_an_introduction_counts_for_its_connection_role_name_and_key_alone():
    ann, bob = connected()
    good = msgspec.msgpack.decode(ann.introduction(), type=Introduction)
    assert bob.on_introduction(ann.introduction()) == good
    elsewhere, _ = connected()
    with refused("forged"):
        bob.on_introduction(elsewhere.introduction())  # another connection
    with refused("forged"):
        bob.on_introduction(bob.introduction())  # thrown back
    for change in ({"public": BOB.public}, {"name": "eve"}, {"signature": bytes(64)}):
        with refused("forged"):
            bob.on_introduction(msgspec.msgpack.encode(msgspec.structs.replace(good, **change)))
    for change in ({"public": b""}, {"name": "e\nve"}, {"name": ""}, {"signature": b"x"}):
        with refused("malformed"):
            bob.on_introduction(msgspec.msgpack.encode(msgspec.structs.replace(good, **change)))
    for garbage in (
        b"",
        b"\xc0",
        b"\x93\xa1\xff\xc4\x00\xc4\x00",
        ann.introduction()[:-1],
        b"\x93\xa1a\xc4\x00\xc4\x00\x00",
    ):
        with refused("malformed"):
            bob.on_introduction(garbage)


def test_records_that_were_changed_left_out_doubled_or_swapped_do_not_open():
    sealer = Sealer(bytes(32))
    first, second = sealer.seal(b"first"), sealer.seal(b"second")

    def opener() -> Opener:
        return Opener(bytes(32))

    for at in range(len(first)):
        with refused("altered"):
            opener().open(first[:at] + bytes([first[at] ^ 0x80]) + first[at + 1 :])
        with refused("altered"):
            opener().open(first[:at])
    with refused("altered"):
        opener().open(second)  # the first was left out
    twice = opener()
    assert twice.open(first) == b"first"
    with refused("altered"):
        twice.open(first)
    assert twice.open(second) == b"second"
    with refused("altered"):
        twice.open(second)
    with refused("altered"):
        Opener(bytes([1]) * 32).open(first)


def test_both_ends_rekey_after_many_records(monkeypatch):
    monkeypatch.setattr(handshake, "REKEY_RECORDS", 3)
    sealer, opener = Sealer(bytes(32)), Opener(bytes(32))
    keys = set()
    for n in range(20):
        keys.add(sealer._key)
        assert opener.open(sealer.seal(b"%d" % n)) == b"%d" % n
    assert len(keys) == 7
