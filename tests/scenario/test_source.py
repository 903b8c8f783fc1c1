"""Where mobility comes from: a file is known by what is in it."""

from __future__ import annotations

from beforehand.scenario.source import digest_of_input


def test_an_input_is_its_content(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "stops.txt").write_text("1,2\n")
    assert digest_of_input(tmp_path / "one") == digest_of_input(tmp_path / "two")
    (tmp_path / "two" / "stops.txt").write_text("1,3\n")
    assert digest_of_input(tmp_path / "one") != digest_of_input(tmp_path / "two")
    (tmp_path / "one" / "stops.txt").rename(tmp_path / "one" / "shapes.txt")
    (tmp_path / "two" / "stops.txt").write_text("1,2\n")
    assert digest_of_input(tmp_path / "one") != digest_of_input(tmp_path / "two")
    file = tmp_path / "one" / "shapes.txt"
    assert digest_of_input(file) != digest_of_input(tmp_path / "one")
