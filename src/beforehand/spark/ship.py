"""Send this package to the executors of a cluster, which have the packages that it needs."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

ARCHIVE = "beforehand.zip"
NOT_SENT = ("__pycache__",)


def files_of_package() -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each file of this package, which may itself be in a zip file."""
    yield from sorted(_below(files("beforehand"), ""))


def _below(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.name in NOT_SENT:
            continue
        if entry.is_dir():
            yield from _below(entry, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}", entry.read_bytes()


def pack(folder: Path) -> Path:
    """Write the package as a zip file into the folder, from which Python can import it."""
    archive = folder / ARCHIVE
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in files_of_package():
            packed.writestr(f"beforehand/{name}", content)
    return archive


def ship(spark: SparkSession, folder: Path) -> None:
    """Send the package to all executors of the session, also to those that come later.

    folder: for the zip file, which is needed as long as the session.
    """
    archive = str(pack(folder))
    if is_remote():
        spark.addArtifacts(archive, pyfile=True)
    else:
        spark.sparkContext.addPyFile(archive)
