"""The handshake and the records, without a socket: valid ones decrypt, all others do not."""

from __future__ import annotations

import msgspec
import pytest

from beforehand.runtime.crypto import handshake, noise
from beforehand.runtime.crypto.handshake import (
    ANSWER_BYTES,
    COOKIE_BYTES,
    HELLO_BYTES,
    INTRODUCTION_BYTES,
    DialerHandshake,
    Introduction,
    LateMember,
    ListenerHandshake,
    Opener,
    Sealer,
    pad,
    unpad,
)
from beforehand.runtime.crypto.keys import GroupKey, new_group, new_member
from beforehand.runtime.transport.disconnects import Refused

KEY = new_group("harbour-secret-name")
NOW_US = 10**15
ANN, BOB = new_member(), new_member()


def dialer(key: GroupKey = KEY) -> DialerHandshake:
    return DialerHandshake(key, "ann-the-dialer", ANN)


def listener(key: GroupKey = KEY) -> ListenerHandshake:
    return ListenerHandshake(key, "bob-the-listener", BOB, NOW_US)


def refused(kind: str):
    return pytest.raises(Refused, check=lambda error: error.kind == kind)


class Connection:
    """Two ends that have exchanged hello and answer."""

    def __init__(self) -> None:
        self.ann, self.bob = dialer(), listener()
        self.hello = self.ann.on_cookie(self.bob.cookie)
        self.answer, self.bob_out, self.bob_in = self.bob.on_hello(self.hello)
        self.ann_out, self.ann_in = self.ann.on_answer(self.answer)


def test_both_ends_authenticate_and_exchange_records():
    c = Connection()
    sizes = [len(c.bob.cookie), len(c.hello), len(c.answer), len(c.ann.introduction())]
    assert sizes == [COOKIE_BYTES, HELLO_BYTES, ANSWER_BYTES, INTRODUCTION_BYTES]
    found = c.ann.peer()
    assert (found.name, found.public) == ("bob-the-listener", BOB.public)
    found = c.bob.on_introduction(c.bob_in.open(c.ann_out.seal(c.ann.introduction())))
    assert (found.name, found.public) == ("ann-the-dialer", ANN.public)
    for n in range(100):
        assert c.bob_in.open(c.ann_out.seal(b"a%d" % n)) == b"a%d" % n
        assert c.ann_in.open(c.bob_out.seal(b"b%d" % n)) == b"b%d" % n


def test_a_reflected_record_does_not_decrypt():
    c = Connection()
    with refused("altered"):
        c.bob_in.open(c.bob_out.seal(b"an echo"))
    with refused("altered"):
        c.ann_in.open(c.ann_out.seal(b"an echo"))


def test_stealing_all_long_term_keys_later_does_not_decrypt_a_connection(monkeypatch):
    c = Connection()
    assert c.ann._noise._ephemeral == b""
    # The thief has the secret and all bytes that were sent, so all but the shared result of the
    # ephemeral keys, which both ends have dropped.
    thief = c.ann._begin(KEY.newest, c.bob.cookie)
    thief.receive_tokens(c.hello[:32])
    assert thief.open_payload(c.hello[32:]) == b""
    monkeypatch.setattr(noise.bindings, "crypto_scalarmult", lambda own, _: own)
    thief.receive_tokens(c.answer[:32])
    with pytest.raises(noise.DecryptError):
        thief.open_payload(c.answer[32:])


def test_nothing_about_the_group_or_its_members_is_visible():
    c = Connection()
    seen = c.bob.cookie + c.hello + c.answer + c.ann_out.seal(c.ann.introduction())
    for hidden in (b"harbour", b"ann", b"bob", b"bfh", ANN.public, BOB.public, KEY.secret):
        assert hidden not in seen
    assert Connection().hello[:8] != c.hello[:8]


def test_introductions_of_short_and_long_names_have_one_length():
    for name in ("a", "\N{GRINNING FACE}" * 128):
        c = Connection()
        end = DialerHandshake(KEY, name, ANN)
        end.on_answer(c.bob.on_hello(end.on_cookie(c.bob.cookie))[0])
        assert len(end.introduction()) == INTRODUCTION_BYTES
        assert c.bob.on_introduction(end.introduction()).name == name


@pytest.mark.parametrize(
    "key",
    [new_group("harbour-secret-name"), GroupKey("another", KEY.secret), KEY.rotate(is_quiet=True)],
)
def test_another_secret_or_group_is_refused_before_any_reply(key):
    bob = listener()
    with refused("wrong_key"):
        bob.on_hello(dialer(key).on_cookie(bob.cookie))
    bob, ann = listener(key), dialer()
    ann.on_cookie(bob.cookie)
    answer, _, _ = bob.on_hello(dialer(key).on_cookie(bob.cookie))
    with refused("wrong_key"):
        ann.on_answer(answer)


def test_a_hello_with_any_byte_changed_is_refused():
    bob = listener()
    hello = dialer().on_cookie(bob.cookie)
    for at in range(HELLO_BYTES):
        with refused("wrong_key"):
            bob.on_hello(hello[:at] + bytes([hello[at] ^ 1]) + hello[at + 1 :])
    bob.on_hello(hello)


def test_a_hello_of_version_1_is_recognised():
    with refused("another_version"):
        listener().on_hello(b"bfh\n\1".ljust(HELLO_BYTES, b"x"))


def test_a_hello_opens_for_the_cookie_of_its_connection_alone():
    bob = listener()
    hello = dialer().on_cookie(bob.cookie)
    with refused("wrong_key"):
        listener().on_hello(hello)
    bob.on_hello(hello)


def test_no_cookie_is_used_twice():
    assert len({listener().cookie for _ in range(100)}) == 100


def test_an_answer_to_another_hello_is_refused():
    bob, ann = listener(), dialer()
    ann.on_cookie(bob.cookie)
    answer, _, _ = bob.on_hello(dialer().on_cookie(bob.cookie))
    with refused("wrong_key"):
        ann.on_answer(answer)


def test_a_reflected_hello_is_refused():
    bob, ann = listener(), dialer()
    hello = ann.on_cookie(bob.cookie)
    with refused("wrong_key"):
        ann.on_answer(hello.ljust(ANSWER_BYTES, b"\0"))
    answer, _, _ = bob.on_hello(hello)
    with refused("wrong_key"):
        listener().on_hello(answer[:HELLO_BYTES])


def test_a_replayed_introduction_does_not_open_on_another_connection():
    c, again = Connection(), Connection()
    with refused("altered"):
        again.bob_in.open(c.ann_out.seal(c.ann.introduction()))


def test_an_introduction_counts_for_its_connection_role_name_and_key_alone():
    c = Connection()
    padded = c.ann.introduction()
    good = msgspec.msgpack.decode(unpad(padded), type=Introduction)
    assert c.bob.on_introduction(padded) == good
    with refused("forged"):
        c.bob.on_introduction(Connection().ann.introduction())  # another connection
    for change in ({"public": BOB.public}, {"name": "eve"}, {"signature": bytes(64)}):
        changed = msgspec.structs.replace(good, **change)
        with refused("forged"):
            c.bob.on_introduction(pad(msgspec.msgpack.encode(changed)))
    for change in ({"public": b""}, {"name": "e\nve"}, {"name": ""}, {"signature": b"x"}):
        changed = msgspec.structs.replace(good, **change)
        with refused("malformed"):
            c.bob.on_introduction(pad(msgspec.msgpack.encode(changed)))
    for garbage in (
        b"",
        b"\xc0",
        b"\x93\xa1\xff\xc4\x00\xc4\x00",
        unpad(padded)[:-1],
        b"\x93\xa1a\xc4\x00\xc4\x00\x00",
    ):
        with refused("malformed"):
            c.bob.on_introduction(pad(garbage))


def test_a_signature_of_one_role_does_not_count_for_the_other():
    """The roles alone keep these apart: the hash that is signed is the same."""
    c = Connection()
    as_dialer, as_listener = c.ann._introduce(b"hash"), c.bob._introduce(b"hash")
    assert c.bob._check(as_dialer, b"hash").name == "ann-the-dialer"
    assert c.ann._check(as_listener, b"hash").name == "bob-the-listener"
    with refused("forged"):
        c.ann._check(as_dialer, b"hash")
    with refused("forged"):
        c.bob._check(as_listener, b"hash")


def test_the_secret_before_a_rotation_opens_until_it_ends():
    new = KEY.rotate(10**6)
    ends_us = new.older[0].ends_us
    assert ends_us is not None
    bob = ListenerHandshake(new, "bob", BOB, ends_us - 1)
    bob.on_hello(dialer(KEY).on_cookie(bob.cookie))
    assert bob.secret.id == KEY.newest.id
    bob = ListenerHandshake(new, "bob", BOB, ends_us - 1)
    bob.on_hello(dialer(new).on_cookie(bob.cookie))
    assert bob.secret.id == new.newest.id


def test_a_dialer_whose_secret_has_ended_gets_one_sealed_word():
    new, ann = KEY.rotate(10**6), dialer()
    ends_us = new.older[0].ends_us
    bob = ListenerHandshake(new, "bob", BOB, ends_us)
    with pytest.raises(LateMember) as late:
        bob.on_hello(ann.on_cookie(bob.cookie))
    assert len(late.value.answer) == ANSWER_BYTES  # as long as any answer
    with refused("rotated"):
        ann.on_answer(late.value.answer)
    quiet = ListenerHandshake(KEY.rotate(is_quiet=True), "bob", BOB, ends_us)
    with refused("wrong_key"):
        quiet.on_hello(ann.on_cookie(quiet.cookie))


def test_padding_has_one_form():
    padded = pad(b"content")
    assert unpad(padded) == b"content"
    for wrong in (b"", padded[:-1], padded + b"\0", padded[:-1] + b"x", b"\xff\xff" + padded[2:]):
        with refused("malformed"):
            unpad(wrong)


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
