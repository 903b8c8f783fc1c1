"""Where the results of a stage are, and whether they are complete.

A dataset is a folder `data/<stage>/<name>-<hash>`. The hash is that of everything the content
depends on: the parameters, the datasets it was made from, and the source code that made it. So a
dataset is never out of date and never written over; either it is there or it has to be computed.
`manifest.json` is written last, in one piece: a folder without it was left behind by a run that was
killed, and is made again. So is one whose files are not those that the manifest tells of.
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
    """All that the content of a dataset depends on."""

    stage: str
    inputs: tuple[str, ...]
    parameters: dict[str, Any]
    version: str
    sources: str

    def digest(self) -> str:
        """The hash in the name of the folder."""
        every = msgspec.to_builtins(self)
        text = json.dumps({key: every[key] for key in Recipe.__struct_fields__}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]


class Manifest(Recipe, frozen=True):
    """What stands in `manifest.json`: what the hash stands for, and what came of it."""

    rows: int
    files: dict[str, Mark]
    """What each file is known by, by its path in the folder."""
    facts: dict[str, Any] = {}
    """What was found out on the way; each stage has its own."""


@dataclass(frozen=True)
class Dataset:
    """One folder, there or not yet."""

    folder: Path
    recipe: Recipe

    @property
    def name(self) -> str:
        return self.folder.name

    def is_whole(self) -> bool:
        """Whether it was finished, and is still as it was then. All of it is read."""
        return not find_damage(self.folder)

    def file(self, name: str) -> Path:
        return self.folder / name

    def commit(self, rows: int = 0, facts: msgspec.Struct | None = None) -> None:
        """Say that all files are there. What killed tasks left half written goes."""
        remove_left_behind(self.folder, ".*")
        known = {} if facts is None else msgspec.to_builtins(facts)
        recipe, files = msgspec.structs.asdict(self.recipe), marks_below(self.folder)
        made = Manifest(**recipe, rows=rows, files=files, facts=known)
        text = msgspec.json.encode(made, order="sorted")
        write_text(self.file(MANIFEST), msgspec.json.format(text, indent=2).decode() + "\n")

    def manifest(self) -> Manifest:
        """What `commit` said. Anything else in its place is refused."""
        try:
            found = msgspec.json.decode(self.file(MANIFEST).read_bytes(), type=Manifest)
        except (OSError, msgspec.MsgspecError) as error:
            raise self._refused(f"not a manifest: {error}") from error
        if not self.name.endswith(found.digest()):
            raise self._refused("the manifest of another dataset")
        return found

    def facts(self, kind: type[Facts]) -> Facts:
        """What the stage found out, as it wrote it down."""
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
    """The dataset that `stage` would make of these inputs with this code. Nothing is written.

    inputs: names of other datasets, or digests of files. sources: the parts of this package, as
    paths within it, that decide what comes out.
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
        pq.write_table(table, partial, compression="zstd", write_page_checksum=True)
