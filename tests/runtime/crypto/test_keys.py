"""Keys of groups and members: files that only their owner reads, invites without typing errors."""

from __future__ import annotations

import os
import stat

import msgspec
import pytest

from beforehand.errors import InputError, LocalError
from beforehand.runtime.crypto.keys import GroupKey, GroupSecret, MemberKey, new_group, new_member


def test_a_key_file_is_read_back_and_is_for_its_owner_alone(tmp_path):
    key, path = new_group("harbour"), tmp_path / "harbour.key"
    old = os.umask(0)
    try:
        key.write(path)
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert GroupKey.read(path) == key
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601])
def test_a_key_file_readable_by_others_is_refused_with_a_cure(tmp_path, mode):
    path = tmp_path / "harbour.key"
    new_group("harbour").write(path)
    path.chmod(mode)
    with pytest.raises(InputError, match=f"others may use this key: its mode is {mode:o}") as found:
        GroupKey.read(path)
    assert "chmod 600" in found.value.hint
    assert found.value.where == str(path)


def test_an_existing_key_is_not_overwritten_unless_requested(tmp_path):
    path = tmp_path / "harbour.key"
    first, second = new_group("harbour"), new_group("harbour")
    first.write(path)
    with pytest.raises(InputError, match="there already"):
        second.write(path)
    assert GroupKey.read(path) == first
    second.write(path, replace=True)
    assert GroupKey.read(path) == second
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_dangling_link_is_not_written_through(tmp_path):
    path = tmp_path / "harbour.key"
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="there already"):
        new_group("harbour").write(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not a key",
        b"{}",
        b"\xff\xfe",
        b'{"beforehand_group_key":1,"name":"harbour"}',
        b'{"beforehand_group_key":1,"name":"harbour","secret":"AAAA"}',
        b'{"beforehand_group_key":1,"name":"","secret":"%s"}' % (b"A" * 43 + b"="),
        b'{"beforehand_group_key":1,"name":"a\\nb","secret":"%s"}' % (b"A" * 43 + b"="),
        b'{"beforehand_group_key":1,"name":"a","secret":"%s","more":1}' % (b"A" * 43 + b"="),
        b"[" * 4000,
        b'{"beforehand_group_key":1,"name":"\xff","secret":"%s"}' % (b"A" * 43 + b"="),
    ],
)
def test_a_file_that_is_no_key_file_is_refused_with_its_path(tmp_path, content):
    path = tmp_path / "harbour.key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(InputError) as found:
        GroupKey.read(path)
    assert found.value.where == str(path)


def test_a_key_file_of_another_version_is_refused_with_both_versions(tmp_path):
    path = tmp_path / "harbour.key"
    secret = b"A" * 43 + b"="
    path.write_bytes(b'{"beforehand_group_key":3,"name":"harbour","secret":"%s"}' % secret)
    path.chmod(0o600)
    with pytest.raises(InputError, match="a key file of version 3, not 2"):
        GroupKey.read(path)


def test_a_pipe_a_folder_and_a_missing_file_are_no_keys(tmp_path):
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(InputError, match="not a regular file"):
        GroupKey.read(tmp_path / "pipe")
    with pytest.raises(InputError):
        GroupKey.read(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        GroupKey.read(tmp_path / "nothing")


def test_an_invite_holds_the_whole_key_even_broken_into_lines():
    key = new_group("harbour é 港")
    invite = key.invite()
    assert GroupKey.from_invite(invite) == key
    assert GroupKey.from_invite(f"  {invite[:20]}\n{invite[20:]}\n") == key


def test_an_invite_with_a_typing_error_or_cut_short_is_refused():
    invite = new_group("harbour").invite()
    for at in range(len(invite)):
        other = "x" if invite[at] != "x" else "y"
        with pytest.raises(InputError):
            GroupKey.from_invite(invite[:at] + other + invite[at + 1 :])
        with pytest.raises(InputError):
            GroupKey.from_invite(invite[:at])
    for word in ("", "beforehand1-", "beforehand1-é", "beforehand1-AAAAAAAAAAAAAAAA"):
        with pytest.raises(InputError):
            GroupKey.from_invite(word)


def test_rotating_keeps_the_name_and_nothing_of_the_secret():
    key = new_group("harbour")
    rotated = key.rotate()
    assert rotated.name == key.name
    assert rotated.secret != key.secret


def test_secrets_do_not_show():
    key, member = new_group("harbour"), new_member()
    for secret in (key.secret, member.seed):
        for shown in (repr(key), str(key), repr(member), f"{[key, member]}"):
            assert secret.hex() not in shown
            assert repr(secret)[2:-1] not in shown


@pytest.mark.parametrize(
    "name", ["", "x" * 129, "a\nb", " a", "a ", "\x1b[2J", "a\u202eb", "\ud800"]
)
def test_a_name_with_control_characters_is_refused(name):
    with pytest.raises(InputError, match="a name has"):
        new_group(name)


def test_a_member_is_its_seed():
    member = new_member()
    again = MemberKey(member.seed)
    assert again.public == member.public
    assert again.sign(b"x") == member.sign(b"x")
    assert new_member().public != member.public
    with pytest.raises(LocalError, match="32 bytes"):
        MemberKey(b"short")


def test_a_key_file_has_the_format_of_its_version(tmp_path):
    path = tmp_path / "harbour.key"
    new_group("harbour").rotate(10**6).write(path)
    fields = msgspec.json.decode(path.read_bytes())
    assert list(fields) == ["beforehand_group_key", "name", "secrets"]
    assert fields["beforehand_group_key"] == 2
    assert [list(one) for one in fields["secrets"]] == [["id", "secret", "made_us", "ends_us"]] * 2


def test_a_key_file_of_version_1_is_read(tmp_path):
    path = tmp_path / "harbour.key"
    path.write_bytes(b'{"beforehand_group_key":1,"name":"harbour","secret":"%s="}' % (b"A" * 43))
    path.chmod(0o600)
    assert GroupKey.read(path) == GroupKey("harbour", bytes(32))


def test_a_key_keeps_the_secrets_before_it_until_their_end(tmp_path):
    path, old = tmp_path / "harbour.key", new_group("harbour")
    key = old.rotate(10**9)
    key.write(path)
    assert GroupKey.read(path) == key
    ends_us = key.made_us + 10**9
    assert key.older == (GroupSecret(old.secret, old.made_us, ends_us),)
    assert [one.id for one in key.live(ends_us - 1)] == [key.newest.id, old.newest.id]
    assert (key.live(ends_us), key.ended(ends_us)) == ([key.newest], [key.older[0]])
    # Without an overlap all secrets before it end at once, those of an overlap too.
    last = key.rotate()
    assert last.live(last.made_us) == [last.newest]
    assert [one.id for one in last.ended(last.made_us)] == [key.newest.id, old.newest.id]
    assert last.rotate(is_quiet=True).older == ()
    assert len(last.rotate(1).rotate(1).older) == 2


@pytest.mark.parametrize("change", ["id", "no secret", "an end", "no end", "short", "many"])
def test_a_key_file_that_contradicts_itself_is_refused(tmp_path, change):
    path = tmp_path / "harbour.key"
    new_group("harbour").rotate(10**9).write(path)
    fields = msgspec.json.decode(path.read_bytes())
    newest, old = fields["secrets"]
    if change == "id":
        newest["id"] = old["id"]
    elif change == "no secret":
        fields["secrets"] = []
    elif change == "an end":
        newest["ends_us"] = 1
    elif change == "no end":
        old["ends_us"] = None
    elif change == "short":
        old["secret"], old["id"] = "AAAA", GroupSecret(bytes(3), 0).id
    else:
        fields["secrets"] += [old, old]
    path.write_bytes(msgspec.json.encode(fields))
    with pytest.raises(InputError) as found:
        GroupKey.read(path)
    assert found.value.where == str(path)


def test_the_id_of_a_secret_shows_nothing_of_it():
    key = new_group("harbour")
    assert repr(key.secret)[2:-1] not in repr(key.newest)
    assert key.newest.id not in key.secret.hex()
