"""The text of an error, which a program shows, logs and tests."""

import pickle

from beforehand.errors import InputError, InputErrors, RemoteError


def test_the_text_of_an_error_has_problem_place_and_hint():
    error = InputError("no such file", where="out/log.parquet", hint="check the path")
    assert str(error) == "no such file\n  at out/log.parquet\nhint: check the path"
    assert str(RemoteError("not a frame")) == "not a frame"


def test_the_text_of_several_errors_has_all_of_each():
    first = InputError("no such key", where="a.toml: seeds", hint="did you mean `seed`?")
    text = str(InputErrors([first, InputError("too large", where="b.toml", hint="at most 9")]))
    assert text.startswith("2 problems")
    for part in ("no such key", "a.toml: seeds", "`seed`?", "too large", "b.toml", "at most 9"):
        assert part in text


def test_the_text_of_an_error_survives_the_way_from_a_worker_process():
    error = InputErrors([InputError("too large", where="b.toml", hint="at most 9")])
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_the_text_of_an_error_has_no_control_characters_of_untrusted_names():
    assert "\x1b" not in str(InputError("no node `\x1b[2J`", where="\x1b", hint="\x1b"))
