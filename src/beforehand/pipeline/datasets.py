"""Where the results of a stage are, and whether they are complete.

A dataset is a folder `data/<stage>/<name>-<hash>`. The hash is that of everything the content
depends on: the parameters, the datasets it was made from, and the source code that made it. So a
dataset is never out of date and never written over; either it is there or it has to be computed.
`manifest.json` is written last, in one piece: a folder without it was left behind by a run that was
killed, and is made again.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

MANIFEST = "manifest.json"
HASH_DIGITS = 12
PACKAGE = Path(__file__).parent.parent


@dataclass(frozen=True)
class Dataset:
    """One folder, there or not yet."""

    folder: Path
    recipe: Mapping[str, Any]
    """Stage, inputs, parameters and version: what the hash in the name stands for."""

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def exists(self) -> bool:
        return self.file(MANIFEST).exists()

    def file(self, name: str) -> Path:
        return self.folder / name

    def commit(self, **facts: Any) -> None:
        """Say that all files are there. `facts` are what was found out while making them."""
        text = json.dumps({**self.recipe, **facts}, indent=2, sort_keys=True, ensure_ascii=False)
        write_text(self.file(MANIFEST), text + "\n")

    def manifest(self) -> dict[str, Any]:
        manifest: dict[str, Any] = json.loads(self.file(MANIFEST).read_text())
        return manifest


def plan_dataset(
    root: Path,
    stage: str,
    label: str,
    *,
    inputs: Sequence[str],
    parameters: Mapping[str, Any],
    sources: Sequence[str],
) -> Dataset:
    """The dataset that `stage` would make of these inputs with this code. Nothing is written.

    inputs: names of other datasets, or digests of files. sources: the parts of this package, as
    paths within it, that decide what comes out.
    """
    recipe = {
        "stage": stage,
        "inputs": list(inputs),
        "parameters": dict(parameters),
        "version": version("beforehand"),
        "sources": digest_of_sources(*sources),
    }
    text = json.dumps(recipe, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]
    return Dataset(root.absolute() / "data" / stage / f"{label}-{digest}", recipe)


@functools.cache
def digest_of_sources(*paths: str) -> str:
    """Of the Python files below these folders of the package, and of these files."""
    files = [file for path in paths for file in sorted((PACKAGE / path).rglob("*.py"))]
    files += [PACKAGE / path for path in paths if path.endswith(".py")]
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:HASH_DIGITS]


def write_table(path: Path, table: pa.Table) -> None:
    """Parquet, whole or not at all."""
    with replaced(path) as partial:
        pq.write_table(table, partial, compression="zstd")


def write_text(path: Path, text: str) -> None:
    """Whole or not at all."""
    with replaced(path) as partial:
        partial.write_text(text, encoding="utf-8")


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A path to write to, which becomes `path` when the block is done.

    Its name is this process's own: a task that was given up may still be writing somewhere while
    another makes the same file again. Both write the same, and the last one stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    yield partial
    partial.replace(path)
