"""Write the report page of a finished scenario."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from beforehand.files import check_folder_target
from beforehand.pipeline.experiment import load_experiment
from beforehand.report.datasets import read_scenario
from beforehand.report.page import write_page

if TYPE_CHECKING:
    from beforehand.report.content import Page


def write_report(directory: str | os.PathLike[str]) -> Path:
    """Write `report.html` and `figures/` into the folder that `run_scenario` wrote to.

    Return the path of the page. Raise `InputError` if the folder holds no results of a scenario.
    """
    folder = Path(directory)
    return write_page(build_page(folder), folder)


def build_page(directory: Path) -> Page:
    """Return the content of the report page."""
    check_folder_target(directory)
    experiment = load_experiment(read_scenario(directory).world, where=str(directory))
    return experiment.page(directory)
