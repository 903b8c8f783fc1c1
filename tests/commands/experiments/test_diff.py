"""Two runs side by side."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from beforehand.cli import main
from beforehand.commands.experiments.diff import compare
from beforehand.pipeline.experiment import Compared, load_experiment, world_names
from beforehand.report.datasets import COLUMNS, LISTS, TEXTS

PLAIN = Compared("runs", ("protocol",), ("bytes",))


def rows_of(protocol, values):
    return [{"protocol": protocol, "bytes": value} for value in values]


def made_up(column):
    return "x" if column in TEXTS else [1] if column in LISTS else 1


def write_run(folder, world, values):
    """A finished run: every number of the seeds is the value."""
    folder.mkdir()
    (folder / "scenario.json").write_text(json.dumps({"name": "x", "world": world}))
    what = load_experiment(world, where="here").compared
    rows = [
        {
            **{column: made_up(column) for column in COLUMNS[what.table]},
            "seed": seed,
            **dict.fromkeys(what.figures, value),
        }
        for seed, value in enumerate(values)
    ]
    for row in rows:
        row |= {"is_search": True} if world == "cells" else {}
    pq.write_table(pa.Table.from_pylist(rows), folder / f"{what.table}.parquet")
    return str(folder)


def test_means_have_the_interval_of_student():
    # By hand: 1, 2, 3 have the mean 2 and the deviation 1; t is 4.303 with two degrees of freedom.
    [row] = compare(PLAIN, rows_of("causal", [1, 2, 3]), rows_of("causal", [11, 12, 13]))
    assert row.first.mean == 2
    assert row.first.half == pytest.approx(4.303 / 3**0.5)
    assert (row.difference, row.apart) == (10, True)
    [row] = compare(PLAIN, rows_of("causal", [1, 2, 3]), rows_of("causal", [3, 4, 5]))
    assert (row.difference, row.apart) == (2, False)


def test_one_seed_has_no_interval_and_is_never_marked():
    [row] = compare(PLAIN, rows_of("causal", [1]), rows_of("causal", [1000]))
    assert (row.first.half, row.difference, row.apart) == (None, 999, False)


def test_values_of_only_one_run_are_shown_without_a_difference():
    found = compare(PLAIN, rows_of("causal", [1, 2]), rows_of("delta", [1, 2]))
    assert [(r.group["protocol"], r.first is None, r.difference) for r in found] == [
        ("causal", False, None),
        ("delta", True, None),
    ]


@pytest.mark.parametrize("world", world_names())
def test_every_world_is_compared_on_a_terminal_and_as_json(tmp_path, capsys, world):
    one = write_run(tmp_path / "one", world, [1, 1.5, 2])
    two = write_run(tmp_path / "two", world, [101, 101.5, 102])
    assert main(["diff", one, two]) == 0
    assert "*" in capsys.readouterr().out
    assert main(["diff", one, two, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["world"] == world
    what = load_experiment(world, where="here").compared
    assert {row["figure"] for row in told["rows"]} == set(what.figures)
    assert all(row["apart"] and row["difference"] == 100 for row in told["rows"])


def test_folders_of_different_worlds_are_refused(tmp_path, capsys):
    one = write_run(tmp_path / "one", "contacts", [1])
    two = write_run(tmp_path / "two", "overlay", [1])
    assert main(["diff", one, two]) == 2
    assert "two worlds: `contacts` in" in capsys.readouterr().err
    assert main(["diff", one, str(tmp_path)]) == 2
    assert "no scenario.json here" in capsys.readouterr().err


def test_a_run_that_is_not_finished_is_refused(tmp_path, capsys):
    one = write_run(tmp_path / "one", "contacts", [1])
    (tmp_path / "one" / "runs.parquet").unlink()
    assert main(["diff", one, one]) == 2
    assert "no finished run in this folder" in capsys.readouterr().err
