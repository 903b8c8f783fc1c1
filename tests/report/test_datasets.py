"""Datasets that are read from the folder of a run, and those that are refused."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from beforehand.errors import InputError
from beforehand.report.datasets import COLUMNS, read_frame, read_runs, read_scenario
from tests.report.made_up import write_datasets


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_datasets(tmp_path_factory.mktemp("files"))


@pytest.mark.parametrize("name", ["runs", "trace", "quantiles", "scatter", "presence", "gauges"])
def test_a_dataset_may_be_a_file_or_a_folder(name, folder, tmp_path_factory):
    parts = write_datasets(tmp_path_factory.mktemp("folders"), as_folders=True)
    assert (parts / f"{name}.parquet").is_dir()
    assert read_frame(parts, name).equals(read_frame(folder, name))


def test_rows_are_filtered_while_reading(folder):
    rows = read_frame(folder, "gauges", run=["delta-20-0"], node=[3], gauge=["barrier"])
    assert len(rows) == 60
    assert set(rows["node"]) == {3}


def test_a_missing_dataset_is_empty_but_no_runs_are_an_error(folder, tmp_path):
    assert read_frame(tmp_path, "gauges").empty
    assert list(read_frame(tmp_path, "gauges").columns) == list(COLUMNS["gauges"])
    with pytest.raises(InputError, match="no runs to report"):
        read_runs(tmp_path)


def test_a_missing_column_is_named(folder, tmp_path):
    table = pq.read_table(folder / "runs.parquet").drop_columns(["verdict", "frames"])
    pq.write_table(table, tmp_path / "runs.parquet")
    with pytest.raises(InputError, match="`runs` has no column frames, verdict"):
        read_runs(tmp_path)


def test_additional_columns_are_ignored(folder, tmp_path):
    table = pq.read_table(folder / "runs.parquet")
    extra = table.append_column("weather", [["sun"] * len(table)])
    pq.write_table(extra, tmp_path / "runs.parquet")
    assert read_runs(tmp_path) == read_runs(folder)


def test_the_scenario_of_a_folder_has_name_paper_and_changes(folder):
    scenario = read_scenario(folder)
    assert (scenario.name, scenario.paper) == ("city-bus", "opp-buses")
    assert scenario.changes["merged_overlap"] == 12


def test_a_scenario_without_a_title_has_its_name_as_title(tmp_path):
    (tmp_path / "scenario.json").write_text(json.dumps({"name": "mine"}))
    scenario = read_scenario(tmp_path)
    assert (scenario.title, scenario.paper, scenario.parameters) == ("mine", None, {})


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"no scenario\.json here"):
        read_scenario(tmp_path)
    (tmp_path / "scenario.json").write_text('{"name": \n oops')
    with pytest.raises(InputError, match="not JSON") as caught:
        read_scenario(tmp_path)
    assert caught.value.where.endswith("scenario.json:2")


def test_a_trace_on_which_no_message_was_held_has_a_report(folder, tmp_path):
    """The average of no values is null in every run. That was taken for a number out of range."""
    runs = pq.read_table(folder / "runs.parquet")
    place = runs.schema.get_field_index("held_us_avg")
    empty = pa.nulls(len(runs), pa.float64())
    pq.write_table(runs.set_column(place, "held_us_avg", empty), tmp_path / "runs.parquet")
    assert len(read_runs(tmp_path)) == len(runs)
