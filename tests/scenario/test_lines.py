"""In which line of a TOML file a key stands."""

from __future__ import annotations

from beforehand.scenario.lines import key_lines, line_of


def test_each_key_and_table_of_a_toml_file_has_its_line():
    lines = key_lines(
        'top = 1\n[a] # one\nb = """\nx\n"""\n"c" = 2\nd.e = 3\n\n[[f]]\ng = 4\n[[f]]\ng = 5\n'
    )
    assert lines[("top",)] == 1
    assert (lines[("a",)], lines[("a", "b")], lines[("a", "c")]) == (2, 3, 6)
    assert lines[("a", "d", "e")] == 7
    assert (lines[("f", 0, "g")], lines[("f", 1)], lines[("f", 1, "g")]) == (10, 11, 12)
    assert line_of(lines, ("a", "nowhere", "deep")) == 2
    assert line_of(lines, ("z",)) is None
