"""Datasets: the folders that hold the results of a stage, and their integrity check.

A dataset is a folder `data/<stage>/<name>-<hash>`. The hash covers everything that the content
depends on: the parameters, the input datasets, and the source code that made it. A dataset is
therefore never stale and never overwritten; it either exists or has to be computed.

The stage writes `manifest.json` last and atomically. A folder without a manifest belongs to a run
that was killed, and the next run computes it again. The next run also recomputes a dataset whose
files do not match its manifest.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from beforehand.errors import InputError
from beforehand.files import MANIFEST, Mark, find_damage, marks_below, replaced, write_text
from beforehand.temporary import remove_left_behind

HASH_DIGITS = 12
PACKAGE = Path(__file__).parent.parent


Facts = TypeVar("Facts", bound=msgspec.Struct)


class Recipe(msgspec.Struct, frozen=True):
    """Everything that the content of a dataset depends on."""

    stage: str
    inputs: tuple[str, ...]
    parameters: dict[str, Any]
    version: str
    sources: str

    def digest(self) -> str:
        """Return the hash that ends the name of the folder."""
        every = msgspec.to_builtins(self)
        text = json.dumps({key: every[key] for key in Recipe.__struct_fields__}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]


class Manifest(Recipe, frozen=True):
    """The content of `manifest.json`: the hashed recipe, and a description of the result."""

    rows: int
    files: dict[str, Mark]
    """The length and digest of each file, by its path within the folder."""
    facts: dict[str, Any] = {}
    """Results about the dataset as a whole; each stage has its own fields."""


@dataclass(frozen=True)
class Dataset:
    """One dataset folder, which may not exist yet."""

    folder: Path
    recipe: Recipe

    @property
    def name(self) -> str:
        return self.folder.name

    def is_whole(self) -> bool:
        """Return whether the dataset was committed and is unchanged since. Reads all its files."""
        return not find_damage(self.folder)

    def file(self, name: str) -> Path:
        return self.folder / name

    def commit(self, rows: int = 0, facts: msgspec.Struct | None = None) -> None:
        """Write the manifest, which marks the dataset as complete. Remove partial files of killed
        tasks."""
        remove_left_behind(self.folder, ".*")
        known = {} if facts is None else msgspec.to_builtins(facts)
        recipe, files = msgspec.structs.asdict(self.recipe), marks_below(self.folder)
        made = Manifest(**recipe, rows=rows, files=files, facts=known)
        text = msgspec.json.encode(made, order="sorted")
        write_text(self.file(MANIFEST), msgspec.json.format(text, indent=2).decode() + "\n")

    def manifest(self) -> Manifest:
        """Return the manifest that `commit` wrote. Raise InputError if the file holds anything
        else."""
        try:
            found = msgspec.json.decode(self.file(MANIFEST).read_bytes(), type=Manifest)
        except (OSError, msgspec.MsgspecError) as error:
            raise self._refused(f"not a manifest: {error}") from error
        if not self.name.endswith(found.digest()):
            raise self._refused("the manifest of another dataset")
        return found

    def facts(self, kind: type[Facts]) -> Facts:
        """Return the facts that the stage stored in the manifest."""
        try:
            return msgspec.convert(self.manifest().facts, kind)
        except msgspec.ValidationError as error:
            raise self._refused(f"not what `{self.recipe.stage}` writes: {error}") from error

    def _refused(self, problem: str) -> InputError:
        hint = f"remove the folder `{self.folder}`, and run the scenario again to make it anew"
        return InputError(problem, where=str(self.file(MANIFEST)), hint=hint)


def plan_dataset(
    root: Path,
    stage: str,
    label: str,
    *,
    inputs: Sequence[str],
    parameters: Mapping[str, Any],
    sources: Sequence[str],
) -> Dataset:
    """Return the dataset that `stage` would make of these inputs with this code. Write nothing.

    inputs: names of other datasets, or digests of files.
    sources: the parts of this package, as paths within it, that determine the content.
    """
    recipe = Recipe(
        stage=stage,
        inputs=tuple(inputs),
        parameters=dict(parameters),
        version=version("beforehand"),
        sources=digest_of_sources(*sources),
    )
    folder = root.absolute() / "data" / stage / f"{label}-{recipe.digest()}"
    return Dataset(folder, recipe)


@functools.cache
def digest_of_sources(*paths: str) -> str:
    """Return a digest of these files of the package and of all Python files below these folders."""
    files = [file for path in paths for file in sorted((PACKAGE / path).rglob("*.py"))]
    files += [PACKAGE / path for path in paths if path.endswith(".py")]
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:HASH_DIGITS]


def write_table(path: Path, table: pa.Table) -> None:
    """Write a Parquet file atomically."""
    with replaced(path) as partial:
        pq.write_table(table, partial, compression="zstd", write_page_checksum=True)
