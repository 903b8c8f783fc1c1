"""The shortest program that drives cores prints what its page shows."""

import runpy
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "two_nodes.py"


def test_two_nodes_on_one_wire_see_the_question_before_the_answer():
    screen = runpy.run_path(str(EXAMPLE))["main"]()
    for name in ("ann", "bob"):
        assert [text for who, text in screen if who == name] == ["who is there?", "bob"]
