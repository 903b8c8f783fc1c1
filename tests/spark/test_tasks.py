"""Each work item is one task; results come in the order of the items."""

import pytest
from tests.pipeline.in_process import InProcess

from beforehand.spark.tasks import run_tasks


def test_answers_come_in_the_order_of_the_pieces():
    answers = run_tasks(InProcess(), "halves", [4, 7, 1], lambda n: {"half": n / 2, "of": str(n)})
    assert answers == [{"half": n / 2, "of": str(n)} for n in (4, 7, 1)]


def test_an_exception_of_a_piece_is_raised_in_the_driver():
    with pytest.raises(ZeroDivisionError):
        run_tasks(InProcess(), "shares", [1, 0], lambda n: 1 / n)
