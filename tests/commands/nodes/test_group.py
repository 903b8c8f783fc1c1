"""`beforehand group`: a key is made, handed over and changed, and never lost by accident."""

from __future__ import annotations

import json
import stat

import pytest

from beforehand.cli import main
from beforehand.runtime.crypto.keys import GroupKey


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def read(path):
    return GroupKey.read(path)


def test_a_key_goes_from_one_to_another_by_its_invite(tmp_path, capsys):
    assert main(["group", "new", "harbour"]) == 0
    assert capsys.readouterr().out == "harbour.key\n"
    assert stat.S_IMODE((tmp_path / "harbour.key").stat().st_mode) == 0o600
    assert main(["group", "invite", "harbour.key"]) == 0
    invite = capsys.readouterr().out.strip()
    assert main(["group", "join", invite, "--out", "there.key"]) == 0
    assert read(tmp_path / "there.key") == read(tmp_path / "harbour.key")


def test_a_key_is_never_overwritten_by_a_new_one(tmp_path, capsys):
    assert main(["group", "new", "harbour"]) == 0
    before = read(tmp_path / "harbour.key")
    assert main(["group", "new", "harbour"]) == 2
    assert "a file is there already" in capsys.readouterr().err
    assert main(["group", "join", before.rotate().invite(), "--out", "harbour.key"]) == 2
    assert read(tmp_path / "harbour.key") == before


def test_rotating_changes_the_secret_in_its_place(tmp_path, capsys):
    main(["group", "new", "harbour", "--out", "k"])
    before = read(tmp_path / "k")
    assert main(["group", "rotate", "k"]) == 0
    after = read(tmp_path / "k")
    assert after.name == before.name
    assert after.secret != before.secret
    assert list(tmp_path.iterdir()) == [tmp_path / "k"]


def test_a_key_is_rotated_with_an_overlap_and_handed_over_by_an_invite(tmp_path, capsys):
    main(["group", "new", "harbour", "--out", "ann.key"])
    main(["group", "invite", "ann.key"])
    invite = capsys.readouterr().out.split()[-1]
    main(["group", "join", invite, "--out", "bob.key"])
    old = read(tmp_path / "ann.key")
    assert main(["group", "rotate", "ann.key", "--overlap", "7d"]) == 0
    told = capsys.readouterr().err
    assert "Nodes with the old key alone are refused in 7d" in told
    new = read(tmp_path / "ann.key")
    assert [one.id for one in new.live(new.made_us)] == [new.newest.id, old.newest.id]
    assert new.older[0].ends_us == new.made_us + 7 * 86_400_000_000
    main(["group", "invite", "ann.key"])
    invite = capsys.readouterr().out.strip()
    assert main(["group", "join", invite, "--out", "bob.key"]) == 2  # not by accident
    assert main(["group", "join", invite, "--out", "bob.key", "--replace"]) == 0
    assert read(tmp_path / "bob.key").newest == new.newest
    main(["group", "new", "port"])
    assert main(["group", "join", invite, "--out", "port.key", "--replace"]) == 2
    assert "the key of the group `port`" in capsys.readouterr().err
    assert main(["group", "rotate", "ann.key", "--no-answer"]) == 0
    assert read(tmp_path / "ann.key").older == ()


def test_json_has_what_the_lines_have_and_no_secret_but_in_an_invite(tmp_path, capsys):
    assert main(["-q", "group", "new", "harbour", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"name": "harbour", "file": "harbour.key"}
    assert main(["-q", "group", "invite", "harbour.key", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert GroupKey.from_invite(told["invite"]) == read(tmp_path / "harbour.key")
    assert main(["-q", "group", "rotate", "harbour.key", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"name": "harbour", "file": "harbour.key"}
    assert main(["-q", "group", "join", told["invite"], "--out", "x.key", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"name": "harbour", "file": "x.key"}
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["new", ""], "a name has 1 to 128 characters"),
        (["new", "a/b"], "cannot be the name of a file"),
        (["new", "..", "--out", "dots.key"], ""),
        (["new", ".."], "cannot be the name of a file"),
        (["new", "a\x1b[2Jb"], "no control characters"),
        (["invite", "nothing.key"], "no such file"),
        (["rotate", "nothing.key"], "no such file"),
        (["rotate", "nothing.key", "--overlap", "400d"], "too long: `400d`"),
        (["rotate", "nothing.key", "--overlap", "7"], "not a duration"),
        (["join", "hello"], "not an invite"),
        (["join", "beforehand1-AAAA"], "cut short"),
        (["leave"], "no such choice for ACTION: `leave`"),
        ([], "required: ACTION"),
    ],
)
def test_bad_input_is_reported(arguments, problem, capsys):
    assert main(["group", *arguments]) == (2 if problem else 0)
    assert problem in capsys.readouterr().err


def test_a_key_that_others_can_read_is_not_handed_over(tmp_path, capsys):
    main(["group", "new", "harbour"])
    capsys.readouterr()
    (tmp_path / "harbour.key").chmod(0o644)
    assert main(["group", "invite", "harbour.key"]) == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert "others may use this key" in found.err
    assert "chmod 600 harbour.key" in found.err
