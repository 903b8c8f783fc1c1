"""Run a list of work items on Spark, one task per item.

A task writes its own files atomically. Spark may therefore retry it any number of times, and a
restarted run skips the tasks that a killed run finished.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession

from beforehand.errors import InputError, InputErrors
from beforehand.spark.executors import code_here, other_code, readable_failures
from beforehand.spark.progress import described, progress_bar

Piece = TypeVar("Piece")

REFUSED = "beforehand: refused"
ERRORS_MAX = 5
DONE = "task bigint, answer string"


def run_tasks(
    spark: SparkSession, label: str, work: Sequence[Piece], function: Callable[[Piece], Any]
) -> list[Any]:
    """Return the result of `function` for each item of work, in order. Spark starts the first items
    first.

    Executors import the function, so it must be defined at module level. It must return plain data.
    A task on an executor with other code than this process only reports the difference.
    """
    # `range` puts one row into each partition; `repartition` would leave some empty.
    tasks = spark.range(0, len(work), 1, len(work))
    task = _worker(tuple(work), function, code_here())
    with progress_bar(spark, label), described(spark, label), readable_failures():
        rows = tasks.mapInArrow(task, DONE).collect()
    answers = {row["task"]: msgspec.json.decode(row["answer"]) for row in rows}
    refusals = [answers[task][REFUSED] for task in sorted(answers) if _is_refused(answers[task])]
    refused = dict.fromkeys(
        map(tuple, refusals)
    )  # each task of a machine may report the same problem
    if refused:
        errors = [InputError(problem, where=where, hint=hint) for problem, where, hint in refused]
        raise errors[0] if len(errors) == 1 else InputErrors(errors[:ERRORS_MAX])
    return [answers[task] for task in range(len(work))]


def _answer(function: Callable[[Piece], Any], piece: Piece, expected: str) -> Any:
    """Return the function's result. Return an InputError as data: an exception would arrive as
    pages of Java output."""
    try:
        if code_here() != expected:
            raise other_code(code_here(), expected)
        return function(piece)
    except InputErrors as error:
        first = error.errors[0]
        return {REFUSED: [first.problem, first.where, first.hint]}
    except InputError as error:
        return {REFUSED: [error.problem, error.where, error.hint]}


def _is_refused(answer: Any) -> bool:
    return isinstance(answer, dict) and REFUSED in answer


def _worker(
    work: tuple[Piece, ...], function: Callable[[Piece], Any], expected: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for task in batch["id"].to_numpy().tolist():
                answer = msgspec.json.encode(_answer(function, work[task], expected)).decode()
                yield from pa.table({"task": [task], "answer": [answer]}).to_batches()

    return run
