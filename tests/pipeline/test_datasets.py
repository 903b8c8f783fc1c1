"""Datasets: a name for everything that a content depends on, and nothing half done."""

from __future__ import annotations

import json

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from beforehand.errors import InputError
from beforehand.pipeline import datasets
from beforehand.pipeline.datasets import (
    digest_of_sources,
    plan_dataset,
    write_table,
)
from beforehand.pipeline.schemas import CONTACTS, HOPS, names_of, table_of, table_of_rows

RECIPE = {"inputs": ["a-1"], "parameters": {"range_m": 50.0}, "sources": ["units.py"]}


def name_of(root, **changes):
    return plan_dataset(root, "contacts", "s1", **(RECIPE | changes)).name


def test_a_name_changes_with_every_input_of_the_content(tmp_path):
    names = [
        name_of(tmp_path),
        name_of(tmp_path, inputs=["a-2"]),
        name_of(tmp_path, parameters={"range_m": 51.0}),
        name_of(tmp_path, sources=["errors.py"]),
    ]
    assert len(set(names)) == len(names)
    assert name_of(tmp_path / "elsewhere") == names[0]


def test_a_name_changes_with_the_code(tmp_path, monkeypatch):
    package = tmp_path / "package"
    (package / "core" / "deep").mkdir(parents=True)
    (package / "core" / "deep" / "one.py").write_text("x = 1\n")
    monkeypatch.setattr(datasets, "PACKAGE", package)
    before = digest_of_sources.__wrapped__("core")
    (package / "core" / "deep" / "one.py").write_text("x = 2\n")
    assert digest_of_sources.__wrapped__("core") != before


def test_a_dataset_exists_once_its_manifest_exists(tmp_path):
    dataset = plan_dataset(tmp_path, "contacts", "s1", **RECIPE)
    assert dataset.folder.parent == tmp_path / "data" / "contacts"
    write_table(dataset.file("x.parquet"), pa.table({"a": [1]}))
    assert not dataset.is_whole()
    dataset.commit(rows=1)
    assert dataset.is_whole()
    manifest = dataset.manifest()
    assert (manifest.rows, manifest.facts) == (1, {})
    assert (manifest.stage, manifest.inputs) == ("contacts", ("a-1",))
    assert manifest.parameters == {"range_m": 50.0}
    written = json.loads(dataset.file("manifest.json").read_text())
    assert {"stage", "inputs", "parameters", "version", "sources", "rows"} <= written.keys()


class Count(msgspec.Struct, frozen=True):
    nodes: int


def test_the_results_of_a_stage_are_read_back_unchanged(tmp_path):
    dataset = plan_dataset(tmp_path, "contacts", "s1", **RECIPE)
    dataset.commit(3, Count(7))
    assert dataset.facts(Count) == Count(7)


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda text: text[: len(text) // 2], "not a manifest"),
        (lambda _: "[]", "not a manifest"),
        (lambda text: text.replace('"rows": 3', '"rows": "three"'), "not a manifest"),
        (lambda text: text.replace("50.0", "60.0"), "the manifest of another dataset"),
        (lambda text: text.replace('"nodes": 7', '"places": 7'), "not what `contacts` writes"),
    ],
)
def test_a_broken_or_foreign_manifest_is_refused_with_a_cure(tmp_path, spoil, problem):
    dataset = plan_dataset(tmp_path, "contacts", "s1", **RECIPE)
    dataset.commit(3, Count(7))
    path = dataset.file("manifest.json")
    path.write_text(spoil(path.read_text()))
    with pytest.raises(InputError, match=problem) as refused:
        dataset.facts(Count)
    assert refused.value.where == str(path)
    assert f"remove the folder `{dataset.folder}`" in refused.value.hint


@pytest.mark.parametrize("spoil", ["shorter", "longer", "other", "gone", "no manifest", "old"])
def test_a_dataset_whose_files_differ_from_its_manifest_is_missing(tmp_path, spoil):
    dataset = plan_dataset(tmp_path, "contacts", "s1", **RECIPE)
    path, manifest = dataset.file("x.parquet"), dataset.file("manifest.json")
    write_table(path, pa.table({"a": [1, 2, 3]}))
    write_table(dataset.file("deep") / "y.parquet", pa.table({"a": [1]}))
    dataset.commit(rows=1)
    assert dataset.is_whole()
    assert dataset.manifest().files.keys() == {"x.parquet", "deep/y.parquet"}
    content = path.read_bytes()
    if spoil == "shorter":
        path.write_bytes(content[:-7])
    elif spoil == "longer":
        path.write_bytes(content + b"x")
    elif spoil == "other":
        path.write_bytes(content[::-1])
    elif spoil == "gone":
        path.unlink()
    elif spoil == "no manifest":
        manifest.write_text("{")
    else:
        manifest.write_text(manifest.read_text().replace('"files"', '"folders"'))
    assert not dataset.is_whole()


def test_tables_keep_their_types_when_they_are_empty_or_hold_nothing(tmp_path):
    assert table_of_rows(CONTACTS, []).schema == table_of(CONTACTS, [[1]] * 4).schema
    table = table_of_rows(HOPS, [("r", None, 1)])
    assert table.schema.names == names_of(HOPS)
    write_table(tmp_path / "hops.parquet", table)
    assert pq.read_table(tmp_path / "hops.parquet")["hops"].to_pylist() == [None]
